package org.pgkernel.cli.repro;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;
import org.pgkernel.base.Lsn;
import org.pgkernel.cli.UserException;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;

/**
 * Makes the data of one operation on a real server, in the steps of the published tests: cold copy,
 * load, (DELETE,) pause LSN, TRUNCATE or VACUUM, stop.
 *
 * <p>The same statements, in the same order, on every release.
 */
final class Primary {
    /** Bytes of a WAL segment. */
    static final long SEGMENT_SIZE = 16 << 20;

    private static final int ROWS = 1000;
    private static final int TABLES_A_VACUUM = 100;

    private final PostgresBinaries binaries;
    private final Path directory;
    private final int tables;

    Primary(PostgresBinaries binaries, Path directory, int tables) {
        this.binaries = binaries;
        this.directory = directory;
        this.tables = tables;
    }

    /** Settings of the published tests, and no connection of the server's own. */
    static Map<String, String> settings() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("autovacuum", "off");
        settings.put("full_page_writes", "off");
        settings.put("checkpoint_timeout", "30min");
        settings.put("max_wal_size", "60GB");
        settings.put("wal_level", "replica");
        settings.put("wal_recycle", "off");
        settings.put("wal_keep_size", "60GB");
        settings.put("max_logical_replication_workers", "0");
        settings.put("vacuum_cost_delay", "0");
        settings.put("vacuum_cost_limit", "10000");
        // The primary's durability is not under test; the standby's is.
        settings.put("fsync", "off");
        settings.put("shared_buffers", "1GB");
        settings.put("dynamic_shared_memory_type", "mmap");
        settings.put("timezone", "UTC");
        settings.put("log_timezone", "UTC");
        return settings;
    }

    /**
     * @param progress told the number of statements done, of {@link #steps}
     * @return the data set, without a judge
     */
    Dataset make(Operation operation, boolean toast, BaseKind base, IntConsumer progress) {
        Path data = directory.resolve("primary");
        Path copy = directory.resolve("base");
        PostgresServer.initdb(binaries, data, false);
        try {
            // The first start of a new cluster writes nothing of interest; the copy is of a cluster
            // that was started and stopped.
            try (PostgresServer server = start(data)) {
                server.stop(PostgresServer.StopMode.FAST);
            }
            if (base == BaseKind.EMPTY) {
                ClusterCopy.copy(data, copy);
            }
            long pause;
            try (PostgresServer server = start(data)) {
                int done = load(server, toast, operation, progress);
                if (base == BaseKind.AFTER_LOAD) {
                    server.stop(PostgresServer.StopMode.FAST);
                    ClusterCopy.copy(data, copy);
                    try (PostgresServer again = start(data)) {
                        pause = work(again, operation, progress, done);
                        again.stop(PostgresServer.StopMode.FAST);
                    }
                } else {
                    pause = work(server, operation, progress, done);
                    server.stop(PostgresServer.StopMode.FAST);
                }
            }
            return new Dataset(
                    operation, toast, base, tables, copy, data.resolve("pg_wal"), pause, null);
        } catch (SQLException e) {
            throw new UserException("the primary refused a statement: " + e.getMessage(), e);
        }
    }

    /** How many steps {@link #make} reports. */
    static int steps(Operation operation, int tables) {
        return operation == Operation.VACUUM ? 3 * tables : 2 * tables;
    }

    private PostgresServer start(Path data) {
        return PostgresServer.builder(binaries, data).settings(settings()).connectable().start();
    }

    private int load(
            PostgresServer server, boolean toast, Operation operation, IntConsumer progress)
            throws SQLException {
        String type = toast ? "varchar" : "varchar(20)";
        int done = 0;
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            for (int i = 0; i < tables; i++) {
                connection.setAutoCommit(false);
                statement.execute(
                        "CREATE TABLE t_" + i + " (id int, v_ch " + type + ", v_ch1 " + type + ")");
                statement.execute(
                        "INSERT INTO t_"
                                + i
                                + " SELECT g, 'abcdefghijklmnopq', 'abcdefghijklmnopq' FROM generate_series(1, "
                                + ROWS
                                + ") g");
                connection.commit();
                progress.accept(++done);
            }
            connection.setAutoCommit(true);
            if (operation == Operation.VACUUM) {
                for (int i = 0; i < tables; i++) {
                    statement.execute("DELETE FROM t_" + i);
                    progress.accept(++done);
                }
            }
        }
        return done;
    }

    /**
     * Notes the pause LSN and does the measured work. One transaction a table; VACUUM does that by
     * itself, given a list.
     */
    private long work(PostgresServer server, Operation operation, IntConsumer progress, int before)
            throws SQLException {
        int done = before;
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            long pause;
            // A segment of its own for the measured work, so that a real server can be given the
            // WAL before it first.
            try (ResultSet row = statement.executeQuery("SELECT pg_switch_wal()")) {
                row.next();
                pause = segmentEnd(Lsn.parse(row.getString(1)));
            }
            if (operation == Operation.TRUNCATE) {
                for (int i = 0; i < tables; i++) {
                    statement.execute("TRUNCATE t_" + i);
                    progress.accept(++done);
                }
            } else {
                for (int i = 0; i < tables; i += TABLES_A_VACUUM) {
                    StringBuilder list = new StringBuilder("VACUUM ");
                    int end = Math.min(tables, i + TABLES_A_VACUUM);
                    for (int j = i; j < end; j++) {
                        list.append(j == i ? "t_" : ", t_").append(j);
                    }
                    statement.execute(list.toString());
                    done += end - i;
                    progress.accept(done);
                }
            }
            return pause;
        }
    }

    private static long segmentEnd(long lsn) {
        return lsn + SEGMENT_SIZE - 1 & -SEGMENT_SIZE;
    }

    /**
     * Lets PostgreSQL recover the data set from the same base copy and WAL, all of it, without any
     * connection.
     *
     * @return its data directory, shut down
     */
    Path judge(Dataset dataset) {
        Path judge = directory.resolve("judge");
        standbyDirectory(dataset, judge);
        try {
            Files.createFile(judge.resolve("recovery.signal"));
        } catch (IOException e) {
            throw new UserException("cannot write the judge's directory: file=" + judge, e);
        }
        // The archive has nothing; all WAL is in pg_wal.
        PostgresServer.recover(
                binaries, judge, Map.of("restore_command", "false", "full_page_writes", "off"));
        return judge;
    }

    /** A copy of the base with all of the primary's WAL. */
    static void standbyDirectory(Dataset dataset, Path target) {
        ClusterCopy.copy(dataset.baseCopy(), target, List.of("postmaster.pid", "pg_wal/*"));
        ClusterCopy.replaceWal(dataset.wal().getParent(), target);
    }
}
