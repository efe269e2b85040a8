package org.pgkernel.it;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.pgkernel.base.Lsn;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WalCut;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.Workloads;

/**
 * What a real PostgreSQL leaves behind when it is killed, in two forms: the directory as the crash
 * left it, whose pages may be newer than the redo point, and the directory as it was at the last
 * checkpoint with all the WAL written since, which can be cut anywhere.
 */
final class CrashedCluster implements AutoCloseable {
    /**
     * Under which settings the primary ran; recovery by PostgreSQL uses the same, or it would log a
     * change of parameters.
     */
    record Settings(
            PostgresBinaries binaries,
            boolean checksums,
            boolean fullPageWrites,
            String walCompression,
            String sharedBuffers,
            int walSegmentMegabytes,
            Map<String, String> more) {
        Settings(
                PostgresBinaries binaries,
                boolean checksums,
                boolean fullPageWrites,
                String walCompression,
                String sharedBuffers) {
            this(binaries, checksums, fullPageWrites, walCompression, sharedBuffers, 16, Map.of());
        }

        Map<String, String> asMap() {
            Map<String, String> map = new LinkedHashMap<>(PostgresServer.quietSettings());
            map.put("full_page_writes", fullPageWrites ? "on" : "off");
            map.put("wal_compression", walCompression);
            map.put("shared_buffers", sharedBuffers);
            // No checkpoint but those asked for, and all WAL since the first one stays.
            map.put("checkpoint_timeout", "1h");
            map.put("max_wal_size", "10GB");
            map.put("wal_keep_size", "10GB");
            map.put("synchronous_commit", "on");
            map.putAll(more);
            return map;
        }
    }

    /** Whose pages the copies start from. */
    enum Base {
        AT_CRASH,
        AT_CHECKPOINT
    }

    private final WorkDirectory work;
    private final Settings settings;
    private final Path crashed;
    private final Path checkpointed;
    private final long pauseLsn;

    private CrashedCluster(
            WorkDirectory work, Settings settings, Path crashed, Path checkpointed, long pauseLsn) {
        this.work = work;
        this.settings = settings;
        this.crashed = crashed;
        this.checkpointed = checkpointed;
        this.pauseLsn = pauseLsn;
    }

    /**
     * Runs a primary: {@code before}, CHECKPOINT, {@code first}, the pause LSN is noted, {@code
     * second}, SIGKILL.
     *
     * @param before what is on disk at the redo point
     */
    static CrashedCluster make(
            Settings settings,
            Workloads.Workload before,
            Workloads.Workload first,
            Workloads.Workload second)
            throws SQLException {
        WorkDirectory work = WorkDirectory.create("pgkernel-it");
        try {
            Path crashed = work.resolve("crashed");
            Path checkpointed = work.resolve("checkpointed");
            ClusterCopy.copy(
                    Templates.of(
                            settings.binaries(),
                            settings.checksums(),
                            settings.walSegmentMegabytes()),
                    crashed);
            long pauseLsn;
            try (PostgresServer server =
                    PostgresServer.builder(settings.binaries(), crashed)
                            .settings(settings.asMap())
                            .connectable()
                            .start()) {
                before.run(server);
                execute(server, "checkpoint");
                // Nothing writes now: autovacuum is off and nobody is connected.
                ClusterCopy.copy(crashed, checkpointed, List.of("postmaster.pid", "pg_wal/*"));
                first.run(server);
                try (Connection connection = server.connect("postgres")) {
                    pauseLsn =
                            Lsn.parse(
                                    Workloads.text(
                                            connection, "select pg_current_wal_insert_lsn()"));
                }
                second.run(server);
                // A commit flushes everything before it.
                execute(server, "create table last_commit(id int)");
                server.kill();
            }
            Files.deleteIfExists(crashed.resolve("postmaster.pid"));
            ClusterCopy.replaceWal(crashed, checkpointed);
            return new CrashedCluster(work, settings, crashed, checkpointed, pauseLsn);
        } catch (SQLException | RuntimeException e) {
            work.close();
            throw e;
        } catch (java.io.IOException e) {
            work.close();
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static void execute(PostgresServer server, String sql) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    Settings settings() {
        return settings;
    }

    Path work() {
        return work.path();
    }

    long pauseLsn() {
        return pauseLsn;
    }

    /** A copy to recover. */
    Path copy(String name, Base base) {
        Path copy = work.resolve(name);
        ClusterCopy.copy(base == Base.AT_CRASH ? crashed : checkpointed, copy);
        return copy;
    }

    /** A copy of the checkpoint's image whose WAL ends at {@code lsn}. */
    Path copyCutAt(String name, long lsn) {
        Path copy = copy(name, Base.AT_CHECKPOINT);
        WalCut.cut(copy, lsn);
        return copy;
    }

    @Override
    public void close() {
        work.close();
    }
}
