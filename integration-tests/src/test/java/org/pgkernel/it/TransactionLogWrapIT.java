package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.recovery.RecoveredCounters;
import org.pgkernel.recovery.Recovery;
import org.pgkernel.recovery.RecoveryOptions;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/**
 * A cluster whose counters are led to the end of the number space and over it by a real server:
 * truncation of every log, new pages after the wrap, commit timestamps, and a crash right then.
 */
class TransactionLogWrapIT {
    private static final PostgresBinaries BINARIES = PostgresBinaries.judge();

    @Test
    @DisplayName(
            "C23: logs truncated and counters wrapped by a real server are replayed to equal files")
    void truncatedAndWrappedLogsEqualPostgres() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-wrap")) {
            Path data = work.resolve("data");
            Map<String, String> settings = new LinkedHashMap<>(PostgresServer.quietSettings());
            settings.put("checkpoint_timeout", "1h");
            settings.put("max_wal_size", "10GB");
            settings.put("synchronous_commit", "on");
            settings.put("autovacuum_freeze_max_age", "2000000000");
            settings.put("autovacuum_multixact_freeze_max_age", "2000000000");
            PostgresServer.initdb(BINARIES, data, false);
            // Three steps of less than half the number space, everything frozen after each.
            jump(data, 2_000_000_000L, 2_000_000_000, 2_000_000_000);
            freezeEverything(data, settings);
            jump(data, 4_000_000_000L, (int) 4_000_000_000L, (int) 4_000_000_000L);
            freezeEverything(data, settings);
            jump(data, 0xFFFF_FA00L, -1500, -3000);
            freezeEverything(data, settings);
            settings.put("track_commit_timestamp", "on");
            Path checkpointed = work.resolve("checkpointed");
            try (PostgresServer server =
                    PostgresServer.builder(BINARIES, data)
                            .settings(settings)
                            .connectable()
                            .start()) {
                execute(server, "postgres", "create table before_wrap(id int)");
                execute(server, "postgres", "checkpoint");
                ClusterCopy.copy(data, checkpointed, List.of("postmaster.pid", "pg_wal/*"));
                // Over the wrap of xids, multixacts and members, past a segment's end of commit
                // timestamps.
                wrap(server);
                freeze(server);
                execute(
                        server,
                        "postgres",
                        "create table after_wrap as select generate_series(1, 100) id");
                server.kill();
            }
            Files.deleteIfExists(data.resolve("postmaster.pid"));
            ClusterCopy.replaceWal(data, checkpointed);
            String clog = "pg_xact/0FFF";
            assertTrue(
                    Files.exists(checkpointed.resolve(clog)), "the base is from before the wrap");
            Set<String> types = IndexAndTransactionIT.types(checkpointed).keySet();
            for (String type :
                    List.of(
                            "CLOG/ZEROPAGE",
                            "CLOG/TRUNCATE",
                            "MultiXact/ZERO_OFF_PAGE",
                            "MultiXact/ZERO_MEM_PAGE",
                            "MultiXact/TRUNCATE_ID",
                            "CommitTs/ZEROPAGE")) {
                assertTrue(types.contains(type), () -> type + " not in " + types);
            }
            compare(work, "at-crash", data, settings);
            Path ours = compare(work, "at-checkpoint", checkpointed, settings);
            assertFalse(Files.exists(ours.resolve(clog)), "the log was truncated after the wrap");
            assertTrue(Files.exists(ours.resolve("pg_xact/0000")));
            assertTrue(Files.exists(ours.resolve("pg_multixact/offsets/0000")));
            assertTrue(Files.exists(ours.resolve("pg_multixact/members/0000")));
            assertFalse(Files.exists(ours.resolve("pg_multixact/members/14078")));
        }
    }

    private static Path compare(
            WorkDirectory work, String name, Path crashed, Map<String, String> settings) {
        Path ours = work.resolve("ours-" + name);
        Path theirs = work.resolve("theirs-" + name);
        ClusterCopy.copy(crashed, ours);
        ClusterCopy.copy(crashed, theirs);
        Cluster.openForCrashRecovery(ours, ClusterOptions.defaults()).close();
        PostgresServer.recover(BINARIES, theirs, settings);
        ClusterComparison.Result result = ClusterComparison.compare(ours, theirs);
        assertTrue(result.equal(), result::describe);
        assertEquals(List.of(), EqualPages.controlFileDifferences(ours, theirs));
        return ours;
    }

    private static void wrap(PostgresServer server) throws SQLException {
        try (Connection connection = server.connect("postgres");
                Connection other = server.connect("postgres");
                Statement statement = connection.createStatement();
                Statement second = other.createStatement()) {
            statement.execute("create table sub(id int)");
            statement.execute(
                    "do $$ begin for i in 1..3000 loop begin insert into sub values (i);"
                            + " exception when raise_exception then null; end; end loop; end $$");
            statement.execute("create table locked(id int primary key)");
            statement.execute("insert into locked select generate_series(1, 2000)");
            connection.setAutoCommit(false);
            other.setAutoCommit(false);
            statement.execute("select id from locked order by id for key share");
            // A subtransaction a row, since equal sets of lockers share one multixact.
            second.execute(IndexAndTransactionIT.LOCK_EACH_ROW.formatted(2000));
            connection.commit();
            other.commit();
        }
    }

    /**
     * Sets the counters of a cluster that was shut down cleanly; the pages that the next numbers
     * lie on are made.
     */
    private static void jump(Path data, long xid, int multi, int offset) throws IOException {
        zeros(data, "pg_xact", xid / 32768);
        zeros(data, "pg_multixact/offsets", Integer.toUnsignedLong(multi) / 2048);
        zeros(data, "pg_multixact/members", Integer.toUnsignedLong(offset) / 1636);
        RecoveryOptions options =
                new RecoveryOptions(
                        1024,
                        DropStrategy.FULL_SCAN,
                        SizePolicy.RECOVERY_ONLY,
                        null,
                        (lsn, bytes, records) -> {},
                        Clock.systemUTC());
        try (Recovery recovery =
                Recovery.open(new PosixDisk(), data.toString(), Recovery.Mode.CRASH, options)) {
            assertFalse(recovery.needsRedo());
            recovery.begin();
            recovery.finishCrashRecovery();
            RecoveredCounters counters = recovery.context().counters();
            counters.nextFullXid(xid);
            counters.nextMulti(multi, offset);
            counters.oldestMulti(multi, 1);
            recovery.shutdown();
        }
    }

    private static void zeros(Path data, String log, long page) throws IOException {
        Path file = data.resolve(log).resolve(String.format("%04X", page / 32));
        try (RandomAccessFile raw = new RandomAccessFile(file.toFile(), "rw")) {
            raw.setLength(Math.max(raw.length(), (page % 32 + 1) * 8192));
        }
        Files.setPosixFilePermissions(
                file, java.nio.file.attribute.PosixFilePermissions.fromString("rw-------"));
    }

    private static void freezeEverything(Path data, Map<String, String> settings)
            throws SQLException {
        try (PostgresServer server =
                PostgresServer.builder(BINARIES, data).settings(settings).connectable().start()) {
            freeze(server);
            server.stop(PostgresServer.StopMode.FAST);
        }
    }

    private static void freeze(PostgresServer server) throws SQLException {
        execute(server, "postgres", "update pg_database set datallowconn = true");
        for (String database : List.of("template0", "template1", "postgres")) {
            execute(server, database, "vacuum freeze");
        }
    }

    private static void execute(PostgresServer server, String database, String sql)
            throws SQLException {
        try (Connection connection = server.connect(database);
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
