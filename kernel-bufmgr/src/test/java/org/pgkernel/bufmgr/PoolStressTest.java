package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Many threads, few buffers: every page says which block it is and carries a counter, twice; each
 * increment is noted outside. A lost update, a torn page, a page in the wrong buffer or a stale
 * read shows as a wrong number.
 */
@Timeout(120)
class PoolStressTest {
    private static final int THREADS = 8;
    private static final int BLOCKS = 60;
    private static final long NANOS = 800_000_000L;

    @TempDir Path directory;

    LookupStyle lookupStyle() {
        return LookupStyle.OPTIMISTIC;
    }

    PoolFixture f;
    final AtomicIntegerArray counts = new AtomicIntegerArray(BLOCKS);
    final AtomicReference<Throwable> failure = new AtomicReference<>();
    final AtomicLong operations = new AtomicLong();
    volatile boolean stop;

    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void eightThreadsOnSixteenBuffersLoseNothing(DropStrategy strategy) throws Exception {
        f = new PoolFixture(directory, true).lookupStyle(lookupStyle()).pool(16, true, strategy);
        SmgrRelation r = f.create(1, ForkNumber.MAIN, BLOCKS);
        Thread[] threads = new Thread[THREADS + 2];
        for (int t = 0; t < THREADS; t++) {
            long seed = t + 1;
            threads[t] = new Thread(() -> run(() -> work(r, seed)));
        }
        threads[THREADS] = new Thread(() -> run(this::checkpoints));
        threads[THREADS + 1] = new Thread(() -> run(() -> drops(strategy)));
        long end = System.nanoTime() + NANOS;
        for (Thread t : threads) {
            t.start();
        }
        finish(threads, end);
        PoolInspection.check(f.pool);
        assertEquals(0, f.pool.pinnedBuffers());
        for (int i = 0; i < BLOCKS; i++) {
            assertEquals(counts.get(i), f.readVersion(r, ForkNumber.MAIN, i), "block " + i);
        }
        f.pool.flushAll();
        for (int i = 0; i < BLOCKS; i++) {
            assertEquals(
                    counts.get(i),
                    f.versionOnDisk(r, ForkNumber.MAIN, i),
                    "block " + i + " on disk");
        }
        assertTrue(operations.get() > 1000, "too little happened: " + operations);
        f.close();
    }

    /**
     * A buffer that a drop frees is what the clock hand takes next: it must have left its chain by
     * then.
     */
    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void buffersThatDropsFreeAreTakenAgainAtOnce(DropStrategy strategy) throws Exception {
        f = new PoolFixture(directory, true).lookupStyle(lookupStyle()).pool(16, false, strategy);
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 200);
        Thread[] threads = new Thread[6];
        for (int t = 0; t < threads.length; t++) {
            long seed = t + 1;
            SmgrRelation own = t % 2 == 0 ? f.create(100 + t, ForkNumber.MAIN, 3) : null;
            threads[t] =
                    new Thread(
                            () ->
                                    run(
                                            () -> {
                                                long x = seed * 0x9E3779B97F4A7C15L;
                                                while (!stop && failure.get() == null) {
                                                    x =
                                                            x * 6364136223846793005L
                                                                    + 1442695040888963407L;
                                                    int block = (int) ((x >>> 33) % 200);
                                                    if (own != null) {
                                                        f.readVersion(
                                                                own, ForkNumber.MAIN, block % 3);
                                                        f.pool.dropRelations(
                                                                new SmgrRelation[] {own}, 1);
                                                    } else {
                                                        f.readVersion(r, ForkNumber.MAIN, block);
                                                    }
                                                }
                                            }));
        }
        long end = System.nanoTime() + NANOS;
        for (Thread t : threads) {
            t.start();
        }
        finish(threads, end);
        PoolInspection.check(f.pool);
        f.close();
    }

    private void finish(Thread[] threads, long end) throws InterruptedException {
        while (System.nanoTime() < end && failure.get() == null) {
            Thread.sleep(20);
        }
        stop = true;
        for (Thread t : threads) {
            t.join(failure.get() == null ? 30_000 : 1_000); // who failed may have left locks
            if (failure.get() != null) {
                throw new AssertionError("the seed is fixed, the schedule is not", failure.get());
            }
            assertFalse(t.isAlive(), () -> "hangs: " + Arrays.toString(t.getStackTrace()));
        }
    }

    private void run(Runnable body) {
        try {
            body.run();
        } catch (Throwable t) {
            failure.compareAndSet(null, t);
        }
    }

    private void work(SmgrRelation r, long seed) {
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        long x = seed * 0x9E3779B97F4A7C15L;
        while (!stop && failure.get() == null) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            int block = (int) ((x >>> 33) % BLOCKS);
            int kind = (int) (x >>> 60);
            int b;
            try {
                b = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
            } catch (NoFreeBufferException e) {
                continue; // eight threads, two pins each at most, and the cleaners: it may happen
            }
            f.pool.wrap(b, page);
            if (kind < 6) {
                f.pool.lockShared(b);
                check(page, block);
                f.pool.unlock(b);
            } else if (kind < 14) {
                f.pool.lockExclusive(b);
                check(page, block);
                int next = page.getInt(4104) + 1;
                page.putInt(4104, next);
                f.pool.markDirty(b);
                if (kind == 13) {
                    f.pool.flushOne(b);
                }
                page.putInt(8000, next);
                counts.incrementAndGet(block);
                f.pool.markDirty(b);
                f.pool.unlock(b);
            } else if (f.pool.tryLockForCleanup(b)) {
                check(page, block);
                f.pool.unlock(b);
            }
            f.pool.release(b);
            operations.incrementAndGet();
        }
    }

    private static void check(UnsafeBuffer page, int block) {
        if (page.getInt(4096) != 1
                || page.getInt(4100) != block
                || page.getInt(4104) != page.getInt(8000)) {
            throw new AssertionError(
                    "rel "
                            + page.getInt(4096)
                            + " block "
                            + page.getInt(4100)
                            + " counters "
                            + page.getInt(4104)
                            + " "
                            + page.getInt(8000)
                            + " where block "
                            + block
                            + " should be");
        }
    }

    private void checkpoints() {
        while (!stop && failure.get() == null) {
            f.pool.flushAll();
            Thread.yield();
        }
    }

    /** Another relation comes and goes: drops run beside the others' evictions. */
    private void drops(DropStrategy strategy) {
        int rel = 2;
        while (!stop && failure.get() == null) {
            SmgrRelation r = f.relation(rel++);
            r.create(ForkNumber.MAIN, true);
            for (int i = 0; i < 3; i++) {
                try {
                    int b = f.pool.extend(r, ForkNumber.MAIN, true);
                    f.pool.markDirty(b);
                    f.pool.unlock(b);
                    f.pool.release(b);
                } catch (NoFreeBufferException e) {
                    break;
                }
            }
            f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            f.smgr.unlinkAll(new SmgrRelation[] {r}, 1, true);
        }
    }
}
