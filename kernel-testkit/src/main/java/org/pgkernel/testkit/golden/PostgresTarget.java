package org.pgkernel.testkit.golden;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.pgkernel.testkit.PostgresServer;

/**
 * Golden scripts on a real PostgreSQL, the judge of what a kernel makes of them. A step waits if
 * the server says that another session is in its way (pg_blocking_pids).
 *
 * <p>Who waits looks for a deadlock once, {@code deadlock_timeout} after the wait began, and logs
 * that it waits on. Only then does it count as blocked: so whoever closes a circle finds it, and is
 * the one to fail, as in a kernel that looks at once.
 */
public final class PostgresTarget implements ScriptTarget, AutoCloseable {
    private static final Pattern WAIT =
            Pattern.compile("process (\\d+) (still waiting|avoided deadlock|acquired) ");

    private final PostgresServer server;
    private final Connection control;
    private final Object change = new Object();

    /** Connections are used again: making one takes longer than a script. */
    private final List<Connection> free = new ArrayList<>();

    private final List<PostgresSession> open = new ArrayList<>();

    /** Servers' processes whose present wait, if they wait, was found to be no deadlock. */
    private final Set<Integer> looked = new HashSet<>();

    private long logRead;

    /**
     * @param server connectable
     */
    public PostgresTarget(PostgresServer server) throws SQLException {
        this.server = server;
        this.control = server.connect("postgres");
    }

    @Override
    public String alone(List<GoldenScript.Statement> statements) {
        List<String> results = new ArrayList<>();
        for (GoldenScript.Statement statement : statements) {
            try {
                String result = execute(control, statement.text());
                if (!result.equals(ThreadedSession.OK)) {
                    results.add(result);
                }
            } catch (SQLException e) {
                throw new IllegalStateException(statement.text(), e);
            }
        }
        return String.join(" ", results);
    }

    @Override
    public ScriptSession open(String name, String level) {
        try {
            Connection connection = free.isEmpty() ? connect() : free.removeLast();
            PostgresSession session = new PostgresSession(name, level, connection);
            open.add(session);
            return session;
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private Connection connect() throws SQLException {
        Connection connection = server.connect("postgres");
        // Rows in the order of the heap, as a kernel without indexes finds them.
        execute(connection, "set enable_indexscan = off");
        execute(connection, "set enable_bitmapscan = off");
        execute(connection, "set enable_indexonlyscan = off");
        execute(connection, "set deadlock_timeout = '1ms'");
        execute(connection, "set log_lock_waits = on");
        return connection;
    }

    @Override
    public void awaitChange() {
        ThreadedSession.awaitChange(change);
    }

    @Override
    public void closeSessions() {
        // Who waits goes on only when the others have let go.
        for (PostgresSession session : open) {
            if (!session.finished()) {
                session.cancel();
            }
        }
        open.forEach(ThreadedSession::close);
        open.clear();
    }

    @Override
    public void close() throws SQLException {
        closeSessions();
        for (Connection connection : free) {
            connection.close();
        }
        control.close();
    }

    /** Carries out one statement and tells its result as scripts do. */
    public static String execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            if (statement.execute(sql)) {
                try (ResultSet rows = statement.getResultSet()) {
                    return rows(rows);
                }
            }
            int count = statement.getUpdateCount();
            boolean counts = sql.matches("(insert|update|delete)\\b.*");
            return counts ? count(count) : ThreadedSession.OK;
        }
    }

    /** How a count of rows is told. */
    public static String count(int rows) {
        return rows == 1 ? "1 row" : rows + " rows";
    }

    /** How rows are told: sorted, long text as its first letter, length and CRC. */
    public static String rows(List<List<Object>> rows) {
        List<String> all = new ArrayList<>();
        for (List<Object> row : rows) {
            all.add(
                    row.stream()
                            .map(PostgresTarget::shortened)
                            .collect(Collectors.joining(",", "(", ")")));
        }
        Collections.sort(all);
        return all.isEmpty() ? "none" : String.join("", all);
    }

    private static String shortened(Object value) {
        String text = String.valueOf(value);
        if (text.length() <= 10) {
            return text;
        }
        CRC32 crc = new CRC32();
        crc.update(text.getBytes(StandardCharsets.UTF_8));
        return "%c*%d#%08x".formatted(text.charAt(0), text.length(), crc.getValue());
    }

    private static String rows(ResultSet set) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        int columns = set.getMetaData().getColumnCount();
        while (set.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= columns; i++) {
                row.add(set.getObject(i));
            }
            rows.add(row);
        }
        return rows(rows);
    }

    private void readLog() {
        try (RandomAccessFile log = new RandomAccessFile(server.log().toFile(), "r")) {
            log.seek(logRead);
            byte[] bytes = new byte[(int) (log.length() - logRead)];
            log.readFully(bytes);
            String text = new String(bytes, StandardCharsets.UTF_8);
            int end = text.lastIndexOf('\n') + 1;
            logRead += text.substring(0, end).getBytes(StandardCharsets.UTF_8).length;
            for (Matcher line = WAIT.matcher(text.substring(0, end)); line.find(); ) {
                int pid = Integer.parseInt(line.group(1));
                if (line.group(2).equals("acquired")) {
                    looked.remove(pid);
                } else {
                    looked.add(pid);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private final class PostgresSession extends ThreadedSession {
        private final String level;
        private final Connection connection;
        private final int pid;

        PostgresSession(String name, String level, Connection connection) throws SQLException {
            super(name, change);
            this.level = level;
            this.connection = connection;
            this.pid = connection.unwrap(org.postgresql.PGConnection.class).getBackendPID();
        }

        @Override
        public boolean blocked() {
            try (Statement statement = control.createStatement();
                    ResultSet row =
                            statement.executeQuery(
                                    "select cardinality(pg_blocking_pids(" + pid + "))")) {
                row.next();
                // In this order: what was logged of an earlier wait is in the log by now.
                if (row.getInt(1) == 0) {
                    return false;
                }
                readLog();
                return looked.contains(pid);
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        protected String execute(GoldenScript.Statement statement) throws Exception {
            String sql =
                    switch (statement.parsed()) {
                        case ScriptStatement.Begin begin -> "begin isolation level " + level;
                        default -> statement.text();
                    };
            try {
                return PostgresTarget.execute(connection, sql);
            } catch (SQLException e) {
                throw new Failure(
                        switch (e.getSQLState()) {
                            case "40001" -> "serialization failure";
                            case "40P01" -> "deadlock";
                            case "55P03" -> "lock not available";
                            default -> e.getMessage();
                        });
            }
        }

        void cancel() {
            try {
                PostgresTarget.execute(control, "select pg_cancel_backend(" + pid + ")");
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        protected void release() throws SQLException {
            PostgresTarget.execute(connection, "rollback");
            free.add(connection);
        }
    }
}
