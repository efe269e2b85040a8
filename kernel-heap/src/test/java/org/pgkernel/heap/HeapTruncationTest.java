package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.PoolCounter;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault;
import org.pgkernel.testkit.SimulatedDisk;

/** Vacuum cuts off empty pages at the end: when, under which lock, and what a failure leaves. */
final class HeapTruncationTest {
    private static final String TEXT = "x".repeat(700);
    private static final int ROWS_A_PAGE = 11;

    private final VacuumRig v = new VacuumRig(2);
    private final VacuumRig.Worker one = v.worker();

    @AfterEach
    void close() {
        v.close();
    }

    /** So many pages, of which only the first few keep their rows. */
    private void fillAndEmpty(int pages, int keep) {
        List<Long> tids = one.fill(pages * ROWS_A_PAGE, TEXT);
        assertEquals(pages, v.blocks());
        one.delete(tids.stream().filter(tid -> TupleId.block(tid) >= keep).toList());
    }

    @Test
    void theEmptyTailGoesInHeapAndMaps() {
        fillAndEmpty(40, 5);
        TreeMap<Long, String> rows = one.rows();
        VacuumResult result = one.vacuum();
        assertEquals(5, v.blocks());
        assertEquals(5, result.pages());
        assertEquals(35, result.removedPages());
        assertEquals(5, result.allVisiblePages());
        assertEquals(1, v.lock.unlocks);
        assertFalse(v.lock.held);
        assertEquals(rows, one.rows());
        for (int block = 5; block < 40; block++) {
            assertEquals(0, v.bits(block));
            assertEquals(0, v.recordedFree(block));
        }
        v.checkEveryCut();
        one.fill(100, TEXT);
        assertEquals(15, v.blocks());
        assertEquals(155, one.rows().size());
        one.vacuum();
        v.check();
        v.checkEveryCut();
    }

    @Test
    void theRecordSaysThatFilesChangeAndTheMapsUpperLevelsForgetTheTail() {
        fillAndEmpty(40, 5);
        one.vacuum();
        List<Integer> infos = new ArrayList<>();
        v.rig.forEachRecord(
                record -> {
                    if (record.rmid() == RmgrIds.STORAGE && record.type() == 0x20) {
                        infos.add(record.info());
                    }
                });
        assertEquals(List.of(0x21), infos, "XLOG_SMGR_TRUNCATE | XLR_SPECIAL_REL_UPDATE");
        // The root of the map's tree: the greatest category that any block has.
        UnsafeBuffer root = v.rig.page(v.table.storage(), ForkNumber.FSM, 0);
        int best = 0;
        for (int block = 0; block < 5; block++) {
            best = Math.max(best, FreeSpaceMap.category(v.recordedFree(block)));
        }
        assertEquals(best, root.getByte(Page.HEADER_SIZE + 4) & 0xFF);
    }

    @Test
    void theClockStartsAnewWhenNobodyWaited() {
        fillAndEmpty(150, 5);
        v.lock.nanosPerLook = 11_000_000;
        int[] looks = new int[1];
        v.lock.onWaitersAsked = () -> looks[0]++;
        one.vacuum();
        assertEquals(5, v.blocks());
        // At blocks 128, 96, 64, 32 the clock is asked; 20 ms are over at every second of them.
        assertEquals(2, looks[0]);
    }

    @Test
    void aTableWithoutRowsBecomesEmpty() {
        fillAndEmpty(3, 0);
        one.vacuum();
        assertEquals(0, v.blocks());
        v.checkEveryCut();
        one.fill(1, TEXT);
        assertEquals(1, one.rows().size());
        v.checkEveryCut();
    }

    @ParameterizedTest
    @CsvSource({
        "100, 94, true", // exactly a sixteenth
        "100, 95, false",
        "15, 14, true",
        "15, 15, false",
        "0, 0, false",
        "100000, 99000, true", // a thousand
        "100000, 99001, false",
        "-2, -1002, true", // 4,294,967,294 pages
        "-2, -500, false",
    })
    void aTruncationIsTriedForAThousandPagesOrASixteenth(int pages, int nonEmpty, boolean worth) {
        assertEquals(worth, HeapTruncation.isWorthIt(pages, nonEmpty));
    }

    @Test
    void itCanBeSwitchedOff() {
        fillAndEmpty(40, 5);
        one.vacuum(VacuumOptions.DEFAULT.withTruncate(false), null);
        assertEquals(40, v.blocks());
        assertEquals(0, v.lock.tries);
    }

