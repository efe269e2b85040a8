package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.fsm.VisibilityMap.ALL_VISIBLE;
import static org.pgkernel.fsm.VisibilityMap.VALID_BITS;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.xact.FreezeSettings;

/** Vacuum of tables without indexes, page by page. */
final class HeapVacuumTest {
    private static final String TEXT = "x".repeat(700);
    private static final VacuumOptions FREEZE =
            VacuumOptions.DEFAULT.withFreeze(FreezeSettings.FREEZE);

    private final VacuumRig v = new VacuumRig(1);
    private final VacuumRig.Worker one = v.worker();

    @AfterEach
    void close() {
        v.close();
    }

    private static List<Long> everySecond(List<Long> tids) {
        return tids.stream().filter(tid -> tids.indexOf(tid) % 2 == 0).toList();
    }

    @Test
    void deletedRowsGoAndTheirSpaceIsFoundAgain() {
        List<Long> tids = one.fill(200, TEXT);
        int blocks = v.blocks();
        TreeMap<Long, String> expected = one.rows();
        List<Long> gone = everySecond(tids);
        one.delete(gone);
        expected.keySet().removeAll(gone);

        VacuumResult result = one.vacuum();

        assertEquals(expected, one.rows());
        assertEquals(100, v.check());
        assertEquals(gone.size(), result.deletedTuples());
        assertEquals(gone.size(), result.deadItems());
        assertEquals(100, result.liveTuples());
        assertEquals(blocks, result.scannedPages());
        assertEquals(blocks, result.allVisiblePages());
        assertEquals(0, result.recentlyDeadTuples());
        for (int block = 0; block < blocks; block++) {
            assertEquals(ALL_VISIBLE, v.bits(block));
            UnsafeBuffer page = v.rig.page(v.table.storage(), ForkNumber.MAIN, block);
            int free = PageItems.heapFreeSpace(page);
            assertTrue(free > 3500, "block " + block);
            assertTrue(v.recordedFree(block) <= free && v.recordedFree(block) > free - 32);
        }
        one.fill(80, TEXT);
        assertEquals(blocks, v.blocks(), "the freed room is used");
        v.checkEveryCut();
    }

    @Test
    void whatASnapshotSeesStays() {
        List<Long> tids = one.fill(50, TEXT);
        VacuumRig.Worker reader = v.worker();
        reader.session.begin();
        TreeMap<Long, String> seen = reader.session.rows(v.table, reader.session.mvcc);
        one.delete(tids);
        VacuumResult result = one.vacuum();
        assertEquals(50, result.recentlyDeadTuples());
        assertEquals(0, result.deletedTuples());
        assertEquals(seen, reader.session.rows(v.table, reader.session.mvcc));
        reader.session.rollback();
        assertEquals(50, one.vacuum().deletedTuples());
        v.checkEveryCut();
    }

    @Test
    void rowsOfARolledBackTransactionGoAtOnce() {
        one.fill(10, TEXT);
        one.session.begin();
        for (int i = 0; i < 30; i++) {
            one.session.insert(v.table, i, TEXT);
        }
        one.session.rollback();
        assertEquals(30, one.vacuum().deletedTuples());
        assertEquals(10, v.check());
        v.checkEveryCut();
    }

    @Test
    void rowsThatARunningTransactionWroteAreLeftAlone() {
        VacuumRig.Worker writer = v.worker();
        writer.session.begin();
        writer.session.insert(v.table, 1, TEXT);
        VacuumResult result = one.vacuum();
        assertEquals(0, result.liveTuples());
        assertEquals(0, v.bits(0));
        writer.session.commit();
        assertEquals(1, one.rows().size());
        assertEquals(1, one.vacuum().liveTuples());
        assertEquals(ALL_VISIBLE, v.bits(0));
    }

