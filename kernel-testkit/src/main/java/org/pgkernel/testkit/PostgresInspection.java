package org.pgkernel.testkit;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * PostgreSQL's own opinion of a cluster that was shut down cleanly: it starts without redo, amcheck
 * and checksums find nothing, and these are the rows. Changes the directory (starting a server
 * does), so inspect a copy, or after the comparison.
 */
public final class PostgresInspection {
    /**
     * What PostgreSQL found.
     *
     * @param complaints one line each; empty when all is well
     * @param tables rows and a hash of their contents, by {@code database.schema.table}
     * @param timeline the timeline the server runs on
     * @param log the server's log
     */
    public record Report(
            List<String> complaints, SortedMap<String, String> tables, int timeline, String log) {}

    private static final String HEAPS =
            "select c.oid::regclass::text from pg_class c where relkind in ('r', 't', 'm') order by 1";
    private static final String INDEXES =
            "select i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam"
                    + " where a.amname = 'btree' and i.indisvalid and c.relpersistence <> 't' order by 1";

    /** Reading a page through the server verifies its checksum. */
    private static final String ALL_PAGES =
            "select count(p) from pg_class c, unnest(array['main', 'fsm', 'vm']) f, lateral generate_series(0, pg_relation_size(c.oid, f) / 8192 - 1) b,"
                    + " lateral get_raw_page(c.oid::regclass::text, f, b) p where c.relkind in ('r', 't', 'i', 'm', 'S')";

    private static final String USER_TABLES =
            "select c.oid::regclass::text, n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
                    + " where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema') order by 2";

    private final PostgresServer server;
    private final List<String> complaints = new ArrayList<>();
    private final SortedMap<String, String> tables = new TreeMap<>();

    private PostgresInspection(PostgresServer server) {
        this.server = server;
    }

    /**
     * Starts PostgreSQL over the directory and looks at everything in every database that accepts
     * connections.
     *
     * @param settings as the cluster ran with
     * @throws PostgresServerException when the server does not start
     */
    public static Report inspect(
            PostgresBinaries binaries, Path dataDirectory, Map<String, String> settings) {
        try (PostgresServer server =
                PostgresServer.builder(binaries, dataDirectory)
                        .settings(PostgresServer.quietSettings())
                        .settings(settings)
                        .connectable()
                        .start()) {
            PostgresInspection inspection = new PostgresInspection(server);
            inspection.checkStartedWithoutRedo();
            int timeline = inspection.lookAtDatabases();
            server.stop(PostgresServer.StopMode.FAST);
            inspection.checkWithTool(dataDirectory);
            inspection.checkLog();
            return new Report(
                    List.copyOf(inspection.complaints),
                    inspection.tables,
                    timeline,
                    server.logSinceStart());
        }
    }

    /** Just the rows: {@code database.schema.table} to "rows hash", without looking for damage. */
    public static SortedMap<String, String> contents(PostgresServer server) throws SQLException {
        PostgresInspection inspection = new PostgresInspection(server);
        for (String database : inspection.databases()) {
            try (Connection connection = server.connect(database)) {
                inspection.readTables(connection, database);
            }
        }
        return inspection.tables;
    }

    private void checkStartedWithoutRedo() {
        String log = server.logSinceStart();
        if (!log.contains("database system was shut down at")
                || log.contains("redo starts")
                || log.contains("not properly shut down")) {
            complaints.add("the server did redo of its own:\n" + log);
        }
    }

    private void checkLog() {
        for (String line : server.logSinceStart().lines().toList()) {
            // A connection that was closed a moment ago may still be on its way out when the server
            // stops.
            if (line.contains("terminating connection due to administrator command")) {
                continue;
            }
            if (line.contains("WARNING:") || line.contains("PANIC:") || line.contains("FATAL:")) {
                complaints.add("log: " + line);
            }
        }
    }

