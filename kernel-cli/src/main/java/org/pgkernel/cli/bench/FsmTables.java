package org.pgkernel.cli.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.pgkernel.cli.Progress;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.testkit.FileTrees;

/**
 * Many tables of 1 to 4 blocks, row by row: what they take on disk, how long creating and filling
 * takes, and how long recovery takes when the cluster is given up then. Names are looked up by a
 * scan of the catalogue, so creation grows with the square of the tables.
 */
final class FsmTables {
    private static final int ROWS_A_PAGE = 8;
    private static final int TABLES_A_TRANSACTION = 100;
    private static final int NAMES = 15;

    private final FsmSettings settings;
    private final List<FsmVariant> variants;
    private final FsmFigures figures;

    FsmTables(FsmSettings settings, List<FsmVariant> variants, FsmFigures figures) {
        this.settings = settings;
        this.variants = variants;
        this.figures = figures;
    }

    void run(Path directory) throws IOException {
        Files.createDirectories(directory);
        try (Progress progress = new Progress(System.err, "tables", variants.size())) {
            int done = 0;
            for (FsmVariant variant : variants) {
                Path data = directory.resolve(variant.name());
                run(variant, data);
                FileTrees.delete(data);
                progress.at(++done);
            }
        }
    }

    /** 15 names, 64 bytes each, and a number: 8 rows a page, no TOAST table. */
    private static TupleDescriptor columns() {
        Attribute[] all = new Attribute[NAMES + 1];
        all[0] = Attribute.of("id", "int4");
        for (int i = 1; i <= NAMES; i++) {
            all[i] = Attribute.of("c" + i, "name");
        }
        return TupleDescriptor.of(all);
    }

    private static ClusterOptions options(FsmVariant variant) {
        return variant.options()
                .apply(
                        ClusterOptions.defaults()
                                .withSharedBuffers(1 << 17)
                                .withRun(
                                        RunOptions.defaults()
                                                .withCheckpointTimeoutNanos(1800_000_000_000L)
                                                .withWalSize(8L << 30, 1L << 30)
                                                .withSynchronousCommit(false)));
    }

    private void run(FsmVariant variant, Path data) throws IOException {
        Cluster.create(data, CreateOptions.defaults().withChecksums(false));
        Cluster cluster = Cluster.open(data, options(variant));
        TupleDescriptor columns = columns();
        Table[] tables = new Table[settings.tables()];
        try (Backend backend = cluster.newBackend()) {
            long began = System.nanoTime();
            for (int i = 0; i < tables.length; ) {
                backend.begin();
                int end = Math.min(tables.length, i + TABLES_A_TRANSACTION);
                for (; i < end; i++) {
                    tables[i] = backend.createTable("t" + i, columns, TableOptions.DEFAULT);
                }
                backend.commit();
            }
            add(variant, "creation s", seconds(began));
            began = System.nanoTime();
            fill(backend, tables);
            backend.commit(true);
            add(variant, "filling s", seconds(began));
        }
        cluster.abandon();
        long began = System.nanoTime();
        cluster = Cluster.open(data, options(variant));
        add(variant, "recovery s", seconds(began));
        measureFiles(variant, data.resolve("base"));
        cluster.close();
    }

    private static void fill(Backend backend, Table[] tables) {
        RowValues row = tables[0].newRow();
        for (int i = 1; i <= NAMES; i++) {
            row.setBytes(i, new byte[] {'a'});
        }
        backend.begin();
        for (int t = 0; t < tables.length; t++) {
            int rows = ROWS_A_PAGE * (t % 4 + 1);
            for (int i = 0; i < rows; i++) {
                row.setNumber(0, i);
                tables[t].insert(row);
            }
            if (t % TABLES_A_TRANSACTION == TABLES_A_TRANSACTION - 1) {
                backend.commit();
                backend.begin();
            }
        }
    }

    private void measureFiles(FsmVariant variant, Path base) throws IOException {
        long files = 0;
        long maps = 0;
        long bytes = 0;
        try (Stream<Path> all = Files.walk(base)) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                files++;
                bytes += Files.size(file);
                maps += file.getFileName().toString().endsWith("_fsm") ? 1 : 0;
            }
        }
        add(variant, "files", files);
        add(variant, "files of maps", maps);
        add(variant, "MB on disk", bytes / 1e6);
    }

    private static double seconds(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    private void add(FsmVariant variant, String measure, double value) {
        figures.add("tables", settings.tables() + " tables", measure, variant.name(), 0, value);
    }
}
