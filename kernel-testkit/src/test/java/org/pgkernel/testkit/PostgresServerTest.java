package org.pgkernel.testkit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Statement;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class PostgresServerTest {
    private static WorkDirectory work;
    private static Path template;

    @BeforeAll
    static void initdb() {
        work = WorkDirectory.create("pgkernel-server-test");
        template = work.resolve("template");
        PostgresServer.initdb(PostgresBinaries.judge(), template, true);
    }

    @AfterAll
    static void clean() {
        work.close();
    }

    @Test
    void theJudgeIsPostgres157AndStaysUnpacked() throws Exception {
        PostgresBinaries judge = PostgresBinaries.judge();
        assertEquals("15.7", judge.version());
        assertEquals(15, judge.major());
        assertTrue(Files.isExecutable(judge.program("postgres")));
        assertTrue(
                Files.isSymbolicLink(judge.home().resolve("lib/libpq.so.5")),
                "symbolic links are kept");
        assertTrue(PostgresBinaries.ofMajor(15).isPresent());
        assertTrue(PostgresBinaries.ofMajor(9).isEmpty());
    }

    @Test
    void killedServerLosesNoCommittedRowAndLeavesNoProcess() throws Exception {
        Path data = work.resolve("killed");
        ClusterCopy.copy(template, data);
        long pid;
        try (PostgresServer server =
                PostgresServer.builder(PostgresBinaries.judge(), data)
                        .settings(PostgresServer.quietSettings())
                        .connectable()
                        .start()) {
            pid = server.pid();
            try (Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create table t as select generate_series(1, 1000) g");
            }
            server.kill();
            assertFalse(server.isRunning());
        }
        assertTrue(
                Files.exists(data.resolve("postmaster.pid")),
                "a killed server leaves its lock file");
        assertTrue(ProcessHandle.of(pid).isEmpty());
        String log = PostgresServer.recover(PostgresBinaries.judge(), data, Map.of());
        assertTrue(log.contains("redo done"), log);
        assertFalse(Files.exists(data.resolve("postmaster.pid")));
        PostgresInspection.Report report =
                PostgresInspection.inspect(PostgresBinaries.judge(), data, Map.of());
        assertEquals(java.util.List.of(), report.complaints());
        assertTrue(report.tables().get("postgres.public.t").startsWith("1000 "));
        assertEquals(1, report.timeline());
    }

    @Test
    void serverThatOnlyStartsAndStopsChangesNoRelation() {
        Path data = work.resolve("idle");
        ClusterCopy.copy(template, data);
        PostgresServer.recover(PostgresBinaries.judge(), data, Map.of());
        ClusterComparison.Result result = ClusterComparison.compare(template, data);
        assertTrue(result.equal(), result.describe());
        assertTrue(result.pages() > 2000, result.describe());
    }

    @Test
    void failedStartShowsTheLog() throws Exception {
        Path data = work.resolve("broken");
        ClusterCopy.copy(template, data);
        Files.writeString(data.resolve("PG_VERSION"), "9.1\n");
        PostgresServerException e =
                assertThrows(
                        PostgresServerException.class,
                        () -> PostgresServer.recover(PostgresBinaries.judge(), data, Map.of()));
        assertTrue(
                e.getMessage().contains("initialized by PostgreSQL version 9.1"), e.getMessage());
    }
}
