package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * BUF-15 when memory runs out: between a pin and its note nothing is allocated, so there is no pin
 * that nobody knows of. However many pins and locks the backend has, as its notes grow.
 */
class NotesBeforePinsTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;
    private static final int PAGES = 400;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @TempDir Path directory;

    /** What this thread had allocated when it pinned the last buffer. */
    private long atPin;

    private PoolFixture f;
    private SmgrRelation r;
    private BackendBuffers backend;

    @BeforeEach
    void open() {
        DropParts parts =
                new DropParts() {
                    @Override
                    BufferDescriptors descriptors(PoolMemory memory, DirtyBitmap dirty) {
                        return new BufferDescriptors(memory, dirty) {
                            @Override
                            boolean pinUnchanged(int buffer, long word, int most) {
                                boolean pinned = super.pinUnchanged(buffer, word, most);
                                atPin = THREADS.getCurrentThreadAllocatedBytes();
                                return pinned;
                            }
                        };
                    }
                };
        f = new PoolFixture(directory, false).pool(BufferPoolOptions.of(512), parts);
        f.pool.maxBackends(2);
        r = f.create(1, MAIN, PAGES); // all of them stay
    }

    @AfterEach
    void close() {
        f.close();
    }

    private interface Step {
        void pin(int i);
    }

    /**
     * Takes the steps in several backends, one after the other: what is allocated for the notes is
     * allocated in each of them at the same step, what the virtual machine needs is not.
     */
    private void assertNothingAllocatedSinceThePin(int steps, Step step) {
        long[] least = new long[steps];
        Arrays.fill(least, Long.MAX_VALUE);
        for (int round = 0; round < 5; round++) {
            backend = f.pool.backend("b" + round);
            try (BufferScope scope = backend.enter("round")) { // all goes with it
                for (int i = 0; i < steps; i++) {
                    step.pin(i);
                    long since = THREADS.getCurrentThreadAllocatedBytes() - atPin;
                    least[i] = Math.min(least[i], since);
                }
            }
            backend.close();
            assertEquals(0, f.pool.pinnedBuffers());
        }
        for (int i = 0; i < steps; i++) {
            assertEquals(0, least[i], "bytes between a pin and its note, at step " + i);
        }
    }

    @Test
    void aReadNotesItsPinWithoutAllocation() {
        assertNothingAllocatedSinceThePin(PAGES, i -> backend.read(r, MAIN, i, ReadMode.NORMAL));
    }

    @Test
    void aLockThatComesWithAPinIsNotedWithoutAllocation() {
        assertNothingAllocatedSinceThePin(
                PAGES, i -> backend.read(r, MAIN, i, ReadMode.ZERO_AND_LOCK));
    }

    @Test
    void aReadOfNeighboursNotesItsPinsWithoutAllocation() {
        int[] buffers = new int[7];
        assertNothingAllocatedSinceThePin(
                30,
                i ->
                        assertEquals(
                                7,
                                backend.readMany(
                                        r, MAIN, 7 * i, 7, ReadMode.NORMAL, null, buffers)));
    }
}
