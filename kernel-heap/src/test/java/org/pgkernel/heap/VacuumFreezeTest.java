package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.fsm.VisibilityMap.VALID_BITS;

import java.util.List;
import java.util.TreeMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.xact.FreezeSettings;

/** What vacuum freezes, and what it then says about the relation's oldest ids. */
final class VacuumFreezeTest {
    private static final VacuumOptions FREEZE =
            VacuumOptions.DEFAULT.withFreeze(FreezeSettings.FREEZE);

    private final VacuumRig v = new VacuumRig(4);
    private final VacuumRig.Worker one = v.worker();
    private final VacuumRig.Worker two = v.worker();
    private final VacuumRig.Worker three = v.worker();

    @AfterEach
    void close() {
        v.close();
    }

    private int nextXid() {
        return (int) v.rig.transactions.nextFullXid();
    }

    private int nextMulti() {
        return v.rig.transactions.multiXacts().nextMulti();
    }

    private int xmax(long tid) {
        UnsafeBuffer page = v.rig.page(v.table.storage(), ForkNumber.MAIN, TupleId.block(tid));
        return HeapTupleHeader.xmax(page, HeapPage.tupleAt(page, TupleId.offset(tid)));
    }

    private void lockByBoth(long tid, RowLock lock) {
        one.session.begin();
        two.session.begin();
        assertEquals(TupleOutcome.OK, one.session.lock(v.table, tid, lock));
        assertEquals(TupleOutcome.OK, two.session.lock(v.table, tid, lock));
    }

    @Test
    void nobodyAsksAboutTheTransactionsOfAFrozenRow() {
        List<Long> tids = one.fill(5, "row");
        one.session.begin();
        one.session.insert(v.table, 6, "aborted");
        one.session.rollback();
        one.session.begin();
        one.session.delete(v.table, tids.get(1));
        one.session.rollback();
        one.session.begin();
        one.session.lock(v.table, tids.get(2), RowLock.UPDATE);
        one.session.commit();
        VacuumResult result = one.vacuum(FREEZE, null);
        assertEquals(5, result.frozenTuples());
        assertEquals(nextXid(), result.frozenXid());
        assertEquals(VALID_BITS, v.bits(0));

        TupleVisibility strict =
                new TupleVisibility(new NoStatus(), new NoMultis(), new ComboCommandIds());
        Snapshot old =
                new Snapshot() {
                    @Override
                    public boolean isInProgress(int xid) {
                        throw new AssertionError("asked about " + xid);
                    }

                    @Override
                    public int commandId() {
                        return 0;
                    }
                };
        UnsafeBuffer page = v.rig.page(v.table.storage(), ForkNumber.MAIN, 0);
        int seen = 0;
        for (int i = 1; i <= Page.maxOffsetNumber(page); i++) {
            if (Page.lpIsNormal(Page.itemId(page, i))) {
                assertTrue(
                        strict.satisfiesMvcc(page, HeapPage.tupleAt(page, i), old, HintBits.NONE));
                seen++;
            }
        }
        assertEquals(5, seen);
        v.check();
        v.checkEveryCut();
    }

    private static final class NoStatus implements TransactionStatus {
        @Override
        public boolean isCurrent(int xid) {
            throw new AssertionError("asked about " + xid);
        }

        @Override
        public boolean isInProgress(int xid) {
            throw new AssertionError("asked about " + xid);
        }

        @Override
        public boolean didCommit(int xid) {
            throw new AssertionError("asked about " + xid);
        }

        @Override
        public long unflushedCommitLsn(int xid) {
            throw new AssertionError("asked about " + xid);
        }
    }

    private static final class NoMultis implements MultiXacts {
        @Override
        public void members(int multi, Members into) {
            throw new AssertionError("asked about multixact " + multi);
        }

        @Override
        public int create(Members members) {
            throw new AssertionError("a multixact is made");
        }
    }