    private int lookAtDatabases() {
        int timeline = 0;
        try {
            for (String database : databases()) {
                try (Connection connection = server.connect(database);
                        Statement statement = connection.createStatement()) {
                    timeline =
                            (int)
                                    Workloads.number(
                                            connection,
                                            "select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int");
                    readTables(connection, database);
                    statement.execute("create extension if not exists amcheck");
                    statement.execute("create extension if not exists pageinspect");
                    for (String index : names(connection, INDEXES)) {
                        check(
                                statement,
                                database,
                                "select bt_index_check(" + literal(index) + ", true)");
                    }
                    for (String heap : names(connection, HEAPS)) {
                        checkHeap(statement, database, heap);
                    }
                    check(statement, database, ALL_PAGES);
                }
            }
        } catch (SQLException e) {
            throw new PostgresServerException(
                    "the inspection failed: file="
                            + server.dataDirectory()
                            + "\n"
                            + server.logTail(),
                    e);
        }
        return timeline;
    }

    private void readTables(Connection connection, String database) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(USER_TABLES)) {
            while (rows.next()) {
                String key = database + "." + rows.getString(2);
                String query =
                        "select count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) from "
                                + rows.getString(1)
                                + " t";
                try {
                    tables.put(key, Workloads.text(connection, query));
                } catch (SQLException e) {
                    complaints.add(key + ": " + e.getMessage());
                }
            }
        }
    }

    private void check(Statement statement, String database, String query) {
        try (ResultSet rows = statement.executeQuery(query)) {
            while (rows.next()) {}
        } catch (SQLException e) {
            complaints.add(database + ": " + query + ": " + e.getMessage());
        }
    }

    private void checkHeap(Statement statement, String database, String heap) {
        try (ResultSet rows =
                statement.executeQuery(
                        "select blkno, offnum, msg from verify_heapam("
                                + literal(heap)
                                + ", check_toast => true)")) {
            while (rows.next()) {
                complaints.add(
                        database
                                + ": "
                                + heap
                                + " block="
                                + rows.getLong(1)
                                + " item="
                                + rows.getInt(2)
                                + ": "
                                + rows.getString(3));
            }
        } catch (SQLException e) {
            complaints.add(database + ": " + heap + ": " + e.getMessage());
        }
    }

    private List<String> databases() throws SQLException {
        try (Connection connection = server.connect("postgres")) {
            return names(
                    connection, "select datname from pg_database where datallowconn order by 1");
        }
    }

    private static List<String> names(Connection connection, String query) throws SQLException {
        List<String> names = new ArrayList<>();
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(query)) {
            while (rows.next()) {
                names.add(rows.getString(1));
            }
        }
        return names;
    }

    private static String literal(String text) {
        return "'" + text.replace("'", "''") + "'";
    }

    /** pg_checksums, if this system has one of the same major version. */
    private void checkWithTool(Path dataDirectory) {
        Optional<Path> tool = installed(server.binaries().major(), "pg_checksums");
        if (tool.isEmpty()) {
            return;
        }
        Processes.Outcome outcome =
                Processes.run(
                        List.of(tool.get().toString(), "--check", "-D", dataDirectory.toString()),
                        120);
        if (outcome.exitCode() != 0
                && !outcome.output().contains("data checksums are not enabled")) {
            complaints.add("pg_checksums: " + outcome.output().strip());
        }
    }

    /** A program of an installed PostgreSQL: on the PATH, or where Debian and Red Hat put it. */
    static Optional<Path> installed(int major, String program) {
        List<Path> places =
                new ArrayList<>(
                        List.of(
                                Path.of("/usr/lib/postgresql/" + major + "/bin"),
                                Path.of("/usr/pgsql-" + major + "/bin")));
        Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
                .filter(place -> !place.isBlank())
                .map(Path::of)
                .forEach(places::add);
        for (Path place : places) {
            Path file = place.resolve(program);
            if (Files.isExecutable(file)
                    && Processes.run(List.of(file.toString(), "--version"), 10)
                            .output()
                            .contains(") " + major + ".")) {
                return Optional.of(file);
            }
        }
        return Optional.empty();
    }
}
