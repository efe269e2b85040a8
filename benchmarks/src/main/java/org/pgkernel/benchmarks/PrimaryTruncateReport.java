package org.pgkernel.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.PoolFiller;
import org.pgkernel.cli.bench.Bootstrap;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.smgr.SizePolicy;

/**
 * What the pool's size adds to TRUNCATE and to VACUUM's truncation of a table of 100 pages on a
 * running cluster of ours: FULL_SCAN is PostgreSQL as it is, LOOKUP with shared sizes what the
 * thread measured as patched, ADAPTIVE ours. Every buffer holds a page of some other relation when
 * it begins. A truncation's cost is that of VACUUM less that of VACUUM with truncation off, of the
 * same table, in turns; a turn goes through all pool sizes.
 */
public final class PrimaryTruncateReport {
    private static final int PAGES = 100;
    private static final int WARM_UP = 40;
    private static final int ROWS_A_PAGE = 12;
    private static final int COLUMNS = 10;
    private static final int PAGES_OF_OTHERS = 128;
    private static final int FIRST_OTHER = 1_000_000_000;
    private static final String[] SIZES = {"128MB", "1GB", "10GB", "20GB", "100GB"};
    private static final DropStrategy[] STRATEGIES = {
        DropStrategy.ADAPTIVE, DropStrategy.LOOKUP, DropStrategy.FULL_SCAN
    };

    private PrimaryTruncateReport() {}

    /** A table of a cluster with a full pool, and what its statements took. */
    private static final class Bench implements AutoCloseable {
        private final Cluster cluster;
        private final Backend backend;
        private final RowValues[] rows = new RowValues[PAGES * ROWS_A_PAGE];
        final double[] truncate;
        final double[] vacuum;
        final double[] vacuumWithout;

        Bench(Scratch scratch, DropStrategy strategy, String size, int repetitions) {
            truncate = new double[repetitions];
            vacuum = new double[repetitions];
            vacuumWithout = new double[repetitions];
            java.nio.file.Path data = scratch.resolve(strategy + "-" + size);
            Cluster.create(data, CreateOptions.defaults().withChecksums(false));
            cluster =
                    Cluster.open(
                            data,
                            ClusterOptions.defaults()
                                    .withSharedBuffers(buffers(size))
                                    .withDropStrategy(strategy)
                                    .withSizePolicy(SizePolicy.SHARED)
                                    .withRun(
                                            RunOptions.defaults()
                                                    .withCheckpointTimeoutNanos(
                                                            1800L * 1_000_000_000L)
                                                    .withWalSize(10L << 30, 1L << 30)));
            backend = cluster.newBackend();
            Attribute[] columns = new Attribute[COLUMNS + 1];
            columns[0] = Attribute.of("id", "int4");
            for (int i = 1; i <= COLUMNS; i++) {
                columns[i] = Attribute.of("c" + i, "name");
            }
            backend.begin();
            Table table =
                    backend.createTable("t", TupleDescriptor.of(columns), TableOptions.DEFAULT);
            backend.commit();
            byte[] name = new byte[64];
            name[0] = 'a';
            for (int i = 0; i < rows.length; i++) {
                rows[i] = table.newRow();
                rows[i].setNumber(0, i);
                for (int column = 1; column <= COLUMNS; column++) {
                    rows[i].setBytes(column, name);
                }
            }
            fillPool();
        }

        /** The catalogue's pages stay; everything else is others'. */
        private void fillPool() {
            PoolFiller filler = new PoolFiller(cluster.pool());
            int nbuffers = cluster.pool().nbuffers();
            int others = Math.max(1, nbuffers / PAGES_OF_OTHERS);
            int used = cluster.pool().snapshot().summary().used();
            for (int i = 0; i < nbuffers - used; i++) {
                filler.map(
                        RelFileLocator.DEFAULT_TABLESPACE,
                        5,
                        FIRST_OTHER + i % others,
                        ForkNumber.MAIN.ordinal(),
                        i / others);
            }
        }

        /** One of each; not kept if {@code i} is negative. */
        void run(int i) {
            fill();
            long began = System.nanoTime();
            backend.begin();
            backend.truncate("t");
            backend.commit();
            note(truncate, i, began);
            boolean first = (i & 1) == 0; // neither is always the one that comes second
            vacuum(first, i);
            vacuum(!first, i);
        }

