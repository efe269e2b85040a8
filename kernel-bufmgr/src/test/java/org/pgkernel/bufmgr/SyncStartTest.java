package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** What the background writer is told about the hand. */
@Timeout(60)
class SyncStartTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;

    private void open(Replacement policy) {
        f = new PoolFixture(directory, false);
        f.pool(BufferPoolOptions.of(16).withReplacement(policy), new DropParts());
        r = f.create(1, ForkNumber.MAIN, 100);
    }

    @AfterEach
    void close() {
        f.close();
    }

    @ParameterizedTest
    @EnumSource(
            value = Replacement.class,
            names = {"CLOCK_SWEEP", "SIEVE"})
    void theHandGoesWhereItSaysItWill(Replacement policy) {
        open(policy);
        for (int i = 0; i < 200; i++) {
            SyncStart before = f.pool.replacement.syncStart();
            int[] way = new int[200];
            way[0] = before.buffer();
            for (int k = 1; k < way.length; k++) {
                way[k] = f.pool.replacement.after(way[k - 1]);
            }
            int taken = f.pool.read(r, ForkNumber.MAIN, missing(), ReadMode.NORMAL);
            f.pool.release(taken);
            SyncStart now = f.pool.replacement.syncStart();
            assertEquals(before.allocations() + 1, now.allocations());
            assertTrue(now.ticks() > before.ticks());
            int moves = (int) (now.ticks() - before.ticks());
            assertEquals(
                    taken,
                    way[moves - 1],
                    "the last buffer that the hand looked at is the one it took");
        }
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void theHandsWayGoesOverEveryBuffer(Replacement policy) {
        open(policy);
        for (int i = 0; i < 50; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, i * 37 % 100, ReadMode.NORMAL));
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, i % 5, ReadMode.NORMAL));
            Set<Integer> way = new HashSet<>();
            for (int at = f.pool.replacement.syncStart().buffer(); way.add(at); ) {
                at = f.pool.replacement.after(at);
            }
            assertEquals(16, way.size());
        }
    }

    @Test
    void pagesThatAreInThePoolAreNoAllocations() {
        open(Replacement.CLOCK_SWEEP);
        int block = f.pool.block(0);
        SyncStart before = f.pool.replacement.syncStart();
        for (int i = 0; i < 5; i++) {
            f.pool.release(f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
        }
        assertEquals(before, f.pool.replacement.syncStart());
    }

    @Test
    void theNextAllocationWakesTheSleeper() throws Exception {
        open(Replacement.CLOCK_SWEEP);
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
