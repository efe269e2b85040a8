package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/** C33: every buffer pinned is said at once, and one unpin is enough to go on. */
@Timeout(60)
class NoFreeBufferTest {
    private static final int NBUFFERS = 16;

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    final int[] pinned = new int[NBUFFERS];

    /** After so many rounds of the hand without an unpinned buffer the error comes. */
    long rounds() {
        return 1;
    }

    PoolFixture fixture() {
        return new PoolFixture(directory, false);
    }

    @BeforeEach
    void open() {
        f = fixture().pool(NBUFFERS, true, DropStrategy.ADAPTIVE);
        r = f.create(1, ForkNumber.MAIN, 60);
        for (int i = 0; i < NBUFFERS; i++) {
            pinned[i] = f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
            for (int use = 0; use < 6; use++) {
                f.pool.release(f.pool.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL));
            }
            assertEquals(5, BufferState.usageCount(f.pool.descriptors.state(pinned[i])));
        }
    }

    @AfterEach
    void close() {
        assertEquals(0, f.pool.pinnedBuffers(), "pins left");
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    @DisplayName("C33: buffers pinned and used often: the error comes after one round of the hand")
    void theErrorComesAfterOneRoundWhateverTheUsageCounts() {
        long before = f.pool.replacement.policy().ticks();
        NoFreeBufferException e =
                assertThrows(
                        NoFreeBufferException.class,
                        () -> f.pool.read(r, ForkNumber.MAIN, 30, ReadMode.NORMAL));
        assertTrue(e.getMessage().endsWith("nbuffers=16"), e.getMessage());
        long looks = f.pool.replacement.policy().ticks() - before;
        assertTrue(looks >= NBUFFERS && looks <= rounds() * NBUFFERS, looks + " looks");
        for (int buffer : pinned) {
            assertEquals(5, BufferState.usageCount(f.pool.descriptors.state(buffer)));
        }
        releaseAll();
    }

    @Test
    @DisplayName("C33: one unpin of a much used buffer, and the pool works again")
    void oneUnpinIsEnough() {
        f.pool.release(pinned[7]);
        long before = f.pool.replacement.policy().ticks();
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 30));
        // Five rounds take its uses, the sixth takes it.
        assertTrue(f.pool.replacement.policy().ticks() - before <= (5 + rounds()) * NBUFFERS);
        for (int i = 31; i < 60; i++) {
            assertEquals(0, f.readVersion(r, ForkNumber.MAIN, i), "through the one buffer");
        }
        pinned[7] = -1;
        releaseAll();
    }

    @Test
    @DisplayName("C33: many threads are all told, and all served after one unpin")
    void manyThreadsAreAllTold() throws Exception {
        AtomicInteger told = new AtomicInteger();
        List<FutureTask<Integer>> threads = new ArrayList<>();
        for (int t = 0; t < 6; t++) {
            int block = 20 + t;
            threads.add(
                    JustDirtiedTest.start(
                            () -> {
                                for (int i = 0; i < 200; i++) {
                                    assertThrows(
                                            NoFreeBufferException.class,
                                            () -> f.readVersion(r, ForkNumber.MAIN, block));
                                    told.incrementAndGet();
                                }
                                return 0;
                            }));
        }
        for (FutureTask<Integer> t : threads) {
            t.get();
        }
        assertEquals(1200, told.get());
        f.pool.release(pinned[3]);
        pinned[3] = -1;
        threads.clear();
        for (int t = 0; t < 6; t++) {
            int block = 20 + t;
            threads.add(JustDirtiedTest.start(() -> readOnceItCanBe(block)));
        }
        for (FutureTask<Integer> t : threads) {
            assertEquals(0, t.get());
        }
        releaseAll();
    }

    /** While another has the only free buffer pinned the error is right, and may be retried. */
    private int readOnceItCanBe(int block) {
        for (; ; ) {
            try {
                return f.readVersion(r, ForkNumber.MAIN, block);
            } catch (NoFreeBufferException e) {
                assertTrue(e.mayRetry());
                Thread.onSpinWait();
            }
        }
    }

    private void releaseAll() {
        for (int buffer : pinned) {
            if (buffer >= 0) {
                f.pool.release(buffer);
            }
        }
    }
}
