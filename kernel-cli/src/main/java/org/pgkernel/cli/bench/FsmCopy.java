package org.pgkernel.cli.bench;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.pgkernel.cli.Progress;
import org.pgkernel.cli.UserException;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.CsvType;
import org.pgkernel.cluster.RunOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.testkit.FileTrees;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * BEGIN, CREATE TABLE, COPY of one CSV file, COMMIT, which makes it durable: by our kernel under
 * each policy and by PostgreSQL with wal_level minimal, in turns; the table is dropped in between.
 * The time is that from BEGIN to after COMMIT. Both have a pool of 1 GB, of which a load uses a
 * ring of 16 MB.
 */
final class FsmCopy {
    private static final int POOL_MB = 1024;
    private static final int ACCOUNTS_OF_A_BRANCH = 100_000;
    private static final String TABLE = "copied";
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("aid", "int4"),
                    Attribute.of("bid", "int4"),
                    Attribute.of("abalance", "int4"),
                    Attribute.of("filler", "bpchar"));
    private static final CsvType[] TYPES = {CsvType.INT4, CsvType.INT4, CsvType.INT4, CsvType.TEXT};

    private final FsmSettings settings;
    private final List<FsmVariant> variants;
    private final FsmFigures figures;

    FsmCopy(FsmSettings settings, List<FsmVariant> variants, FsmFigures figures) {
        this.settings = settings;
        this.variants = variants;
        this.figures = figures;
    }

    /** Who copies. */
    private interface Loader extends AutoCloseable {
        String name();

        /** Copies into a new table. @return rows */
        long load(Path csv);

        void drop();

        @Override
        void close();
    }

    /** The releases that are wanted. */
    static List<PostgresBinaries> binaries(List<Integer> majors) {
        List<PostgresBinaries> found = new ArrayList<>();
        for (int major : majors) {
            found.add(
                    PostgresBinaries.ofMajor(major)
                            .or(() -> PostgresBinaries.installed(major))
                            .orElseThrow(
                                    () ->
                                            new UserException(
                                                    "there are no binaries of PostgreSQL "
                                                            + major
                                                            + ": build with Maven once while there is a network, or leave it out of --postgres")));
        }
        return found;
    }

    void run(Path directory) throws IOException {
        Files.createDirectories(directory);
        // The servers' user reads the file.
        for (Path dir : List.of(directory.getParent(), directory)) {
            Files.setPosixFilePermissions(dir, PosixFilePermissions.fromString("rwx--x--x"));
        }
        List<Loader> loaders = new ArrayList<>();
        try {
            for (FsmVariant variant : variants) {
                loaders.add(new Ours(variant, directory.resolve(variant.name())));
            }
            for (PostgresBinaries binaries : binaries(settings.postgres())) {
                loaders.add(new Rival(binaries, directory.resolve("pg-" + binaries.major())));
            }
            for (int rows : settings.rows()) {
                run(loaders, rows, directory.resolve("accounts.csv"));
            }
        } finally {
            loaders.forEach(Loader::close);
            FileTrees.delete(directory);
        }
    }

    private void run(List<Loader> loaders, int rows, Path csv) throws IOException {
        write(csv, rows);
        int rounds = settings.rounds();
        try (Progress progress =
                new Progress(
                        System.err, "copy, " + rows + " rows", (rounds + 1L) * loaders.size())) {
            int done = 0;
            // The first round warms up.
            for (int round = -1; round < rounds; round++) {
                for (int i = 0; i < loaders.size(); i++) {
                    Loader loader = loaders.get(round % 2 == 0 ? i : loaders.size() - 1 - i);
                    long began = System.nanoTime();
                    long loaded = loader.load(csv);
                    double millis = (System.nanoTime() - began) / 1e6;
                    loader.drop();
                    if (loaded != rows) {
                        throw new IllegalStateException(
                                loader.name() + " copied " + loaded + " of " + rows + " rows");
                    }
                    if (round >= 0) {
                        figures.add(
                                "copy",
                                String.format(java.util.Locale.ROOT, "%d rows", rows),
                                "ms",
                                loader.name(),
                                round,
                                millis);
                    }
                    progress.at(++done);
                }
            }
        }
        Files.delete(csv);
    }

    /** As COPY pgbench_accounts TO writes it. */
    static void write(Path csv, int rows) throws IOException {
        String filler = " ".repeat(84);
        try (BufferedWriter out = Files.newBufferedWriter(csv)) {
            for (int i = 0; i < rows; i++) {
                out.append(Integer.toString(i + 1))
                        .append(',')
                        .append(Integer.toString(i / ACCOUNTS_OF_A_BRANCH + 1))
                        .append(",0,")
                        .append(filler)
                        .append('\n');
            }
        }
        Files.setPosixFilePermissions(csv, PosixFilePermissions.fromString("rw-r--r--"));
    }

    private static final class Ours implements Loader {
        private final String name;
        private final Cluster cluster;
        private final Backend backend;

        Ours(FsmVariant variant, Path data) {
            name = variant.name();
            Cluster.create(
                    data, CreateOptions.defaults().withChecksums(false).withMinimalWal(true));
            RunOptions run =
                    RunOptions.defaults().withCheckpointTimeoutNanos(900L * 1_000_000_000L);
            cluster =
                    Cluster.open(
                            data,
                            variant.options()
                                    .apply(
                                            ClusterOptions.defaults()
                                                    .withSharedBuffers(POOL_MB * 128)
                                                    .withRun(run)));
            backend = cluster.newBackend();
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long load(Path csv) {
            backend.begin();
            Table table = backend.createTable(TABLE, COLUMNS, TableOptions.DEFAULT);
            long rows = table.copyFrom(csv, TYPES);
            backend.commit(true);
            return rows;
        }

        @Override
        public void drop() {
            backend.begin();
            backend.dropTable(TABLE);
            backend.commit(true);
        }

        @Override
        public void close() {
            backend.close();
            cluster.close();
        }
    }

    private static final class Rival implements Loader {
        private final PostgresServer server;
        private final Connection connection;
        private final Statement statement;

        Rival(PostgresBinaries binaries, Path data) {
            PostgresServer.initdb(binaries, data, false);
            server =
                    PostgresServer.builder(binaries, data)
                            .settings(PostgresServer.quietSettings())
                            .settings(
                                    Map.of(
                                            "wal_level", "minimal",
                                            "max_wal_senders", "0",
                                            "fsync", "on",
                                            "shared_buffers", POOL_MB + "MB",
                                            "maintenance_work_mem", "1GB",
                                            "bgwriter_delay", "200ms",
                                            "checkpoint_timeout", "15min",
                                            "max_wal_size", "20GB"))
                            .connectable()
                            .start();
            try {
                connection = server.connect("postgres");
                statement = connection.createStatement();
            } catch (SQLException e) {
                throw refused(e);
            }
        }

        private UserException refused(SQLException e) {
            return new UserException(name() + " could not be timed: " + e.getMessage(), e);
        }

        @Override
        public String name() {
            return "PostgreSQL " + server.binaries().version();
        }

        @Override
        public long load(Path csv) {
            try {
                statement.execute("BEGIN");
                statement.execute(
                        "CREATE TABLE "
                                + TABLE
                                + " (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor = 100)");
                long rows =
                        statement.executeLargeUpdate(
                                "COPY " + TABLE + " FROM '" + csv + "' WITH (FORMAT csv)");
                statement.execute("COMMIT");
                return rows;
            } catch (SQLException e) {
                throw refused(e);
            }
        }

        @Override
        public void drop() {
            try {
                statement.execute("DROP TABLE " + TABLE);
            } catch (SQLException e) {
                throw refused(e);
            }
        }

        @Override
        public void close() {
            try {
                connection.close();
            } catch (SQLException e) {
                throw refused(e);
            } finally {
                server.stop(PostgresServer.StopMode.FAST);
                server.close();
            }
        }
    }
}