        private void vacuum(boolean truncates, int i) {
            fill();
            deleteAll();
            long began = System.nanoTime();
            int removed =
                    backend.vacuum("t", VacuumOptions.DEFAULT.withTruncate(truncates))
                            .removedPages();
            note(truncates ? vacuum : vacuumWithout, i, began);
            if (truncates && removed < PAGES) {
                throw new IllegalStateException("only " + removed + " pages were cut off");
            }
        }

        /** What the truncation took, each time. */
        double[] cuts() {
            double[] cuts = new double[vacuum.length];
            for (int i = 0; i < cuts.length; i++) {
                cuts[i] = vacuum[i] - vacuumWithout[i];
            }
            return cuts;
        }

        private void fill() {
            backend.begin();
            backend.table("t").multiInsert(rows, rows.length, null);
            backend.commit();
        }

        private void deleteAll() {
            backend.begin();
            Table table = backend.table("t");
            try (TableScan scan = table.scan()) {
                while (scan.next()) {
                    table.delete(scan.tid());
                }
            }
            backend.commit();
        }

        /** The first few are warm-up. Milliseconds. */
        private static void note(double[] into, int i, long began) {
            if (i >= 0) {
                into[i] = (System.nanoTime() - began) / 1e6;
            }
        }

        @Override
        public void close() {
            backend.close();
            cluster.abandon();
        }
    }

    private static int buffers(String size) {
        int number = Integer.parseInt(size.replaceAll("[A-Z]", ""));
        return number * (size.endsWith("GB") ? 131_072 : 128);
    }

    public static void main(String[] args) throws IOException {
        Locale.setDefault(Locale.ROOT);
        int repetitions = args.length > 0 ? Integer.parseInt(args[0]) : 200;
        System.out.println(
                "| strategy | shared_buffers | TRUNCATE, ms | 95 % interval | VACUUM, ms | VACUUM"
                        + " without truncation, ms | truncation, ms | 95 % interval |\n"
                        + "|---|---|---:|---:|---:|---:|---:|---:|");
        StringBuilder spreads = new StringBuilder();
        for (DropStrategy strategy : STRATEGIES) {
            spreads.append(measure(strategy, repetitions));
        }
        System.out.println();
        System.out.print(spreads);
    }

    /** All pool sizes by turns, each repetition in all of them. */
    private static String measure(DropStrategy strategy, int repetitions) throws IOException {
        List<Bench> benches = new ArrayList<>();
        try (Scratch scratch = new Scratch()) {
            for (String size : SIZES) {
                benches.add(new Bench(scratch, strategy, size, repetitions));
            }
            for (int i = -WARM_UP; i < repetitions; i++) {
                for (Bench bench : benches) {
                    bench.run(i);
                }
            }
        } finally {
            benches.forEach(Bench::close);
        }
        double[] truncates =
                benches.stream().mapToDouble(b -> Bootstrap.median(b.truncate)).toArray();
        double[] cuts = benches.stream().mapToDouble(b -> Bootstrap.median(b.cuts())).toArray();
        for (int i = 0; i < SIZES.length; i++) {
            Bench bench = benches.get(i);
            System.out.printf(
                    "| %s | %s | %.3f | %s | %.3f | %.3f | %.3f | %s |%n",
                    strategy,
                    SIZES[i],
                    truncates[i],
                    interval(bench.truncate),
                    Bootstrap.median(bench.vacuum),
                    Bootstrap.median(bench.vacuumWithout),
                    cuts[i],
                    interval(bench.cuts()));
        }
        return String.format("| %s | %.2f | %.2f |%n", strategy, spread(truncates), spread(cuts));
    }

    private static String interval(double[] values) {
        double[] interval = Bootstrap.ofMedian(values, 2000, 0.95, 42);
        return String.format("%.3f to %.3f", interval[0], interval[1]);
    }

    private static double spread(double[] values) {
        double least = Double.MAX_VALUE;
        double most = 0;
        for (double value : values) {
            least = Math.min(least, value);
            most = Math.max(most, value);
        }
        return most / least;
    }
}
