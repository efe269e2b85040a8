package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.CreateOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableOptions;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/**
 * Clusters in production: one of our own, which PostgreSQL's tools read, and one of PostgreSQL's
 * whose tables we change and which PostgreSQL takes over again.
 */
class PrimaryClusterIT {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("id", "int4"), Attribute.of("word", "text"));

    private final ClusterOptions options = ClusterOptions.defaults().withSharedBuffers(1024);

    @Test
    void postgresToolsReadControlFileAndWalOfAClusterThatWeMade() throws Exception {
        Optional<PostgresBinaries> tools = PostgresBinaries.installed(15);
        Assumptions.assumeTrue(tools.isPresent(), "no PostgreSQL 15 is installed");
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-primary")) {
            Path data = work.resolve("data");
            Cluster.create(data, CreateOptions.defaults().withSystemIdentifier(7123456789L));
            String made = run(tools.get(), "pg_controldata", data.toString());
            assertTrue(made.contains("7123456789"), made);
            assertTrue(made.contains("shut down"), made);
            useOwnCluster(data);
            String control = run(tools.get(), "pg_controldata", data.toString());
            assertTrue(control.contains("shut down"), control);
            assertTrue(control.contains("Data page checksum version:           1"), control);
            String wal =
                    run(
                            tools.get(),
                            "pg_waldump",
                            "--path=" + data.resolve("pg_wal"),
                            "000000010000000000000001");
            for (String expected :
                    List.of(
                            "CHECKPOINT_SHUTDOWN",
                            "NEXTOID",
                            "CREATE base/5/",
                            "INSERT",
                            "RUNNING_XACTS",
                            "CHECKPOINT_ONLINE",
                            "COMMIT")) {
                assertTrue(wal.contains(expected), expected + " is missing in\n" + wal);
            }
        }
    }

    private void useOwnCluster(Path data) {
        try (Cluster cluster = Cluster.open(data, options);
                Backend backend = cluster.newBackend()) {
            backend.begin();
            Table table = backend.createTable("t", COLUMNS, TableOptions.DEFAULT);
            for (int i = 0; i < 100; i++) {
                insert(table, i, "word " + i);
            }
            backend.commit();
            cluster.checkpoint();
            backend.begin();
            insert(table, 100, "x".repeat(10_000));
            backend.commit();
        }
    }

    private static void insert(Table table, int id, String word) {
        RowValues row = table.newRow();
        row.setNumber(0, id);
        row.setText(1, word);
        table.insert(row);
    }

    private static String run(PostgresBinaries tools, String program, String... arguments)
            throws Exception {
        List<String> command = new ArrayList<>();
        command.add(tools.program(program).toString());
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return output;
    }

    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    @DisplayName(
            "PostgreSQL has what we inserted and vacuumed, whether server and kernel are killed or not")
    void postgresTakesItsClusterOverAgain(boolean serverDies, boolean kernelDies) throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-primary")) {
            Path data = work.resolve("data");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), data);
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create schema s");
                statement.execute("create table s.t (id int, word varchar(40), n bigint)");
                statement.execute(
                        "insert into s.t select i, 'pg ' || i, i * 10 from generate_series(1, 500) i");
                statement.execute("delete from s.t where id % 5 = 0");
                stop(server, serverDies);
            }
            try (Cluster cluster = Cluster.open(data, options)) {
                Backend backend = cluster.newBackend("postgres");
                Table table = backend.table("s.t");
                assertEquals(400, rows(backend, table).size());
                backend.begin();
                for (int i = 501; i <= 600; i++) {
                    RowValues row = table.newRow();
                    row.setNumber(0, i);
                    row.setText(1, "ours " + i);
                    row.setNumber(2, i * 10L);
                    table.insert(row);
                }
                backend.commit();
                VacuumResult vacuumed = backend.vacuum("s.t", VacuumOptions.DEFAULT);
                assertEquals(vacuumed.pages(), vacuumed.scannedPages());
                assertEquals(500, vacuumed.liveTuples());
                backend.begin();
                RowValues lost = table.newRow();
                lost.setNumber(0, 1000);
                table.insert(lost);
                if (kernelDies) {
                    cluster.abandon();
                } else {
                    backend.close();
                }
            }
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                assertEquals("500", query(statement, "select count(*) from s.t"));
                assertEquals(
                        "ours 600",
                        query(statement, "select word from s.t where id = 600 and n = 6000"));
                assertEquals("0", query(statement, "select count(*) from s.t where id = 1000"));
                String tuples =
                        query(
                                statement,
                                "select reltuples::int from pg_class where oid = 's.t'::regclass");
                // Nobody waits for what vacuum says of a table; a kill may come before it.
                assertTrue(kernelDies || tuples.equals("500"), tuples);
                statement.execute("create extension amcheck");
                assertEquals("0", query(statement, "select count(*) from verify_heapam('s.t')"));
                statement.execute(
                        "insert into s.t select i, 'again' from generate_series(1, 50) i");
                statement.execute("vacuum s.t");
                assertEquals("550", query(statement, "select count(*) from s.t"));
            }
        }
    }

    private static void stop(PostgresServer server, boolean dies) {
        if (dies) {
            server.kill();
        } else {
            server.stop(PostgresServer.StopMode.FAST);
        }
    }

    private static TreeSet<String> rows(Backend backend, Table table) {
        TreeSet<String> rows = new TreeSet<>();
        RowValues row = table.newRow();
        backend.begin();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                assertEquals("pg " + row.number(0), row.text(1));
                assertEquals(row.number(0) * 10, row.number(2));
                rows.add(row.text(1));
            }
        }
        backend.commit();
        return rows;
    }

    @Test
    void whatCannotBeOpenedOrDoneInAPostgresClusterIsRefusedInOneSentence() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-primary")) {
            Path data = work.resolve("data");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), data);
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create table plain (id int)");
                statement.execute("create table keyed (id int primary key)");
                statement.execute("create table toasted (word text)");
                statement.execute("create unlogged table fleeting (id int)");
                statement.execute("create view seen as select * from plain");
                statement.execute("create table later (id int)");
                statement.execute("insert into later values (1)");
                statement.execute("alter table later add column more int default 7");
                server.stop(PostgresServer.StopMode.FAST);
            }
            try (Cluster cluster = Cluster.open(data, options);
                    Backend backend = cluster.newBackend("postgres")) {
                assertRefused("has an index", () -> backend.table("public.keyed"));
                assertRefused("has a TOAST table", () -> backend.table("public.toasted"));
                assertRefused("is not permanent", () -> backend.table("public.fleeting"));
                assertRefused("is no plain table", () -> backend.table("public.seen"));
                assertRefused("default that older rows", () -> backend.table("public.later"));
                assertRefused("system catalogue", () -> backend.table("pg_catalog.pg_class"));
                assertRefused("no such table", () -> backend.table("public.nothing"));
                assertRefused("no such schema", () -> backend.table("nowhere.plain"));
                assertRefused("with its schema", () -> backend.table("plain"));
                assertRefused("no such database", () -> cluster.newBackend("nowhere"));
                assertRefused("has to be named", cluster::newBackend);
                backend.table("public.plain");
                backend.begin();
                assertRefused(
                        "neither created, dropped nor truncated",
                        () -> backend.createTable("t", COLUMNS, TableOptions.DEFAULT));
                backend.rollback();
            }
        }
    }

    @Test
    @DisplayName("C12: a database whose DROP was interrupted is refused, its neighbours are not")
    void aHalfDroppedDatabaseIsNotOpened() throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-primary")) {
            Path data = work.resolve("data");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), true, 16), data);
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create database half");
                statement.execute("create database whole connection limit 0");
                // What DROP DATABASE writes first of all, in place and flushed.
                statement.execute(
                        "update pg_database set datconnlimit = -2 where datname = 'half'");
                server.kill();
            }
            try (Cluster cluster = Cluster.open(data, options)) {
                assertRefused("DROP DATABASE", () -> cluster.newBackend("half"));
                cluster.newBackend("whole").close();
                cluster.newBackend("postgres").close();
            }
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("drop database half");
                assertEquals(
                        "0",
                        query(
                                statement,
                                "select count(*) from pg_database where datname = 'half'"));
            }
        }
    }

    private static void assertRefused(
            String words, org.junit.jupiter.api.function.Executable call) {
        RefusedException e = assertThrows(RefusedException.class, call);
        assertTrue(e.getMessage().contains(words), e.getMessage());
        assertEquals(-1, e.getMessage().indexOf('\n'));
    }

    private static String query(Statement statement, String sql) throws SQLException {
        try (ResultSet result = statement.executeQuery(sql)) {
            result.next();
            return result.getString(1);
        }
    }

    private static PostgresServer server(Path data) {
        return PostgresServer.builder(PostgresBinaries.judge(), data)
                .settings(PostgresServer.quietSettings())
                .connectable()
                .start();
    }
}