    @Test
    void pagesThatNeedNoVisitAreSkippedInRunsOf32() {
        one.fill(460, TEXT); // 40 blocks and more
        int blocks = v.blocks();
        assertTrue(blocks > 40);
        assertEquals(blocks, one.vacuum().scannedPages());
        int oldest = v.history.frozenXid();
        VacuumResult second = one.vacuum();
        assertEquals(1, second.scannedPages(), "the last one only");
        assertEquals(0, second.frozenXid(), "what the others hold is not known");
        assertEquals(460, second.liveTuples(), "guessed from before");
        assertEquals(oldest, v.history.frozenXid());
        // A page in the middle leaves two runs, one too short.
        one.delete(List.of(TupleId.of(33, 1)));
        assertEquals(blocks - 33, one.vacuum().scannedPages());
        v.checkEveryCut();
    }

    @Test
    void anAggressiveVacuumSkipsWhatIsFrozenOnly() {
        one.fill(460, TEXT);
        int blocks = v.blocks();
        one.vacuum();
        VacuumResult frozen = one.vacuum(FREEZE, null);
        assertTrue(frozen.aggressive());
        assertEquals(blocks, frozen.scannedPages());
        assertEquals(460, frozen.frozenTuples());
        for (int block = 0; block < blocks; block++) {
            assertEquals(VALID_BITS, v.bits(block));
        }
        VacuumResult again = one.vacuum(FREEZE, null);
        assertEquals(1, again.scannedPages());
        assertTrue(again.frozenXid() != 0, "all that was skipped is frozen");
        VacuumResult all = one.vacuum(FREEZE.withSkipPages(false), null);
        assertEquals(blocks, all.scannedPages());
        assertEquals(0, all.frozenTuples());
        v.check();
        v.checkEveryCut();
    }

