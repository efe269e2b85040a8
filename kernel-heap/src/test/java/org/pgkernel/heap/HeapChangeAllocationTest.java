package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Hot paths: what is written on the heap's side of an update, a deletion, a lock. */
class HeapChangeAllocationTest {
    private static final int ROWS = 20;

    @Test
    void updatesDeletionsAndLocksAllocateNothing() {
        TupleDescriptor columns =
                new TupleDescriptor(
                        List.of(Attribute.of("id", "int4"), Attribute.of("text", "text")),
                        Set.of("id"),
                        Set.of("id"));
        try (HeapRig rig = new HeapRig(1, 256)) {
            HeapRelation table = rig.table(20000, columns, 50, null);
            HeapRig.Session session = rig.session();
            long[] roots = new long[ROWS];
            RowValues[] rows = new RowValues[2];
            rows[0] = HeapRig.row(table, 7, "x".repeat(40));
            rows[1] = HeapRig.row(table, 7, "y".repeat(60));
            session.begin();
            for (int i = 0; i < ROWS; i++) {
                roots[i] = session.insert(table, 7, "first");
            }
            session.commit();
            assertEquals(0, bytesOf(() -> work(session, table, roots, rows)));
        }
    }

    private static void work(
            HeapRig.Session session, HeapRelation table, long[] roots, RowValues[] rows) {
        session.begin();
        for (int i = 0; i < ROWS; i++) {
            if (!session.fetch.fetchHot(table, roots[i], session.mvcc)) {
                throw new AssertionError("row " + i);
            }
            long tid = session.fetch.tuple().tid();
            session.fetch.close();
            expect(session.locker.lock(table, tid, RowLock.KEY_SHARE, LockWait.NOWAIT, true));
            expect(session.updater.update(table, tid, rows[i & 1], true));
            if (!session.updater.isHot()) {
                roots[i] = session.updater.newTid();
            }
            if (i % 4 == 0) {
                session.nextCommand();
                expect(session.deleter.delete(table, session.updater.newTid(), true));
                roots[i] = session.inserter.insert(table, rows[0]);
            }
        }
        session.session.commit(false);
        session.session.forgetSnapshots();
        session.backend.endTransaction();
    }

    private static void expect(TupleOutcome outcome) {
        if (outcome != TupleOutcome.OK) {
            throw new AssertionError(outcome);
        }
    }

    /** Of most runs: now and then the ring of WAL, or a page of pg_subtrans, is written. */
    private static long bytesOf(Runnable work) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3000; i++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            work.run();
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        return least;
    }
}
