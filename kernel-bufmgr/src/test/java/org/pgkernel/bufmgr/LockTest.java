package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(30)
class LockTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    int buffer;

    PoolFixture fixture() {
        return new PoolFixture(directory, false);
    }

    @BeforeEach
    void open() {
        f = fixture().pool(16, true, DropStrategy.FULL_SCAN);
        r = f.create(1, ForkNumber.MAIN, 4);
        buffer = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
    }

    @AfterEach
    void close() {
        f.pool.release(buffer);
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void sharersShareAndTheExclusiveHolderIsAlone() throws Exception {
        f.pool.lockShared(buffer);
        assertFalse(f.pool.tryLockExclusive(buffer));
        CountDownLatch shared = new CountDownLatch(1);
        Thread other =
                new Thread(
                        () -> {
                            f.pool.lockShared(buffer);
                            shared.countDown();
                            f.pool.unlock(buffer);
                        });
        other.start();
        ReadAndExtendTest.await(shared);
        other.join();
        f.pool.unlock(buffer);
        f.pool.lockExclusive(buffer);
        Thread waiter =
                new Thread(
                        () -> {
                            f.pool.lockShared(buffer);
                            f.pool.unlock(buffer);
                        });
        waiter.start();
        waiter.join(100);
        assertTrue(waiter.isAlive(), "shared beside exclusive");
        f.pool.unlock(buffer);
        waiter.join();
    }

    @Test
    void lockTakenTwiceByOneThreadIsOurBugAndSaidSo() {
        f.pool.lockExclusive(buffer);
        assertThrows(AssertionError.class, () -> f.pool.lockExclusive(buffer));
        assertThrows(AssertionError.class, () -> f.pool.lockShared(buffer));
        f.pool.unlock(buffer);
        assertThrows(AssertionError.class, () -> f.pool.unlock(buffer));
        assertThrows(AssertionError.class, () -> f.pool.markDirty(buffer), "dirty without a lock");
    }

    @Test
    void countersUnderExclusiveLocksLoseNothing() throws Exception {
        int[] counter = new int[1];
        Thread[] threads = new Thread[6];
        for (int t = 0; t < threads.length; t++) {
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 20_000; i++) {
                                    f.pool.lockExclusive(buffer);
                                    counter[0]++;
                                    f.pool.unlock(buffer);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(120_000, counter[0]);
    }

    @Test
    void cleanupLockWaitsForOtherPins() throws Exception {
        int again = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
        AtomicInteger got = new AtomicInteger();
        Thread cleaner =
                new Thread(
                        () -> {
                            int mine =
                                    f.pool.read(
                                            r, ForkNumber.MAIN, 0, ReadMode.ZERO_AND_CLEANUP_LOCK);
                            got.set(f.refcount(mine));
                            f.pool.unlock(mine);
                            f.pool.release(mine);
                        });
        cleaner.start();
        cleaner.join(100);
        assertEquals(0, got.get(), "did not wait");
        f.pool.lockShared(buffer); // the waiter must not keep the content lock
        f.pool.unlock(buffer);
        f.pool.release(again);
        cleaner.join(100);
        assertEquals(0, got.get(), "did not wait for the second pin");
        f.pool.release(buffer);
        cleaner.join();
        assertEquals(1, got.get());
        assertEquals(0, f.pool.descriptors.state(buffer) & BufferState.PIN_COUNT_WAITER);
        buffer = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
    }

    @Test
    void cleanupLockIsHadAtOnceWithTheOnlyPin() {
        f.pool.lockForCleanup(buffer);
        assertFalse(f.pool.tryLockExclusive(buffer));
        f.pool.unlock(buffer);
        assertTrue(f.pool.tryLockForCleanup(buffer));
        f.pool.unlock(buffer);
        f.pool.pinAgain(buffer);
        assertFalse(f.pool.tryLockForCleanup(buffer));
        assertTrue(f.pool.tryLockExclusive(buffer), "a failed try left its lock");
        f.pool.unlock(buffer);
        f.pool.release(buffer);
    }

    @Test
    void aSecondWaiterForTheCleanupLockIsRefusedAndKeepsNoPin() throws Exception {
        int first = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
        Thread cleaner =
                new Thread(
                        () -> {
                            f.pool.lockForCleanup(first);
                            f.pool.unlock(first);
                            f.pool.release(first);
                        });
        cleaner.start();
        while ((f.pool.descriptors.state(buffer) & BufferState.PIN_COUNT_WAITER) == 0) {
            Thread.sleep(1);
        }
        assertThrows(
                RefusedException.class,
                () -> f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.ZERO_AND_CLEANUP_LOCK));
        assertEquals(2, f.refcount(buffer));
        f.pool.release(buffer);
        cleaner.join();
        buffer = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
    }

    @Test
    void locksOfOneStripeDoNotLoseEachOthersWakeUps() throws Exception {
        // Two words, one stripe: every wake-up of one reaches the waiters of the other.
        LockTable locks = new LockTable(new UnsafeBuffer(new byte[64]), 3, new WaitTable(1));
        int[] counters = new int[2];
        Thread[] threads = new Thread[6];
        for (int t = 0; t < threads.length; t++) {
            int word = t & 1;
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 10_000; i++) {
                                    locks.lockExclusive(word);
                                    counters[word]++;
                                    if (i % 64 == 0) {
                                        Thread.yield();
                                    }
                                    locks.unlock(word);
                                    locks.lockShared(word);
                                    locks.unlock(word);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(30_000, counters[0]);
        assertEquals(30_000, counters[1]);
    }
}