    @Test
    void theLockIsAskedForAHundredTimesInFiveSecondsAndNeverWaitedFor() {
        fillAndEmpty(40, 5);
        v.lock.refusals = 1000;
        VacuumResult result = one.vacuum();
        assertEquals(0, result.removedPages());
        assertEquals(40, v.blocks());
        assertEquals(101, v.lock.tries);
        assertEquals(5_000_000_000L, v.lock.slept);
        assertEquals(0, v.lock.unlocks);
        assertTrue(v.messages.getLast().contains("stopping truncate due to conflicting lock"));
        v.lock.refusals = 100;
        v.lock.tries = 0;
        assertEquals(35, one.vacuum().removedPages());
        assertEquals(101, v.lock.tries);
    }

    @Test
    void rowsThatCameSinceTheVacuumKeepTheirPage() {
        fillAndEmpty(40, 5);
        VacuumRig.Worker other = v.worker();
        // In the free space that the vacuum has just recorded: one of the empty pages.
        v.lock.onLocked =
                () -> {
                    v.lock.onLocked = () -> {};
                    other.session.begin();
                    for (int i = 0; i < 20; i++) {
                        other.session.insert(v.table, 1000 + i, TEXT);
                    }
                    other.session.commit();
                };
        VacuumResult result = one.vacuum();
        TreeMap<Long, String> rows = one.rows();
        int last = TupleId.block(rows.lastKey());
        assertTrue(last >= 5 && last < 39);
        assertEquals(last + 1, v.blocks());
        assertEquals(39 - last, result.removedPages());
        assertEquals(55 + 20, rows.size());
        v.checkEveryCut();
    }

    @Test
    void aTableThatHasGrownIsLeftAlone() {
        fillAndEmpty(40, 5);
        v.lock.onLocked =
                () -> {
                    v.lock.onLocked = () -> {};
                    int added =
                            one.session.buffers.extend(v.table.storage(), ForkNumber.MAIN, false);
                    one.session.buffers.release(added);
                };
        assertEquals(0, one.vacuum().removedPages());
        assertEquals(41, v.blocks());
        assertEquals(1, v.lock.unlocks);
    }

    @Test
    void whoeverWaitsIsLetInAndTheRestGoesLater() {
        fillAndEmpty(150, 5);
        v.lock.nanosPerLook = 11_000_000;
        v.lock.waiters = true;
        int[] sizes = new int[10];
        v.lock.onLocked =
                () -> {
                    sizes[v.lock.unlocks] = v.blocks();
                    if (v.lock.unlocks == 2) {
                        v.lock.waiters = false;
                    }
                };
        VacuumResult result = one.vacuum();
        assertEquals(5, v.blocks());
        assertEquals(145, result.removedPages());
        // The clock is asked at multiples of 32 blocks; 20 ms are over at every second of them.
        assertEquals(150, sizes[0]);
        assertEquals(96, sizes[1]);
        assertEquals(64, sizes[2]);
        assertEquals(3, v.lock.unlocks);
        assertTrue(v.messages.stream().anyMatch(m -> m.contains("suspending truncate")));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void waitersAreNotLookedForMoreOftenThanEvery20Milliseconds() {
        fillAndEmpty(150, 5);
        v.lock.nanosPerLook = 1_000_000;
        v.lock.waiters = true;
        one.vacuum();
        assertEquals(5, v.blocks());
        assertEquals(1, v.lock.unlocks);
    }

    @Test
    void aDeadLinePointerKeepsItsPage() {
        fillAndEmpty(40, 5);
        VacuumOptions off = VacuumOptions.DEFAULT.withIndexes(VacuumOptions.Indexes.OFF);
        one.vacuum(off, new NoCleaning());
        assertEquals(40, v.blocks());
        assertEquals(1, v.lock.unlocks);
        assertEquals(List.of(), v.messages, "nothing was cut");
        one.vacuum();
        assertEquals(5, v.blocks());
    }

    private static final class NoCleaning implements IndexCleaner {
        @Override
        public void removeEntries(DeadTuples dead) {
            throw new AssertionError("indexes are to be left alone");
        }

        @Override
        public void cleanUp(double tuples, boolean estimated) {
            throw new AssertionError("indexes are to be left alone");
        }
    }

    @Test
    void anUnloggedTableIsCutWithoutARecord() {
        HeapRelation unlogged =
                new HeapRelation(
                        v.rig.storage(30_000), 30_000, VacuumRig.COLUMNS, false, 100, null);
        one.session.begin();
        for (int i = 0; i < 100; i++) {
            one.session.insert(unlogged, i, TEXT);
        }
        one.session.rollback();
        long before = v.rig.wal.insertLsn();
        one.session.session.begin();
        one.session.session.vacuums();
        VacuumResult result =
                one.vacuum.vacuum(
                        unlogged, v.history, VacuumOptions.DEFAULT, null, VacuumListener.NONE);
        one.session.rollback();
        assertEquals(0, result.pages());
        assertEquals(before, v.rig.wal.insertLsn());
    }

    /**
     * On the disk the pages that are to go hold rows that are deleted and vacuumed in the pool
     * only.
     */
    private TreeMap<Long, String> rowsOnDiskThatAreGone() {
        List<Long> tids = one.fill(10 * ROWS_A_PAGE, TEXT);
        v.rig.checkpoint();
        one.delete(tids.stream().filter(tid -> TupleId.block(tid) >= 5).toList());
        one.vacuum(VacuumOptions.DEFAULT.withTruncate(false), null);
        return one.rows();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    @DisplayName("C02 the file cannot be cut: the kernel stops, and redo cuts it")
    void aFileThatCannotBeCutStopsTheKernel(int nth) {
        TreeMap<Long, String> rows = rowsOnDiskThatAreGone();
        v.rig.disk.plan(Fault.at(Fault.Effect.EIO, DiskCall.TRUNCATE, nth));
        long cuts = v.rig.disk.count(DiskCall.TRUNCATE);
        boolean stopped = false;
        try {
            one.vacuum();
        } catch (KernelStoppedException e) {
            stopped = true;
            assertTrue(e.getMessage().contains("rel=1663/5/20000"), e.getMessage());
        }
        assertEquals(v.rig.disk.count(DiskCall.TRUNCATE) - cuts >= nth, stopped);
        v.dead = stopped;
        if (stopped) {
            // No row and no page is written any more.
            assertThrows(KernelStoppedException.class, () -> one.fill(1, TEXT));
            long writes = v.rig.disk.count(DiskCall.WRITE);
            assertThrows(KernelStoppedException.class, () -> v.rig.pool.flushAll());
            assertEquals(writes, v.rig.disk.count(DiskCall.WRITE));
        }
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, 7, 8}) {
            try (VacuumRig after = new VacuumRig(v.rig.recovered(v.rig.disk.restart(outcome)))) {
                assertEquals(5, after.blocks());
                assertEquals(rows, after.worker().rows());
                after.check();
            }
        }
    }