    @Test
    void aMultixactOfLockersThatHaveEndedGoes() {
        long tid = one.fill(1, "row").getFirst();
        int before = nextMulti();
        lockByBoth(tid, RowLock.SHARE);
        assertEquals(before, xmax(tid));
        one.session.commit();
        two.session.rollback();
        VacuumResult result = one.vacuum(FREEZE, null);
        assertEquals(0, xmax(tid));
        assertEquals(1, result.frozenTuples());
        assertEquals(nextMulti(), result.minMulti());
        assertEquals(VALID_BITS, v.bits(0));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void aMultixactWithARunningLockerStaysAndSoDoesItsAge() {
        long tid = one.fill(1, "row").getFirst();
        lockByBoth(tid, RowLock.KEY_SHARE);
        int multi = xmax(tid);
        one.session.commit();
        VacuumResult result = three.vacuum(FREEZE, null);
        assertEquals(multi, xmax(tid));
        assertEquals(multi, result.minMulti());
        assertTrue(result.frozenXid() != 0 && result.frozenXid() < nextXid());
        assertFalse(v.bits(0) == VALID_BITS);
        // Still locked: nobody else may delete it.
        three.session.begin();
        assertEquals(TupleOutcome.BEING_MODIFIED, three.session.delete(v.table, tid));
        three.session.rollback();
        two.session.commit();
        result = three.vacuum(FREEZE, null);
        assertEquals(0, xmax(tid));
        assertEquals(nextMulti(), result.minMulti());
        assertEquals(VALID_BITS, v.bits(0));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void anUpdateBesideALockIsFrozenLikeAnyOther() {
        long tid = one.fill(1, "row").getFirst();
        one.session.begin();
        two.session.begin();
        assertEquals(TupleOutcome.OK, one.session.lock(v.table, tid, RowLock.KEY_SHARE));
        assertEquals(TupleOutcome.OK, two.session.update(v.table, tid, 1, "new"));
        two.session.commit();
        // The updater has committed, the locker runs: its xid is older than the update's.
        VacuumResult result = three.vacuum(FREEZE, null);
        assertEquals(1, three.rows().size());
        assertTrue(result.frozenXid() < nextXid());
        one.session.commit();
        result = three.vacuum(FREEZE, null);
        assertEquals(nextXid(), result.frozenXid());
        assertEquals(nextMulti(), result.minMulti());
        assertEquals("[1, new]", three.rows().firstEntry().getValue());
        assertEquals(VALID_BITS, v.bits(0));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void anOldMultixactMakesAVacuumAggressive() {
        long tid = one.fill(1, "row").getFirst();
        lockByBoth(tid, RowLock.SHARE);
        one.session.commit();
        two.session.commit();
        VacuumOptions multisOnly =
                VacuumOptions.DEFAULT.withFreeze(new FreezeSettings(50_000_000, 150_000_000, 0, 0));
        VacuumResult result = one.vacuum(multisOnly, null);
        assertTrue(result.aggressive());
        assertEquals(0, xmax(tid));
        assertEquals(nextMulti(), result.minMulti());
        assertFalse(one.vacuum(VacuumOptions.DEFAULT, null).aggressive());
    }

    @Test
    void aPageInUseIsWaitedForOnAccountOfItsMultixactToo() throws Exception {
        long tid = one.fill(1, "row").getFirst();
        one.vacuum(FREEZE, null);
        lockByBoth(tid, RowLock.SHARE);
        one.session.commit();
        two.session.commit();
        int pinned =
                two.session.buffers.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        VacuumOptions lazy =
                VacuumOptions.DEFAULT.withFreeze(
                        new FreezeSettings(50_000_000, 150_000_000, 0, 150_000_000));
        int multi = xmax(tid);
        VacuumResult result = one.vacuum(lazy, null);
        assertFalse(result.aggressive());
        assertEquals(multi, xmax(tid), "not waited for");
        assertEquals(multi, result.minMulti());
        Thread vacuum = new Thread(() -> one.vacuum(FREEZE, null));
        vacuum.start();
        while (vacuum.getState() != Thread.State.WAITING
                && vacuum.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        assertEquals(multi, xmax(tid));
        two.session.buffers.release(pinned);
        vacuum.join();
        assertEquals(0, xmax(tid));
    }

    /** What {@link PageFreezer#wouldFreeze} says of the table's only page. */
    private boolean wouldFreeze(int cutoffXid, int cutoffMulti) {
        UnsafeBuffer page = v.rig.page(v.table.storage(), ForkNumber.MAIN, 0);
        three.session.begin();
        try {
            PageFreezer freezer =
                    new PageFreezer(three.session.backend.status, three.session.backend.multis);
            return freezer.wouldFreeze(
                    page,
                    new PageFreezer.Limits(3, 1, cutoffXid, cutoffMulti),
                    nextXid(),
                    nextMulti());
        } finally {
            three.session.rollback();
        }
    }

    @Test
    void anOldXminAnOldXmaxAnOldMultixactOrAnOldMemberWouldBeFrozen() {
        long tid = one.fill(1, "row").getFirst();
        int xmin = nextXid() - 1;
        assertFalse(wouldFreeze(xmin, 1));
        assertTrue(wouldFreeze(xmin + 1, 1), "xmin");
        one.vacuum(FREEZE, null);
        assertFalse(wouldFreeze(nextXid(), nextMulti()), "frozen");
        one.session.begin();
        one.session.lock(v.table, tid, RowLock.UPDATE);
        one.session.commit();
        int xmax = xmax(tid);
        assertFalse(wouldFreeze(xmax, 1));
        assertTrue(wouldFreeze(xmax + 1, 1), "xmax");
        one.vacuum(FREEZE, null);
        lockByBoth(tid, RowLock.SHARE);
        one.session.commit();
        two.session.commit();
        int multi = xmax(tid);
        int oldest = nextXid() - 2;
        assertFalse(wouldFreeze(oldest, multi));
        assertTrue(wouldFreeze(oldest, multi + 1), "multixact");
        assertTrue(wouldFreeze(oldest + 1, multi), "member");
    }

    @Test
    @DisplayName("C22 a snapshot that ends while its page is vacuumed changes no verdict half-way")
    void theHorizonStandsStill() {
        for (int endsAt = 0; endsAt < 2; endsAt++) {
            long root = one.fill(1, "first").getFirst();
            one.session.begin();
            one.session.update(v.table, root, 1, "second");
            one.session.commit();
            VacuumRig.Worker reader = v.worker();
            reader.session.begin();
            reader.session.rows(v.table, reader.session.mvcc);
            one.session.begin();
            one.session.update(v.table, one.session.updater.newTid(), 1, "third");
            one.session.commit();
            long live = one.session.updater.newTid();
            boolean early = endsAt == 0;
            v.listener =
                    new VacuumListener() {
                        @Override
                        public void atBlock(HeapRelation relation, int block, int blocks) {
                            if (early && reader.session.session.inTransaction()) {
                                reader.session.rollback();
                            }
                        }
                    };
            VacuumResult result = two.vacuum();
            // The horizon is the one that the vacuum began with.
            assertEquals(1, result.recentlyDeadTuples());
            if (!early) {
                reader.session.rollback();
            }
            v.listener = VacuumListener.NONE;
            two.fill(1, "another key");
            TreeMap<Long, String> rows = two.rows();
            two.session.begin();
            assertTrue(two.session.fetch.fetchHot(v.table, root, two.session.mvcc));
            assertEquals(live, two.session.fetch.tuple().tid());
            two.session.fetch.close();
            two.session.rollback();
            two.vacuum();
            assertEquals(rows, two.rows());
            v.check();
        }
        v.checkEveryCut();
    }

    @Test
    @DisplayName("R02 a deletion that commits while its page is vacuumed is not frozen away")
    void aDeletionThatCommitsMeanwhileStays() {
        List<Long> tids = one.fill(20, "row");
        two.session.begin();
        tids.subList(0, 10).forEach(tid -> two.session.delete(v.table, tid));
        v.listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        if (two.session.session.inTransaction()) {
                            two.session.commit();
                        }
                    }
                };
        one.vacuum(FREEZE, null);
        assertEquals(10, one.rows().size());
        one.vacuum(FREEZE, null);
        assertEquals(10, one.rows().size());
        assertEquals(10, v.check());
        v.checkEveryCut();
    }
}
