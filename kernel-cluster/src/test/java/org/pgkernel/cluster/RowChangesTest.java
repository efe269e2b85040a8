package org.pgkernel.cluster;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.base.error.SerializationException;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.testkit.SimulatedDisk;

/** Updates, deletions and row locks of two backends, at both isolations. */
class RowChangesTest {
    private final SimulatedDisk disk = new SimulatedDisk(1);
    private Cluster cluster;
    private Backend a;
    private Backend b;
    private Table inA;
    private Table inB;
    private long tid;

    @BeforeEach
    void oneRow() {
        Cluster.create(TestRun.DATA, TestRun.create(disk));
        cluster = Cluster.open(TestRun.DATA, TestRun.options(disk, new TestRun.HandClock()));
        a = cluster.newBackend();
        b = cluster.newBackend();
        a.begin();
        inA = a.createTable("t", BackendTest.COLUMNS, TableOptions.DEFAULT);
        tid = inA.insert(row(inA, 1, "one"));
        a.commit();
        inB = b.table("t");
    }

    @AfterEach
    void close() {
        cluster.abandon();
    }

    private static RowValues row(Table table, int id, String word) {
        RowValues row = table.newRow();
        row.setNumber(0, id);
        row.setText(1, word);
        return row;
    }

    private static List<String> rows(Backend backend, Table table) {
        List<String> found = new ArrayList<>();
        RowValues row = table.newRow();
        boolean own = !backend.inTransaction();
        if (own) {
            backend.begin();
        }
        try (TableScan scan = table.scan()) {
            while (scan.next()) {
                scan.read(row);
                found.add(row.number(0) + row.text(1));
            }
        }
        if (own) {
            backend.commit();
        }
        return found;
    }

    @Test
    void anUpdateIsSeenOnceItIsCommitted() {
        a.begin();
        assertEquals(TupleOutcome.OK, inA.update(tid, row(inA, 1, "uno")));
        assertEquals(List.of("1uno"), rows(a, inA));
        assertEquals(List.of("1one"), rows(b, inB));
        a.commit();
        assertEquals(List.of("1uno"), rows(b, inB));
    }

    @Test
    void aDeletionIsUndoneByARollback() {
        a.begin();
        assertEquals(TupleOutcome.OK, inA.delete(tid));
        assertEquals(List.of(), rows(a, inA));
        a.rollback();
        assertEquals(List.of("1one"), rows(a, inA));
    }

    @Test
    void whoComesLaterAtReadCommittedGoesOnFromTheNewestVersion() {
        b.begin();
        assertEquals(List.of("1one"), rows(b, inB));
        a.begin();
        inA.update(tid, row(inA, 1, "uno"));
        a.commit();
        a.begin();
        inA.update(inA.newTid(), row(inA, 1, "eins"));
        a.commit();
        assertEquals(TupleOutcome.UPDATED, inB.update(tid, row(inB, 1, "lost")));
        RowValues newest = inB.newRow();
        assertEquals(
                TupleOutcome.OK, inB.lockLatest(tid, RowLock.NO_KEY_UPDATE, LockWait.WAIT, newest));
        assertEquals("eins", newest.text(1));
        assertEquals(TupleOutcome.OK, inB.update(inB.newTid(), row(inB, 1, "eins, zwei")));
        b.commit();
        assertEquals(List.of("1eins, zwei"), rows(a, inA));
    }

    @Test
    void whoComesLaterAtReadCommittedFindsTheRowDeleted() {
        b.begin();
        a.begin();
        inA.update(tid, row(inA, 1, "uno"));
        inA.delete(inA.newTid());
        a.commit();
        assertEquals(
                TupleOutcome.DELETED,
                inB.lockLatest(tid, RowLock.UPDATE, LockWait.WAIT, inB.newRow()));
        b.commit();
    }

    @Test
    void whoComesLaterAtRepeatableReadFails() {
        b.begin(Isolation.REPEATABLE_READ);
        assertEquals(List.of("1one"), rows(b, inB));
        a.begin();
        inA.update(tid, row(inA, 1, "uno"));
        a.commit();
        SerializationException failure =
                assertThrows(
                        SerializationException.class, () -> inB.update(tid, row(inB, 1, "lost")));
        assertTrue(failure.mayRetry());
        assertTrue(failure.getMessage().endsWith("table=t row=(0,1)"), failure.getMessage());
        assertTrue(b.hasFailed());
        b.rollback();
        assertEquals(List.of("1uno"), rows(b, inB));
    }

    @Test
    void aLockedRowIsRefusedOrSkippedByWhoDoesNotWait() {
        a.begin();
        assertEquals(TupleOutcome.OK, inA.lock(tid, RowLock.SHARE, LockWait.WAIT));
        b.begin();
        assertEquals(TupleOutcome.OK, inB.lock(tid, RowLock.SHARE, LockWait.NOWAIT));
        assertEquals(TupleOutcome.WOULD_BLOCK, inB.lock(tid, RowLock.UPDATE, LockWait.SKIP_LOCKED));
        assertThrows(
                LockNotAvailableException.class,
                () -> inB.lock(tid, RowLock.UPDATE, LockWait.NOWAIT));
        b.rollback();
        a.commit();
    }

    @Test
    void aKeyShareLockHoldsOnTheVersionThatAnUpdateLeaves() {
        for (Isolation isolation : Isolation.values()) {
            a.begin();
            tid = inA.insert(row(inA, 2, "two"));
            a.commit();
            a.begin();
            inA.update(tid, row(inA, 2, "dos"));
            b.begin(isolation);
            assertEquals(TupleOutcome.OK, inB.lock(tid, RowLock.KEY_SHARE, LockWait.NOWAIT));
            a.commit();
            a.begin();
            assertEquals(
                    TupleOutcome.WOULD_BLOCK,
                    inA.lock(inA.newTid(), RowLock.UPDATE, LockWait.SKIP_LOCKED),
                    "at " + isolation);
            a.rollback();
            b.commit();
        }
    }

    @Test
    void aPlaceWithoutARowIsRefusedByName() {
        a.begin();
        RefusedException failure = assertThrows(RefusedException.class, () -> inA.delete(tid + 1));
        assertTrue(failure.getMessage().endsWith("table=t row=(0,2)"), failure.getMessage());
        a.rollback();
    }

    @Test
    void ownChangesOfOneStatementAreNotChangedTwice() {
        a.begin();
        try (Statement statement = a.statement()) {
            assertEquals(TupleOutcome.OK, inA.update(tid, row(inA, 1, "uno")));
            assertEquals(TupleOutcome.SELF_MODIFIED, inA.update(tid, row(inA, 1, "due")));
        }
        assertEquals(List.of("1uno"), rows(a, inA));
        a.commit();
    }
}
