package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.RowValues;
import org.pgkernel.testkit.SimulatedDisk;

/** What CREATE, DROP and TRUNCATE refuse, see and leave behind. */
class DdlTest {
    private final SimulatedDisk disk = new SimulatedDisk(1);
    private final TestRun.HandClock clock = new TestRun.HandClock();
    private Cluster cluster;
    private Backend backend;

    @BeforeEach
    void open() {
        Cluster.create(TestRun.DATA, TestRun.create(disk));
        cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, clock));
        backend = cluster.newBackend();
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    private Table create(String name) {
        backend.begin();
        Table table = backend.createTable(name, BackendTest.COLUMNS, TableOptions.DEFAULT);
        backend.commit();
        return table;
    }

    private static long insert(Table table, int id) {
        RowValues row = table.newRow();
        row.setNumber(0, id);
        row.setText(1, "word");
        return table.insert(row);
    }

    private static int count(Table table) {
        int rows = 0;
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                rows++;
            }
        }
        return rows;
    }

    private void assertRefused(String part, Runnable call) {
        RefusedException e = assertThrows(RefusedException.class, call::run);
        assertTrue(e.getMessage().contains(part), e.getMessage());
        backend.rollback();
    }

    /** Dropped under its table it would leave that one unreadable. */
    @Test
    void aToastTableIsNotFoundByName() {
        Table table = create("t");
        String toast = "pg_toast_" + table.oid();
        backend.begin();
        assertRefused("no such table", () -> backend.dropTable(toast));
        backend.begin();
        assertRefused("no such table", () -> backend.truncate(toast));
        assertRefused("no such table", () -> backend.table(toast));
        Table mine = create(toast);
        assertEquals(mine.oid(), backend.table(toast).oid());
        backend.begin();
        insert(backend.table("t"), 1);
        backend.commit();
    }

    /** It would be stored up to the zero, or with another sign, as somebody else's name. */
    @Test
    void aNameThatCannotBeStoredAsItIsIsRefused() {
        backend.begin();
        assertRefused(
                "name",
                () -> backend.createTable("a\0b", BackendTest.COLUMNS, TableOptions.DEFAULT));
        backend.begin();
        assertRefused(
                "name",
                () -> backend.createTable("a\uD800", BackendTest.COLUMNS, TableOptions.DEFAULT));
    }

    /**
     * As in PostgreSQL, where such a statement takes a snapshot as any other does
     * (PlannedStmtRequiresSnapshot, pquery.c).
     */
    @Test
    void createAndTruncateAsTheFirstStatementFixTheSnapshotAtRepeatableRead() {
        Table seen = create("seen");
        create("emptied");
        create("dropped");
        Backend other = cluster.newBackend();
        List<Runnable> statements =
                List.of(
                        () -> backend.truncate("emptied"),
                        () ->
                                backend.createTable(
                                        "made", BackendTest.COLUMNS, TableOptions.DEFAULT),
                        () -> backend.dropTable("dropped"));
        for (int i = 0; i < statements.size(); i++) {
            backend.begin(Isolation.REPEATABLE_READ);
            statements.get(i).run();
            other.begin();
            insert(other.table("seen"), i);
            other.commit();
            assertEquals(i, count(seen), "statement " + i);
            backend.commit();
        }
    }

    @Test
    void aTableForWhichThereIsNoXidLeavesNoFile() {
        List<String> before = files();
        // As near to the end of the xids as nobody may go.
        cluster.kernelForTests().primary.modules().counters().nextFullXid(0x7FFF_FFF0L);
        backend.begin();
        assertRefused(
                "no transaction id",
                () -> backend.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT));
        assertEquals(before, files());
    }

    private List<String> files() {
        return disk.list(TestRun.DATA + "/base/5").stream().sorted().toList();
    }
}
