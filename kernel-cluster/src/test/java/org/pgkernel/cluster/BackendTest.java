package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.xact.FreezeSettings;
import org.pgkernel.xact.LockMode;

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
        String file = file(table);
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
    void anInsertIsAFirstStatement() {
        Table mine = create("t");
        try (Backend other = cluster.newBackend()) {
            backend.begin(Isolation.REPEATABLE_READ);
            insert(mine, 1, "one");
            other.begin();
            insert(other.table("t"), 2, "two");
            other.commit();
            assertEquals(List.of("1one"), rows(mine));
            backend.commit();
            backend.begin(Isolation.REPEATABLE_READ);
            RowValues row = mine.newRow();
            row.setNumber(0, 3);
            row.setText(1, "three");
            mine.multiInsert(new RowValues[] {row}, 1, null);
            other.begin();
            insert(other.table("t"), 4, "four");
            other.commit();
            assertEquals(List.of("1one", "2two", "3three"), rows(mine));
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

    @Test
    void theCatalogueKeepsWhichColumnsHaveAnIndexAndWhichAreAKey() {
        TupleDescriptor columns =
                new TupleDescriptor(
                        List.of(
                                Attribute.of("id", "int4"),
                                Attribute.of("code", "int4"),
                                Attribute.of("word", "text")),
                        Set.of("id", "code"),
                        Set.of("id"));
        backend.begin();
        backend.createTable("t", columns, TableOptions.DEFAULT);
        backend.commit();
        backend.close();
        cluster.close();
        reopen();
        TupleDescriptor found = backend.table("t").descriptor();
        for (int i = 0; i < columns.count(); i++) {
            assertEquals(columns.isIndexed(i), found.isIndexed(i), "index about column " + i);
            assertEquals(columns.isKey(i), found.isKey(i), "key column " + i);
        }
    }

    @Test
    void vacuumPutsDownWhatItFoundAndTheTransactionLogsOldestXidGoesOn() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        insert(table, 2, "x".repeat(9000));
        backend.commit();
        int before = TestRun.control(disk).checkPointOldestXid();
        for (String each : List.of("t", "pgk_class", "pgk_attribute")) {
            VacuumResult result =
                    backend.vacuum(each, VacuumOptions.DEFAULT.withFreeze(FreezeSettings.FREEZE));
            assertTrue(result.frozenTuples() > 0, each);
        }
        cluster.checkpoint();
        assertTrue(TestRun.control(disk).checkPointOldestXid() > before);
        RowValues row = backend.table("pgk_class").newRow();
        crash(SimulatedDisk.LOSE_ALL);
        Table again = backend.table("t");
        backend.begin();
        Table catalogue = backend.table("pgk_class");
        int found = 0;
        try (TableScan scan = catalogue.scan()) {
            while (scan.next()) {
                scan.read(row);
                if (CatalogRows.ClassRow.of(row).name().equals("t")) {
                    assertEquals(1, CatalogRows.ClassRow.of(row).pages());
                    assertEquals(2, CatalogRows.ClassRow.of(row).tuples());
                    found++;
                }
            }
        }
        assertEquals(1, found);
        RowValues long2 = again.newRow();
        try (TableScan scan = again.scan()) {
            assertTrue(scan.next());
            assertTrue(scan.next());
            scan.read(long2);
            assertEquals(9000, again.value(long2, 1).length);
        }
        backend.commit();
        assertThrows(
                RefusedException.class,
                () -> {
                    backend.begin();
                    backend.vacuum("t", VacuumOptions.DEFAULT);
                });
        backend.rollback();
    }

    private String file(Table table) {
        return "/data/" + table.lock(LockMode.ACCESS_SHARE).heap().storage().path(ForkNumber.MAIN);
    }

    @Test
    @DisplayName(
            "C11 (1): a dropped table's number stays taken until the checkpoint after the drop")
    void aDroppedTableIsGoneAndItsFileStaysEmptyUntilTheCheckpoint() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "one");
        String file = file(table);
        backend.commit();
        cluster.checkpoint();
        assertTrue(disk.content(file).length > 0);
        backend.begin();
        backend.dropTable("t");
        assertThrows(RefusedException.class, () -> backend.table("t"));
        backend.rollback();
        assertEquals(List.of("1one"), rowsIn(backend, "t"));
        backend.begin();
        backend.dropTable("t");
        backend.commit();
        assertThrows(RefusedException.class, () -> rowsIn(backend, "t"));
        backend.begin();
        assertThrows(RefusedException.class, () -> insert(table, 2, "two"));
        backend.rollback();
        assertEquals(0, disk.content(file).length);
        int number = Integer.parseInt(file.substring(file.lastIndexOf('/') + 1));
        assertFalse(cluster.kernelForTests().numbers.isFree(1663, 5, number));
        cluster.checkpoint();
        assertNull(disk.content(file));
        assertTrue(cluster.kernelForTests().numbers.isFree(1663, 5, number));
        create("t");
        assertEquals(List.of(), rowsIn(backend, "t"));
    }

    @Test
    @DisplayName("C11 (1): redo of a drop does not meet another table's file")
    void afterACrashADropIsRedoneAndTheNumberIsNotAnotherTables() {
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, 3, 4, 5}) {
            Table table = create("old");
            backend.begin();
            String oldFile = file(table);
            insert(table, 1, "one");
            backend.commit();
            backend.begin();
            backend.dropTable("old");
            backend.commit();
            Table next = create("next" + outcome);
            backend.begin();
            assertNotEquals(oldFile, file(next));
            insert(next, 2, "two");
            backend.commit();
            crash(outcome);
            assertNull(disk.content(oldFile));
            assertEquals(List.of("2two"), rowsIn(backend, "next" + outcome));
        }
    }

    @Test
    void aTruncatedTableIsEmptyInNewFilesAndARollbackBringsTheOldOnesBack() {
        Table table = create("t");
        backend.begin();
        insert(table, 1, "x".repeat(9000));
        String file = file(table);
        backend.commit();
        backend.begin();
        backend.truncate("t");
        assertEquals(List.of(), rows(table));
        assertNotEquals(file, file(table));
        insert(table, 2, "two");
        assertEquals(List.of("2two"), rows(table));
        backend.rollback();
        backend.begin();
        RowValues row = table.newRow();
        try (TableScan scan = table.scan()) {
            assertTrue(scan.next());
            scan.read(row);
            assertEquals(9000, table.text(row, 1).length());
        }
        backend.savepoint("s");
        backend.truncate("t");
        backend.rollbackTo("s");
        assertEquals(file, file(table));
        backend.truncate("t");
        insert(table, 3, "three");
        backend.commit();
        assertEquals(0, disk.content(file).length);
        crash(SimulatedDisk.LOSE_ALL);
        assertEquals(List.of("3three"), rowsIn(backend, "t"));
        assertNull(disk.content(file));
    }

    @Test
    void anotherBackendFollowsATruncatedTableToItsNewFiles() {
        Table mine = create("t");
        try (Backend other = cluster.newBackend()) {
            Table theirs = other.table("t");
            other.begin();
            insert(theirs, 1, "one");
            other.commit();
            backend.begin();
            backend.truncate("t");
            insert(mine, 2, "two");
            backend.commit();
            other.begin();
            insert(theirs, 3, "three");
            assertEquals(List.of("2two", "3three"), rows(theirs));
            other.commit();
            backend.begin();
            backend.dropTable("t");
            backend.commit();
            other.begin();
            assertThrows(RefusedException.class, () -> rows(theirs));
            other.rollback();
            Table again = create("t");
            assertNotEquals(mine.oid(), again.oid());
            assertEquals(again.oid(), other.table("t").oid());
        }
    }

    @Test
    void anUnloggedTableCanBeTruncated() {
        backend.begin();
        Table table = backend.createTable("t", COLUMNS, TableOptions.DEFAULT.withUnlogged(true));
        insert(table, 1, "one");
        backend.commit();
        backend.begin();
        backend.truncate("t");
        insert(table, 2, "two");
        backend.commit();
        assertEquals(List.of("2two"), rowsIn(backend, "t"));
        crash(SimulatedDisk.KEEP_ALL);
        assertEquals(List.of(), rowsIn(backend, "t"));
    }

    @Test
    void theVacuumWorkerVacuumsATableOfWhichManyRowsWereDeleted() {
        Table table = create("t");
        long[] tids = new long[100];
        backend.begin();
        for (int i = 0; i < tids.length; i++) {
            tids[i] = insert(table, i, "word");
        }
        backend.commit();
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(0, cluster.kernelForTests().vacuumWorker.doWork(), "nothing to do");
        backend.begin();
        for (int i = 0; i < 60; i++) {
            table.delete(tids[i]);
        }
        backend.commit();
        assertEquals(0, cluster.kernelForTests().vacuumWorker.doWork(), "not yet time");
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(1, cluster.kernelForTests().vacuumWorker.doWork());
        clock.pass(2, TimeUnit.MINUTES);
        assertEquals(0, cluster.kernelForTests().vacuumWorker.doWork(), "it was vacuumed");
        VacuumResult after = backend.vacuum("t", VacuumOptions.DEFAULT);
        assertEquals(0, after.deletedTuples() + after.deadItems());
        assertEquals(40, rowsIn(backend, "t").size());
    }

    private List<String> rowsOfCatalogue() {
        Table table = backend.table("pgk_class");
        backend.begin();
        List<String> names = new ArrayList<>();
        RowValues row = table.newRow();
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                names.add(CatalogRows.nameOf(row, 1));
            }
        }
        backend.commit();
        return names;
    }
}
