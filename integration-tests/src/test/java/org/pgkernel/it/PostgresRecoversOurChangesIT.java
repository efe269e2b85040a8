package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.Lsn;
import org.pgkernel.cluster.Backend;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.Table;
import org.pgkernel.cluster.TableScan;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.testkit.ClusterCopy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.WorkDirectory;

/**
 * Our kernel changes a table of a PostgreSQL cluster in every way it knows, logs it, and is killed:
 * PostgreSQL 15 recovers the cluster from our WAL, has the rows, and decodes every record.
 */
class PostgresRecoversOurChangesIT {
    private static final int THEIRS = 600;
    private final Map<Integer, String> expected = new TreeMap<>();

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void everyKindOfChangeIsRecovered(boolean checksums) throws Exception {
        try (WorkDirectory work = WorkDirectory.create("pgkernel-it-changes")) {
            Path data = work.resolve("data");
            ClusterCopy.copy(Templates.of(PostgresBinaries.judge(), checksums, 16), data);
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                statement.execute("create table t (id int, word varchar(60))");
                statement.execute(
                        "insert into t select i, 'pg ' || i from generate_series(1, "
                                + THEIRS
                                + ") i");
                server.stop(PostgresServer.StopMode.FAST);
            }
            for (int id = 1; id <= THEIRS; id++) {
                expected.put(id, "pg " + id);
            }
            long from;
            try (Cluster cluster =
                    Cluster.open(data, ClusterOptions.defaults().withSharedBuffers(128))) {
                from = cluster.report().redoTo();
                change(cluster);
                cluster.abandon();
            }
            try (PostgresServer server = server(data);
                    Connection connection = server.connect("postgres");
                    Statement statement = connection.createStatement()) {
                assertTrue(server.logSinceStart().contains("redo done"), server.logSinceStart());
                Map<Integer, String> found = new TreeMap<>();
                try (ResultSet rows = statement.executeQuery("select id, word from t")) {
                    while (rows.next()) {
                        assertEquals(null, found.put(rows.getInt(1), rows.getString(2)));
                    }
                }
                assertEquals(expected, found);
                statement.execute("create extension amcheck");
                assertEquals(
                        "0 ",
                        query(
                                statement,
                                "select count(*)||' '||coalesce(min(msg),'') from verify_heapam('t')"));
                decode(statement, from);
                statement.execute("update t set word = word || '!'");
                statement.execute("vacuum freeze t");
                assertEquals(
                        Integer.toString(expected.size()),
                        query(statement, "select count(*) from t where word like '%!'"));
            }
        }
    }

    /** Every record of ours has a text, and all kinds that were to be made are there. */
    private static void decode(Statement statement, long from) throws SQLException {
        statement.execute("create extension pg_walinspect");
        TreeMap<String, Long> kinds = new TreeMap<>();
        try (ResultSet records =
                statement.executeQuery(
                        "select resource_manager||'/'||record_type, count(*), count(description)"
                                + " from pg_get_wal_records_info_till_end_of_wal('"
                                + Lsn.format(from)
                                + "') group by 1")) {
            while (records.next()) {
                assertEquals(records.getLong(2), records.getLong(3), records.getString(1));
                kinds.put(records.getString(1), records.getLong(2));
            }
        }
        for (String kind :
                new String[] {
                    "Heap/INSERT",
                    "Heap/DELETE",
                    "Heap/HOT_UPDATE",
                    "Heap/UPDATE",
                    "Heap/LOCK",
                    "Heap2/MULTI_INSERT",
                    "Heap2/PRUNE",
                    "Heap2/VISIBLE",
                    "Transaction/COMMIT",
                    "Transaction/ABORT",
                    "XLOG/CHECKPOINT_ONLINE",
                    "Standby/RUNNING_XACTS"
                }) {
            assertTrue(
                    kinds.keySet().stream().anyMatch(found -> found.startsWith(kind)),
                    kind + " is missing in " + kinds);
        }
    }

    private void change(Cluster cluster) {
        Backend backend = cluster.newBackend("postgres");
        Table table = backend.table("public.t");
        RowValues row = table.newRow();
        insert(backend, table, row);
        backend.begin();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                int id = (int) row.number(0);
                if (id % 7 == 0) {
                    assertEquals(TupleOutcome.OK, table.delete(scan.tid()));
                    expected.remove(id);
                } else if (id % 3 == 0) {
                    update(table, scan.tid(), row, "ours " + "w".repeat(id % 50));
                } else if (id % 11 == 0) {
                    table.lock(scan.tid(), RowLock.SHARE, LockWait.WAIT);
                }
            }
        }
        backend.commit();
        backend.vacuum("public.t", VacuumOptions.DEFAULT);
        cluster.checkpoint();
        // Room was made: these stay on their pages.
        backend.begin();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                if ((int) row.number(0) % 4 == 0) {
                    update(table, scan.tid(), row, "hot");
                }
            }
        }
        backend.commit();
        backend.begin();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                table.delete(scan.tid());
            }
        }
        backend.rollback();
        backend.begin();
        row.clear();
        row.setNumber(0, 5000);
        row.setText(1, "last");
        table.insert(row);
        expected.put(5000, "last");
        backend.commit();
        backend.begin();
        row.clear();
        row.setNumber(0, -1);
        row.setText(1, "under way when the kernel is killed");
        table.insert(row);
    }

    private void insert(Backend backend, Table table, RowValues row) {
        backend.begin();
        for (int id = 1001; id <= 1100; id++) {
            row.clear();
            row.setNumber(0, id);
            row.setText(1, "one " + id);
            table.insert(row);
            expected.put(id, "one " + id);
        }
        RowValues[] many = new RowValues[300];
        for (int i = 0; i < many.length; i++) {
            int id = 2001 + i;
            many[i] = table.newRow();
            many[i].setNumber(0, id);
            many[i].setText(1, "many " + id);
            expected.put(id, "many " + id);
        }
        table.multiInsert(many, many.length, null);
        backend.commit();
    }

    private void update(Table table, long tid, RowValues row, String word) {
        row.setText(1, word);
        assertEquals(TupleOutcome.OK, table.update(tid, row));
        expected.put((int) row.number(0), word);
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
