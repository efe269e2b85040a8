package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Six threads read a growing fork in runs, change its pages and make it grow, on few buffers and a
 * disk that refuses one transfer in fifty. Every page says which block it is and carries a counter;
 * each increment is noted outside. A page in the wrong buffer, a lost change, a block given out
 * twice, a leaked pin or a deadlock shows.
 */
@Timeout(120)
class RunsUnderFaultsTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;
    private static final int THREADS = 6;
    private static final int MOST_BLOCKS = 3000;
    private static final int ROUNDS = 1500;
    private static final int ABSENT = -1;

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;

    /** Changes of each block; {@link #ABSENT} until somebody has stamped it. */
    final AtomicIntegerArray counts = new AtomicIntegerArray(MOST_BLOCKS);

    final AtomicReference<Throwable> failure = new AtomicReference<>();
    final AtomicLong runs = new AtomicLong();
    final AtomicLong refused = new AtomicLong();

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    void nothingIsLostLeakedOrStuck(SizePolicy policy) throws Exception {
        f = new PoolFixture(directory, false, policy, 32).pool(96, true, DropStrategy.ADAPTIVE);
        f.pool.maxBackends(8); // 12 pins each
        r = f.create(1, MAIN, 0);
        for (int i = 0; i < MOST_BLOCKS; i++) {
            counts.set(i, ABSENT);
        }
        HookedDisk.Hook sometimes =
                (path, offset) -> {
                    if (ThreadLocalRandom.current().nextInt(50) == 0) {
                        refused.incrementAndGet();
                        throw new DiskException("planted", path, DiskException.EIO);
                    }
                };
        f.disk.beforeRead = sometimes;
        f.disk.beforeWrite = sometimes;
        Thread[] threads = new Thread[THREADS];
        for (int t = 0; t < THREADS; t++) {
            long seed = t + 1;
            threads[t] = new Thread(() -> work(seed));
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join(60_000);
            if (failure.get() != null) {
                throw new AssertionError("seeds 1 to " + THREADS, failure.get());
            }
            assertFalse(t.isAlive(), () -> "stuck: " + Arrays.toString(t.getStackTrace()));
        }
        f.disk.beforeRead = (path, offset) -> {};
        f.disk.beforeWrite = (path, offset) -> {};
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        checkAll();
        f.pool.flushAll();
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        checkAll();
        assertTrue(refused.get() > 100 && runs.get() > THREADS * ROUNDS / 4, "too little happened");
        f.close();
    }

    private void checkAll() {
        int size = r.nblocks(MAIN);
        for (int block = 0; block < size; block++) {
            int count = counts.get(block);
            if (count != ABSENT) {
                assertEquals(count, f.readVersion(r, MAIN, block), "block " + block);
            } else {
                // Added by an extension that failed after its write, or never stamped.
                int buffer = f.pool.read(r, MAIN, block, ReadMode.NORMAL);
                assertTrue(f.pool.io.isZeroPage(buffer), "block " + block);
                f.pool.release(buffer);
            }
        }
        for (int block = size; block < MOST_BLOCKS; block++) {
            assertEquals(ABSENT, counts.get(block), "block " + block + " is gone");
        }
    }

    private void work(long seed) {
        int[] buffers = new int[16];
        long x = seed * 0x9E3779B97F4A7C15L;
        try {
            for (int round = 0; round < ROUNDS && failure.get() == null; round++) {
                x = x * 6364136223846793005L + 1442695040888963407L;
                int kind = (int) (x >>> 60);
                int pick = (int) (x >>> 33);
                try {
                    if (kind < 2 || r.nblocks(MAIN) == 0) {
                        grow(1 + pick % 10, buffers);
                    } else if (kind < 6) {
                        change(pick);
                    } else {
                        readRun(pick, 1 + pick % 12, buffers);
                    }
                } catch (DiskException | NoFreeBufferException e) {
                    // Planted, or all buffers in use for a moment; nothing may be left of it.
                }
            }
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        }
    }

    private void grow(int count, int[] buffers) {
        if (r.nblocks(MAIN) + 100 > MOST_BLOCKS) {
            return;
        }
        int got = f.pool.extendBy(r, MAIN, count, null, buffers, true);
        for (int i = 0; i < got; i++) {
            int buffer = buffers[i];
            int block = f.pool.block(buffer);
            if (i > 0) {
                f.pool.lockExclusive(buffer);
            }
            if (!counts.compareAndSet(block, ABSENT, 0)) {
                throw new AssertionError("block given out twice " + block);
            }
            f.stamp(buffer, 1, block, 0);
            f.pool.markDirty(buffer);
            f.pool.unlock(buffer);
            f.pool.release(buffer);
        }
    }

    private void change(int pick) {
        int block = pick % r.nblocks(MAIN);
        int buffer = f.pool.read(r, MAIN, block, ReadMode.NORMAL);
        f.pool.lockExclusive(buffer);
        if (counts.get(block) != ABSENT) {
            check(buffer, block);
            f.page(buffer).putInt(4104, counts.incrementAndGet(block));
            f.pool.markDirty(buffer);
        }
        f.pool.unlock(buffer);
        f.pool.release(buffer);
    }

    private void readRun(int pick, int count, int[] buffers) {
        int size = r.nblocks(MAIN);
        int first = pick % size;
        int got =
                f.pool.readMany(
                        r,
                        MAIN,
                        first,
                        Math.min(count, size - first),
                        ReadMode.NORMAL,
                        null,
                        buffers);
        for (int i = 0; i < got; i++) {
            f.pool.lockShared(buffers[i]);
            if (counts.get(first + i) != ABSENT) {
                check(buffers[i], first + i);
            }
            f.pool.unlock(buffers[i]);
            f.pool.release(buffers[i]);
        }
        runs.incrementAndGet();
    }

    /** Counters change under the exclusive lock only, so under a shared one they agree. */
    private void check(int buffer, int block) {
        int there = f.page(buffer).getInt(4100);
        int version = f.page(buffer).getInt(4104);
        if (there != block || version != counts.get(block)) {
            throw new AssertionError(
                    "page of block "
                            + there
                            + " with counter "
                            + version
                            + " where block "
                            + block
                            + " with "
                            + counts.get(block)
                            + " should be");
        }
    }
}
