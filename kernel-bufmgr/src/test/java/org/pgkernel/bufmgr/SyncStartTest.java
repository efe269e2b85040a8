package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** What the background writer is told about the hand. */
@Timeout(60)
class SyncStartTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(16, true, DropStrategy.FULL_SCAN);
        r = f.create(1, ForkNumber.MAIN, 100);
    }

    @AfterEach
    void close() {
        f.close();
    }

    @Test
    void theHandGoesWhereItSaysItWill() {
        for (int i = 0; i < 200; i++) {
            SyncStart before = f.pool.replacement.syncStart();
            int block = missing();
            int taken = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
            f.pool.release(taken);
            SyncStart now = f.pool.replacement.syncStart();
            assertEquals(before.allocations() + 1, now.allocations());
            assertTrue(now.ticks() > before.ticks());
            int at = before.buffer();
            for (long tick = before.ticks() + 1; tick < now.ticks(); tick++) {
                at = f.pool.replacement.after(at);
            }
            assertEquals(taken, at, "the last buffer that the hand looked at is the one it took");
        }
    }

    @Test
    void pagesThatAreInThePoolAreNoAllocations() {
        int block = f.pool.block(0);
        SyncStart before = f.pool.replacement.syncStart();
        for (int i = 0; i < 5; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
        }
        assertEquals(before, f.pool.replacement.syncStart());
    }

    @Test
    void theNextAllocationWakesTheSleeper() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        long before = f.pool.replacement.syncStart().allocations();
        Thread sleeper =
                new Thread(
                        () -> {
                            f.pool.replacement.wakeAtAllocation(Thread.currentThread());
                            asked.countDown();
                            while (f.pool.replacement.syncStart().allocations() == before) {
                                LockSupport.park(); // no time limit: only the allocation ends it
                            }
                        });
        sleeper.start();
        ReadAndExtendTest.await(asked);
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, missing(), ReadMode.NORMAL));
        sleeper.join();
    }

    private int missing() {
        int block = 0;
        while (f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, block) >= 0) {
            block++;
        }
        return block;
    }
}