    @Test
    void theOldestIdMovesToWhatIsLeft() {
        one.fill(5, TEXT);
        int xidBefore = (int) v.rig.transactions.nextFullXid();
        VacuumRig.Worker old = v.worker();
        old.session.begin();
        old.session.insert(v.table, 100, TEXT);
        one.fill(5, TEXT);
        VacuumResult result = one.vacuum(FREEZE, null);
        assertEquals(xidBefore, result.frozenXid(), "the running transaction's");
        assertEquals(5, result.frozenTuples());
        assertEquals(0, v.bits(0));
        old.session.commit();
        result = one.vacuum(FREEZE, null);
        assertEquals((int) v.rig.transactions.nextFullXid(), result.frozenXid());
        assertEquals(VALID_BITS, v.bits(0));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void aPageInUseIsCountedAndNotPruned() {
        List<Long> tids = one.fill(20, TEXT);
        one.delete(tids.subList(0, 5));
        VacuumRig.Worker reader = v.worker();
        int pinned =
                reader.session.buffers.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        VacuumResult result = one.vacuum();
        assertEquals(5, result.missedDeadTuples());
        assertEquals(0, result.deletedTuples());
        assertEquals(15, result.liveTuples());
        assertEquals(0, v.bits(0));
        assertTrue(v.recordedFree(0) < 1000);
        reader.session.buffers.release(pinned);
        assertEquals(5, one.vacuum().deletedTuples());
        v.checkEveryCut();
    }

    @Test
    void aPageInUseThatMustBeFrozenIsWaitedFor() throws Exception {
        one.fill(20, TEXT);
        VacuumRig.Worker reader = v.worker();
        int pinned =
                reader.session.buffers.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        CountDownLatch begun = new CountDownLatch(1);
        v.listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        begun.countDown();
                    }
                };
        AtomicReference<VacuumResult> result = new AtomicReference<>();
        Thread vacuum = new Thread(() -> result.set(one.vacuum(FREEZE, null)));
        vacuum.start();
        begun.await();
        while (vacuum.getState() != Thread.State.WAITING
                && vacuum.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
        }
        assertEquals(null, result.get());
        reader.session.buffers.release(pinned);
        vacuum.join();
        assertEquals(20, result.get().frozenTuples());
        assertEquals(VALID_BITS, v.bits(0));
    }

    @Test
    void aPageInUseWithNothingOldIsNotWaitedForEvenByAnAggressiveVacuum() {
        one.fill(20, TEXT);
        one.vacuum(FREEZE, null);
        VacuumRig.Worker reader = v.worker();
        int pinned =
                reader.session.buffers.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        VacuumResult result = one.vacuum(FREEZE.withSkipPages(false), null);
        assertEquals(20, result.liveTuples());
        assertEquals((int) v.rig.transactions.nextFullXid(), result.frozenXid());
        reader.session.buffers.release(pinned);
    }

    @Test
    @DisplayName("C19 a page of zeros becomes known to the free space map and stays as it is")
    void aPageOfZerosIsReported() {
        one.fill(20, TEXT);
        int blocks = v.blocks();
        // Added by somebody who has not come to lock it, or never will.
        int added = one.session.buffers.extend(v.table.storage(), ForkNumber.MAIN, false);
        one.session.buffers.release(added);
        VacuumResult result = one.vacuum(VacuumOptions.DEFAULT.withTruncate(false), null);
        assertEquals(blocks + 1, result.scannedPages());
        assertEquals(8160, v.recordedFree(blocks));
        assertEquals(0, v.bits(blocks));
        assertTrue(Page.isNew(v.rig.page(v.table.storage(), ForkNumber.MAIN, blocks)));
        // Both its owner and who finds it in the map may use it, one after the other.
        one.fill(20, "y".repeat(1900));
        assertEquals(40, one.rows().size());
        assertFalse(Page.isNew(v.rig.page(v.table.storage(), ForkNumber.MAIN, blocks)));
        one.vacuum();
        assertEquals(40, v.check());
        v.checkEveryCut();
    }

    @Test
    @DisplayName("C19 a page that was formatted and never logged is logged before it is visible")
    void aFormattedEmptyPageIsLoggedFirst() {
        one.fill(1, TEXT);
        int added = one.session.buffers.extend(v.table.storage(), ForkNumber.MAIN, true);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        v.rig.pool.wrap(added, page);
        Page.init(page, 0);
        one.session.buffers.markDirty(added);
        one.session.buffers.unlock(added);
        one.session.buffers.release(added);
        one.vacuum(VacuumOptions.DEFAULT.withTruncate(false), null);
        assertEquals(VALID_BITS, v.bits(1));
        assertTrue(v.recordedFree(1) > 8000);
        v.check();
        v.checkEveryCut();
        one.delete(one.rows().keySet().stream().toList());
        one.vacuum(VacuumOptions.DEFAULT.withTruncate(false), null);
        assertEquals(VALID_BITS, v.bits(0), "the last row went");
        v.checkEveryCut();
    }

    @Test
    @DisplayName(
            "C17 the flag of a page on which nothing else changed reaches the disk with its bit")
    void aFlagAloneReachesTheDisk() {
        one.fill(20, TEXT);
        one.rows(); // all hints are set
        v.rig.checkpoint();
        one.vacuum();
        assertEquals(ALL_VISIBLE, v.bits(0));
        v.rig.checkpoint();
        v.rig.pool.dropRelationForks(
                v.table.storage(), new ForkNumber[] {ForkNumber.MAIN}, new int[] {0}, 1);
        assertTrue(Page.isAllVisible(v.rig.page(v.table.storage(), ForkNumber.MAIN, 0)));
        assertEquals(20, v.check());
    }

    @Test
    void aCommitThatIsNotDurableYetMakesNoPageAllVisible() {
        one.session.begin();
        one.session.insert(v.table, 1, TEXT);
        one.session.session.commit(false);
        one.session.backend.endTransaction();
        assertTrue(v.rig.wal.flushedLsn() < v.rig.wal.insertLsn());
        one.vacuum();
        assertEquals(0, v.bits(0), "a crash may undo the row");
        v.rig.wal.flush(v.rig.wal.insertLsn());
        one.vacuum();
        assertEquals(ALL_VISIBLE, v.bits(0));
    }

    @Test
    void whoFollowsTheWalLearnsTheNewestInserterOfAVisiblePage() {
        one.fill(1, TEXT);
        one.fill(1, TEXT);
        int newest = (int) v.rig.transactions.nextFullXid() - 1;
        one.vacuum();
        one.vacuum(FREEZE, null);
        List<Integer> cutoffs = new ArrayList<>();
        v.rig.forEachRecord(
                record -> {
                    if (record.rmid() == HeapRecords.HEAP2_RMID
                            && record.type() == HeapRecords.VISIBLE) {
                        cutoffs.add(record.data().getInt(0));
                    }
                });
        assertEquals(List.of(newest, 0), cutoffs, "the frozen bit changes nothing for readers");
    }

    @Test
    void whatIsFrozenReachesTheDiskEvenIfThePageIsNotAllVisible() {
        List<Long> tids = one.fill(5, TEXT);
        VacuumRig.Worker reader = v.worker();
        reader.session.begin();
        reader.session.rows(v.table, reader.session.mvcc);
        one.delete(tids.subList(4, 5));
        one.vacuum();
        v.rig.checkpoint();
        assertEquals(5, one.vacuum(FREEZE, null).frozenTuples(), "the dying one's inserter, too");
        assertEquals(0, v.bits(0));
        v.rig.checkpoint();
        v.dead = true;
        try (VacuumRig after = new VacuumRig(v.rig.crash(SimulatedDisk.LOSE_ALL))) {
            UnsafeBuffer page = after.rig.page(after.table.storage(), ForkNumber.MAIN, 0);
            int at = HeapPage.tupleAt(page, 1);
            assertTrue(TupleVisibility.isXminFrozen(HeapTupleHeader.infomask(page, at)));
        }
    }

    @Test
    void aBitWithoutThePagesFlagIsToldAndPutRight() {
        List<Long> tids = one.fill(10, TEXT);
        one.vacuum();
        int buffer = v.rig.pool.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        v.rig.pool.lockExclusive(buffer);
        v.rig.pool.wrap(buffer, page);
        Page.clearAllVisible(page);
        v.rig.pool.markDirty(buffer);
        v.rig.pool.unlock(buffer);
        v.rig.pool.release(buffer);
        one.vacuum();
        assertEquals(1, v.messages.size());
        assertTrue(v.messages.getFirst().contains("visibility map bit is set"));
        assertTrue(v.messages.getFirst().contains("rel=1663/5/20000 fork=MAIN block=0"));
        assertEquals(ALL_VISIBLE, v.bits(0));
        assertEquals(10, v.check());
        assertEquals(tids.size(), one.rows().size());
    }

    @Test
    void chainsAreShortenedToARedirect() {
        one.fill(1, "first");
        long tid = one.rows().firstKey();
        for (int i = 0; i < 5; i++) {
            one.session.begin();
            one.session.update(v.table, tid, i, "version " + i);
            tid = one.session.updater.newTid();
            one.session.commit();
        }
        VacuumResult result = one.vacuum();
        assertEquals(5, result.deletedTuples());
        assertEquals(0, result.deadItems());
        assertEquals(1, v.check());
        assertEquals("[4, version 4]", one.rows().get(tid));
        assertEquals(ALL_VISIBLE, v.bits(0));
        v.checkEveryCut();
    }

    @Test
    void aVacuumThatIsCancelledKeepsWhatItDid() {
        List<Long> tids = one.fill(100, TEXT);
        one.delete(everySecond(tids));
        v.listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        if (block == 3) {
                            throw new IllegalStateException("cancelled");
                        }
                    }
                };
        assertThrows(IllegalStateException.class, one::vacuum);
        assertEquals(ALL_VISIBLE, v.bits(2));
        assertEquals(0, v.bits(3));
        v.listener = VacuumListener.NONE;
        one.vacuum();
        assertEquals(50, v.check());
        v.checkEveryCut();
    }

    @Test
    void aPageThatContradictsItselfEndsTheVacuumWithItsPlace() {
        long root = one.fill(1, "first").getFirst();
        for (int i = 0; i < 2; i++) {
            one.session.begin();
            one.session.update(v.table, root + i, i, "version");
            one.session.commit();
        }
        // The root is gone: nothing leads to the dead version, which has a successor.
        int buffer = v.rig.pool.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        v.rig.pool.lockExclusive(buffer);
        v.rig.pool.wrap(buffer, page);
        Page.setItemId(page, TupleId.offset(root), 0);
        v.rig.pool.unlock(buffer);
        v.rig.pool.release(buffer);
        DamagedDataException damage = assertThrows(DamagedDataException.class, one::vacuum);
        assertTrue(damage.getMessage().contains("rel=1663/5/20000 fork=MAIN block=0"));
    }

    @Test
    void anUnloggedTableIsVacuumedWithoutARecord() {
        HeapRelation unlogged =
                new HeapRelation(
                        v.rig.storage(30_000), 30_000, VacuumRig.COLUMNS, false, 100, null);
        one.session.begin();
        long tid = one.session.insert(unlogged, 1, TEXT);
        one.session.insert(unlogged, 2, TEXT);
        one.session.commit();
        one.session.begin();
        one.session.delete(unlogged, tid);
        one.session.commit();
        long before = v.rig.wal.insertLsn();
        one.session.session.begin();
        one.session.session.vacuums();
        VacuumResult result =
                one.vacuum.vacuum(unlogged, v.history, FREEZE, null, VacuumListener.NONE);
        one.session.rollback();
        assertEquals(1, result.deletedTuples());
        assertEquals(1, result.allVisiblePages());
        assertEquals(before, v.rig.wal.insertLsn());
    }

    @Test
    void aTableThatIsFarTooOldIsFrozenAndNothingElse() {
        List<Long> tids = one.fill(100, TEXT);
        one.delete(tids);
        VacuumOptions options = FREEZE.withFailsafeAge(10);
        VacuumResult result = one.vacuum(options, new NoIndexes());
        assertTrue(result.failsafe());
        assertEquals(0, result.removedPages());
        assertEquals(0, result.indexScans());
        assertEquals(0, v.lock.tries);
        assertTrue(v.messages.getFirst().contains("failsafe"));
        assertFalse(one.vacuum(FREEZE, null).failsafe());
    }

    private static final class NoIndexes implements IndexCleaner {
        @Override
        public void removeEntries(DeadTuples dead) {
            throw new AssertionError("indexes are not to be cleaned");
        }

        @Override
        public void cleanUp(double tuples, boolean estimated) {
            throw new AssertionError("indexes are not to be cleaned");
        }
    }

    @Test
    void theEstimateCountsPagesPassedOverAsBefore() {
        one.fill(460, TEXT);
        one.vacuum();
        v.history = new RelationHistory(v.history.frozenXid(), 1, v.history.pages() / 2, 1000);
        // Density before times the pages passed over, and what was counted.
        one.delete(List.of(TupleId.of(0, 1), TupleId.of(0, 2)));
        VacuumResult result = one.vacuum();
        assertEquals(2, result.scannedPages());
        int counted = one.rows().keySet().stream().filter(this::wasScanned).toList().size();
        double density = 1000.0 / (v.blocks() / 2);
        assertEquals(Math.floor(density * (v.blocks() - 2) + counted + 0.5), result.liveTuples());
    }

    private boolean wasScanned(long tid) {
        return TupleId.block(tid) == 0 || TupleId.block(tid) == v.blocks() - 1;
    }
}