    @Test
    @DisplayName("C02 the record is durable before a buffer is thrown away")
    void noBufferGoesBeforeTheRecordIsDurable() {
        TreeMap<Long, String> rows = rowsOnDiskThatAreGone();
        v.rig.disk.plan(Fault.at(Fault.Effect.EIO, DiskCall.SYNC, 1));
        long dropped = v.rig.pool.counters().value(PoolCounter.DROPPED);
        v.dead = true;
        assertThrows(KernelStoppedException.class, one::vacuum);
        assertEquals(dropped, v.rig.pool.counters().value(PoolCounter.DROPPED));
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL}) {
            try (VacuumRig after = new VacuumRig(v.rig.recovered(v.rig.disk.restart(outcome)))) {
                assertEquals(rows, after.worker().rows());
                assertTrue(after.blocks() == 5 || after.blocks() == 10);
            }
        }
    }

    @Test
    @DisplayName("C02 a cancel that comes during the truncation does not end it half-way")
    void anInterruptDoesNotEndItHalfWay() {
        TreeMap<Long, String> rows = rowsOnDiskThatAreGone();
        v.lock.onLocked = () -> Thread.currentThread().interrupt();
        one.vacuum();
        assertTrue(Thread.interrupted());
        assertEquals(5, v.blocks());
        assertEquals(rows, one.rows());
        v.checkEveryCut();
    }

    @Test
    @DisplayName("C02 a crash at any disk call of the truncation leaves all rows, and only them")
    void aCrashAtAnyCall() {
        long calls = 0;
        boolean crashed = true;
        while (crashed) {
            calls++;
            try (VacuumRig rig = new VacuumRig(100 + calls)) {
                VacuumRig.Worker worker = rig.worker();
                List<Long> tids = worker.fill(10 * ROWS_A_PAGE, TEXT);
                rig.rig.checkpoint();
                worker.delete(tids.stream().filter(tid -> TupleId.block(tid) >= 5).toList());
                TreeMap<Long, String> rows = worker.rows();
                rig.rig.disk.plan(Fault.crashAtCall(calls));
                try {
                    worker.vacuum();
                    crashed = false;
                } catch (RuntimeException | Error e) {
                    rig.dead = true;
                }
                checkAfterCrash(rig, calls, rows);
            }
        }
        assertTrue(calls > 6, "crashed at " + calls + " calls");
    }

    private static void checkAfterCrash(VacuumRig rig, long call, TreeMap<Long, String> rows) {
        for (long outcome : new long[] {SimulatedDisk.LOSE_ALL, SimulatedDisk.KEEP_ALL, call + 2}) {
            try (VacuumRig after =
                    new VacuumRig(rig.rig.recovered(rig.rig.disk.restart(outcome)))) {
                assertEquals(rows, after.worker().rows(), "call " + call);
                after.check();
                after.worker().vacuum();
                assertEquals(5, after.blocks());
                assertEquals(rows, after.worker().rows());
            }
        }
    }
}
