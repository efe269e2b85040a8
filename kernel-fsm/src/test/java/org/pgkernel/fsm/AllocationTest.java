package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.ReadMode;

/** The hot paths of the README that a primary uses allocate nothing once warm. */
final class AllocationTest {
    private static final int CALLS = 20_000;

    /** So many records fit the log's memory. */
    private static final int WINDOW = 200;

    private static final int BLOCKS = 1000;

    private final FreeSpaceMap map = new FreeSpaceMap();
    private final VisibilityMap visible = new VisibilityMap();

    /** Sums results, so that no call is thought useless. */
    private long sink;

    @Test
    void freeSpaceIsSearchedAndRecordedWithoutAllocation() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(BLOCKS);
            for (int block = 0; block < BLOCKS; block++) {
                map.record(f.backend, f.relation, block, 4000);
            }
            map.vacuumRange(f.backend, f.relation, 0, BLOCKS);
            assertNoAllocation(
                    "record",
                    i -> map.record(f.backend, f.relation, i % BLOCKS, 4000 + 32 * (i % 7)));
            assertNoAllocation(
                    "pageWithFreeSpace",
                    i -> sink += map.pageWithFreeSpace(f.backend, f.relation, 3000));
            assertNoAllocation(
                    "recordAndFind",
                    i -> sink += map.recordAndFind(f.backend, f.relation, i % BLOCKS, 4000, 3000));
            assertNoAllocation(
                    "recordedFree",
                    i -> sink += map.recordedFree(f.backend, f.relation, i % BLOCKS));
        }
    }

    @ParameterizedTest
    @EnumSource(FsmPolicy.class)
    void smallTablesAreSearchedAndRecordedWithoutAllocation(FsmPolicy policy) {
        FreeSpace space = FsmOptions.of(policy).newFreeSpace();
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(4);
            assertNoAllocation("record", i -> space.record(f.backend, f.relation, i % 4, 4000));
            assertNoAllocation(
                    "a search",
                    i -> {
                        sink += space.firstPage(f.backend, f.relation, 4, 3000);
                        sink += space.recordAndFind(f.backend, f.relation, i % 4, 100, 3000);
                        space.forget();
                    });
        }
    }

    @Test
    void bitsAreSetReadAndClearedWithoutAllocation() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(BLOCKS);
            int heap = f.backend.read(f.relation, ForkNumber.MAIN, 7, ReadMode.NORMAL);
            UnsafeBuffer page = new UnsafeBuffer(0L, 0);
            f.pool.wrap(heap, page);
            f.backend.lockExclusive(heap);
            Page.init(page, 0);
            Page.setAllVisible(page);
            f.backend.markDirty(heap);
            int held = visible.pin(f.backend, f.relation, 7, -1);
            assertNoAllocation(
                    "pin", i -> sink += visible.pin(f.backend, f.relation, i % BLOCKS, held));
            assertNoAllocation("status", i -> sink += visible.status(f.backend, 7, held));
            assertNoAllocation(
                    "set and clear",
                    i -> {
                        sink +=
                                visible.set(
                                        f.backend,
                                        f.insert,
                                        f.relation,
                                        heap,
                                        held,
                                        700,
                                        VisibilityMap.VALID_BITS);
                        visible.clear(f.backend, 7, held, VisibilityMap.VALID_BITS);
                    },
                    () -> f.wal.flush(f.wal.insertLsn()));
            f.backend.unlock(heap);
            f.backend.release(heap);
            VisibilityMap.release(f.backend, held);
        }
    }

    private interface Call {
        void call(int i);
    }

    private static void assertNoAllocation(String what, Call call) {
        assertNoAllocation(what, call, () -> {});
    }

    /**
     * Compilation happens when it pleases, late on a busy machine; one clean round is the proof.
     *
     * @param between not counted: the simulated disk keeps in memory what is written to the log
     */
    private static void assertNoAllocation(String what, Call call, Runnable between) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (least >= CALLS && end - System.nanoTime() > 0) {
            long allocated = 0;
            for (int done = 0; done < CALLS; done += WINDOW) {
                between.run();
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int i = done; i < done + WINDOW; i++) {
                    call.call(i);
                }
                allocated += threads.getCurrentThreadAllocatedBytes() - before;
            }
            least = Math.min(least, allocated);
        }
        assertTrue(least < CALLS, what + " allocates " + least + " bytes in " + CALLS + " calls");
    }
}
