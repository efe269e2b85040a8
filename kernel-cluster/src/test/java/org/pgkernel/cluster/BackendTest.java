package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.testkit.SimulatedDisk;

/** Tables, transactions and what they see, over a simulated disk. */
class BackendTest {
    static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("id", "int4"), Attribute.of("word", "text"));

    private SimulatedDisk disk = new SimulatedDisk(1);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Cluster cluster;
    private Backend backend;

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(disk));
        reopen();
    }

    private void reopen() {
        cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, clock));
        backend = cluster.newBackend();
    }

    /** Power fails: what was not synced may be gone. */
    private void crash(long outcome) {
        disk.crash();
        try {
            cluster.abandon();
        } catch (Error e) {
            // The disk is gone.
        }
        disk = disk.restart(outcome);
        reopen();
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    private Table create(String name) {
        backend.begin();
        Table table = backend.createTable(name, COLUMNS, TableOptions.DEFAULT);
        backend.commit();
        return table;
    }

    private static long insert(Table table, int id, String word) {
        RowValues row = table.newRow();
        row.setNumber(0, id);
        row.setText(1, word);
        return table.insert(row);
    }

    private static List<String> rows(Table table) {
        List<String> found = new ArrayList<>();
        RowValues row = table.newRow();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                found.add(row.number(0) + row.text(1));
            }
        }
        return found;
    }

    private static List<String> rowsIn(Backend backend, String table) {
        Table opened = backend.table(table);
        backend.begin();
        List<String> found = rows(opened);
        backend.commit();
        return found;
    }

    @Test
    void rowsAreThereAfterACleanRestart() {
        Table table = create("t");
        backend.begin();
        long tid = insert(table, 1, "one");
        insert(table, 2, "two");
        backend.commit();
        backend.begin();
        RowValues row = table.newRow();
        assertTrue(table.fetch(tid, row));
        assertEquals("one", row.text(1));
        backend.commit();
        backend.close();
        cluster.close();
        reopen();
        assertEquals(List.of("1one", "2two"), rowsIn(backend, "t"));
    }

    @Test
    void committedRowsSurviveACrashAndOthersDoNot() {
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, 7, 8}) {
            String name = "t" + outcome;
            Table table = create(name);
            backend.begin();
            insert(table, 1, "one");
            backend.commit();
            backend.begin();
            insert(table, 2, "two");
            cluster.checkpoint();
            crash(outcome);
            assertEquals(List.of("1one"), rowsIn(backend, name));
        }
    }

    @Test
    void aTableThatWasRolledBackIsGoneWithItsFiles() {
        backend.begin();
        Table table = backend.createTable("t", COLUMNS, TableOptions.DEFAULT);
        insert(table, 1, "one");
        assertEquals(List.of("1one"), rows(table));
        String file =
                "/data/"
                        + table.lock(org.pgkernel.xact.LockMode.ACCESS_SHARE)
                                .heap()
                                .storage()
                                .path(org.pgkernel.base.ForkNumber.MAIN);
        assertTrue(disk.exists(file));
        backend.rollback();
        assertThrows(RefusedException.class, () -> backend.table("t"));
        cluster.checkpoint();
        assertFalse(disk.exists(file));
        create("t");
    }

    @Test
    void aSavepointTakesBackTablesAndRows() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        backend.savepoint("s");
        insert(table, 2, "two");
        backend.createTable("u", COLUMNS, TableOptions.DEFAULT);
        backend.rollbackTo("s");
        insert(table, 3, "three");
        backend.release("s");
        backend.commit();
        assertEquals(List.of("1one", "3three"), rowsIn(backend, "t"));
        assertThrows(RefusedException.class, () -> backend.table("u"));
    }

    @Test
    void aCallThatFailsLeavesNothingButARollback() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        assertThrows(
                RefusedException.class,
                () -> backend.createTable("t", COLUMNS, TableOptions.DEFAULT));
        assertTrue(backend.hasFailed());
        assertThrows(RefusedException.class, () -> insert(table, 2, "two"));
        RefusedException e = assertThrows(RefusedException.class, backend::commit);
        assertTrue(e.getMessage().contains("rolled back"), e.getMessage());
        assertFalse(backend.inTransaction());
        assertEquals(List.of(), rowsIn(backend, "t"));
    }

    @Test
    void readCommittedSeesEachCommitAndRepeatableReadNoneAfterItsFirstStatement() {
        Table mine = create("t");
        try (Backend other = cluster.newBackend();
                Backend third = cluster.newBackend()) {
            Table theirs = other.table("t");
            Table thirds = third.table("t");
            backend.begin(Isolation.READ_COMMITTED);
            other.begin(Isolation.REPEATABLE_READ);
            assertEquals(List.of(), rows(mine));
            assertEquals(List.of(), rows(theirs));
            third.begin();
            insert(thirds, 1, "one");
            assertEquals(List.of(), rows(mine));
            third.commit();
            assertEquals(List.of("1one"), rows(mine));
            assertEquals(List.of(), rows(theirs));
            insert(theirs, 2, "two");
            assertEquals(List.of("2two"), rows(theirs), "its own");
            other.commit();
            assertEquals(List.of("1one", "2two"), rows(mine));
            backend.commit();
        }
    }

    @Test
    void aStatementDoesNotSeeWhatItChangesItself() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        try (Statement statement = backend.statement()) {
            insert(table, 2, "two");
            assertEquals(List.of("1one"), rows(table));
        }
        assertEquals(List.of("1one", "2two"), rows(table));
        backend.commit();
    }

    @Test
    void aScanKeepsItsSnapshotWhileTheTransactionGoesOn() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        insert(table, 2, "two");
        RowValues row = table.newRow();
        int seen = 0;
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                insert(table, 10 + (int) row.number(0), "again");
                seen++;
            }
        }
        assertEquals(2, seen);
        backend.commit();
        assertEquals(4, rowsIn(backend, "t").size());
    }

    @Test
    @DisplayName(
            "an unlogged table is empty after a crash, and keeps its rows over a clean restart")
    void unloggedTables() {
        backend.begin();
        Table table = backend.createTable("t", COLUMNS, TableOptions.DEFAULT.withUnlogged(true));
        insert(table, 1, "one");
        backend.commit();
        backend.close();
        cluster.close();
        reopen();
        assertEquals(List.of("1one"), rowsIn(backend, "t"));
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, 5}) {
            Table again = backend.table("t");
            backend.begin();
            insert(again, 2, "two");
            backend.commit();
            // Hints on its pages: nothing of them may reach the log.
            rowsIn(backend, "t");
            cluster.checkpoint();
            rowsIn(backend, "t");
            crash(outcome);
            assertEquals(List.of(), rowsIn(backend, "t"));
        }
    }

    @Test
    void numbersAreNotGivenOutTwiceWhateverCrashes() {
        List<Integer> oids = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            oids.add(create("t" + i).oid());
            crash(i);
        }
        assertEquals(oids.stream().distinct().toList(), oids);
    }

    @Test
    void theCatalogueDescribesItself() {
        assertFalse(rowsOfCatalogue().isEmpty());
        backend.close();
        cluster.close();
        reopen();
        assertEquals(List.of("pgk_class", "pgk_attribute"), rowsOfCatalogue());
    }

    private List<String> rowsOfCatalogue() {
        Table table = backend.table("pgk_class");
        backend.begin();
        List<String> names = new ArrayList<>();
        RowValues row = table.newRow();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                names.add(row.text(1));
            }
        }
        backend.commit();
        return names;
    }
}
