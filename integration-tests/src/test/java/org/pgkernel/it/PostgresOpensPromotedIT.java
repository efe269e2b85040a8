package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.Standby;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresInspection;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;
import org.pgkernel.testkit.Workloads;

/**
 * A standby over the cold copy of an empty cluster and a primary's WAL: paused, resumed, promoted;
 * then PostgreSQL takes over.
 */
class PostgresOpensPromotedIT {
    private static final Map<String, String> SETTINGS =
            Map.of(
                    "full_page_writes",
                    "off",
                    "max_wal_size",
                    "10GB",
                    "wal_keep_size",
                    "10GB",
                    "checkpoint_timeout",
                    "1h");

    private static WorkDirectory work;
    private static Path base;
    private static Path primary;
    private static long pauseLsn;
    private static SortedMap<String, String> atPause;
    private static SortedMap<String, String> atEnd;

    @BeforeAll
    static void runPrimary() throws Exception {
        work = WorkDirectory.create("pgkernel-promote");
        primary = work.resolve("primary");
        base = work.resolve("base");
        ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), primary);
        ClusterCopy.copy(primary, base);
        try (PostgresServer server =
                PostgresServer.builder(PostgresBinaries.judge(), primary)
                        .settings(PostgresServer.quietSettings())
                        .settings(SETTINGS)
                        .connectable()
                        .start()) {
            try (Connection connection = server.connect("postgres")) {
                Workloads.load(connection, "t_", 20, 500, "varchar(20)");
                Workloads.load(connection, "u_", 20, 500, "varchar");
                Workloads.forEach(connection, "delete from", "u_", 10);
            }
            Workloads.databases(server);
            atPause = PostgresInspection.contents(server);
            try (Connection connection = server.connect("postgres")) {
                pauseLsn =
                        Lsn.parse(Workloads.text(connection, "select pg_current_wal_insert_lsn()"));
                Workloads.forEach(connection, "truncate", "t_", 19);
                Workloads.forEach(connection, "vacuum", "u_", 20);
            }
            Workloads.tpcb(server);
            Workloads.transactions(server);
            atEnd = PostgresInspection.contents(server);
            server.stop(PostgresServer.StopMode.FAST);
        }
    }

    @AfterAll
    static void clean() {
        work.close();
    }

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void promotedAtTheEndOfWal(DropStrategy strategy) throws Exception {
        Path copy = standbyCopy("end-" + strategy);
        try (Standby standby = Cluster.openStandby(copy, options(strategy))) {
            assertTrue(standby.replayTo(pauseLsn));
            assertEquals(Lsn.format(pauseLsn), Lsn.format(standby.replayedTo()));
            standby.resume();
            try (Cluster cluster = standby.promote()) {
                assertEquals(2, cluster.timeline());
                cluster.checkpoint();
            }
        }
        assertPostgresTakesOver(copy, 2, atEnd);
    }

    @Test
    void promotedAtThePause() throws Exception {
        Path copy = standbyCopy("pause");
        try (Standby standby = Cluster.openStandby(copy, options(DropStrategy.LOOKUP))) {
            assertTrue(standby.replayTo(pauseLsn));
            try (Cluster cluster = standby.promote()) {
                assertEquals(2, cluster.timeline());
            }
        }
        assertPostgresTakesOver(copy, 2, atPause);
    }

    @Test
    void closedInRecoveryAndOpenedAgainGoesOn() throws Exception {
        Path copy = standbyCopy("again");
        try (Standby standby = Cluster.openStandby(copy, options(DropStrategy.LOOKUP))) {
            assertTrue(standby.replayTo(pauseLsn));
        }
        try (Standby standby = Cluster.openStandby(copy, options(DropStrategy.FULL_SCAN))) {
            standby.resume();
            try (Cluster cluster = standby.promote()) {
                cluster.checkpoint();
            }
        }
        assertPostgresTakesOver(copy, 2, atEnd);
    }

    @Test
    void crashAfterPromotionIsRecoveredByPostgres() throws Exception {
        Path copy = standbyCopy("abandoned");
        try (Standby standby = Cluster.openStandby(copy, options(DropStrategy.LOOKUP))) {
            standby.resume();
            standby.promote().abandon();
        }
        String log = PostgresServer.recover(PostgresBinaries.judge(), copy, SETTINGS);
        assertTrue(log.contains("not properly shut down") || log.contains("was interrupted"), log);
        assertPostgresTakesOver(copy, 2, atEnd);
    }

    private static Path standbyCopy(String name) {
        Path copy = work.resolve(name);
        ClusterCopy.copy(base, copy);
        ClusterCopy.replaceWal(primary, copy);
        return copy;
    }

    private static ClusterOptions options(DropStrategy strategy) {
        return ClusterOptions.defaults().withDropStrategy(strategy).withFullPageWrites(false);
    }

    private static void assertPostgresTakesOver(
            Path directory, int timeline, SortedMap<String, String> rows) {
        assertTrue(Files.exists(directory.resolve("pg_wal/00000002.history")));
        assertFalse(Files.exists(directory.resolve("postmaster.pid")));
        PostgresInspection.Report report =
                PostgresInspection.inspect(PostgresBinaries.judge(), directory, SETTINGS);
        assertEquals(List.of(), report.complaints());
        assertEquals(timeline, report.timeline());
        assertEquals(rows, report.tables());
    }
}
