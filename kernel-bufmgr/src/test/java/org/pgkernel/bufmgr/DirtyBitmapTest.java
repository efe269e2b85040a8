package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The dirty bitmap against a BitSet, and under threads. */
class DirtyBitmapTest {
    private static DirtyBitmap bitmap(int nbuffers) {
        return new DirtyBitmap(new UnsafeBuffer(new byte[DirtyBitmap.bytes(nbuffers)]), nbuffers);
    }

    @Property(tries = 60, edgeCases = EdgeCasesMode.NONE)
    void findsWhatABitSetFinds(
            @ForAll @IntRange(min = 16, max = 600_000) int nbuffers, @ForAll long seed) {
        DirtyBitmap bitmap = bitmap(nbuffers);
        BitSet model = new BitSet();
        Random random = new Random(seed);
        assertEquals(0, bitmap.groupsNotEmpty());
        for (int round = 0; round < 60; round++) {
            // Near each other or far apart, set or cleared.
            int at = random.nextInt(nbuffers);
            int spread = random.nextBoolean() ? 100 : nbuffers;
            boolean set = random.nextInt(5) < 3;
            for (int i = random.nextInt(40); i >= 0; i--) {
                int buffer = Math.min(nbuffers - 1, at + random.nextInt(spread));
                if (set) {
                    bitmap.set(buffer);
                } else {
                    bitmap.clear(buffer);
                }
                model.set(buffer, set);
                assertEquals(set, bitmap.isSet(buffer));
                assertEquals(set, bitmap.isReachable(buffer));
            }
            int from = random.nextInt(nbuffers);
            int end = from + random.nextInt(nbuffers - from + 1);
            int expected = model.nextSetBit(from);
            assertEquals(expected >= end ? -1 : expected, bitmap.next(from, end));
        }
        assertEquals(model, all(bitmap, nbuffers));
        assertEquals(model.stream().map(b -> b >>> 11).distinct().count(), bitmap.groupsNotEmpty());
        for (int b = model.nextSetBit(0); b >= 0; b = model.nextSetBit(b + 1)) {
            bitmap.clear(b);
        }
        assertEquals(0, bitmap.groupsNotEmpty(), "no summary is left when the last bit is gone");
        assertEquals(0, bitmap.estimate());
    }

    private static BitSet all(DirtyBitmap bitmap, int nbuffers) {
        BitSet found = new BitSet();
        for (int b = bitmap.next(0, nbuffers); b >= 0; b = bitmap.next(b + 1, nbuffers)) {
            found.set(b);
        }
        return found;
    }

    @Test
    void theLargestPoolsLastBufferIsFound() {
        int nbuffers = BufferPool.MAX_BUFFERS;
        DirtyBitmap bitmap = bitmap(nbuffers);
        bitmap.set(nbuffers - 1);
        assertEquals(nbuffers - 1, bitmap.next(0, nbuffers));
        assertEquals(-1, bitmap.next(0, nbuffers - 1));
        bitmap.clear(nbuffers - 1);
        assertEquals(-1, bitmap.next(0, nbuffers));
    }

    /** Estimates choose between right ways only, but should not be far off. */
    @Property(tries = 30, edgeCases = EdgeCasesMode.NONE)
    void estimatesAreNearWhatIsThere(
            @ForAll @IntRange(min = 1, max = 60_000) int dirty,
            @ForAll boolean scattered,
            @ForAll long seed) {
        requireNear(dirty, scattered, seed);
    }

    /** A run whose first group has one word with few bits. */
    @Test
    void aRunOverTwoGroupsIsEstimatedFromBoth() {
        requireNear(988, false, 75);
    }

    private static void requireNear(int dirty, boolean scattered, long seed) {
        int nbuffers = 1 << 21;
        DirtyBitmap bitmap = bitmap(nbuffers);
        Random random = new Random(seed);
        BitSet model = new BitSet();
        BitSet words = new BitSet();
        int at = random.nextInt(nbuffers - dirty);
        for (int i = 0; i < dirty; i++) {
            int buffer = scattered ? random.nextInt(nbuffers) : at + i;
            bitmap.set(buffer);
            model.set(buffer);
            words.set(buffer >>> 6);
        }
        long estimate = bitmap.estimate();
        assertNear(words.cardinality(), estimate >>> 32);
        assertNear(model.cardinality(), estimate & 0xFFFFFFFFL);
    }

    private static void assertNear(long expected, long estimate) {
        assertTrue(
                estimate >= (expected - 64) / 4 && estimate <= expected * 4 + 64,
                "estimated " + estimate + " for " + expected);
    }

    /**
     * Each thread sets and clears bits of its own, interleaved with others' in the same words and
     * groups: a bit that is set is found from the top, at once and by every search.
     */
    @Test
    @Timeout(60)
    void aSetBitIsFoundWhateverOthersDo() throws Exception {
        int nbuffers = 64 * 40;
        DirtyBitmap bitmap = bitmap(nbuffers);
        int threads = 4;
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicBoolean stop = new AtomicBoolean();
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int mine = t;
            all.add(
                    new Thread(
                            () -> {
                                try {
                                    Random random = new Random(mine);
                                    for (int i = 0; i < 60_000 && !stop.get(); i++) {
                                        int word = random.nextInt(40);
                                        int b = word * 64 + mine * 7 + random.nextInt(3);
                                        bitmap.set(b);
                                        assertTrue(bitmap.isReachable(b), "right after set");
                                        if (i % 16 == 0) {
                                            assertTrue(all(bitmap, nbuffers).get(b), "by search");
                                        }
                                        assertNotEquals(0, bitmap.groupsNotEmpty());
                                        assertTrue(bitmap.isReachable(b), "a little later");
                                        bitmap.clear(b);
                                        assertFalse(bitmap.isSet(b));
                                    }
                                } catch (Throwable e) {
                                    failure.compareAndSet(null, e);
                                    stop.set(true);
                                }
                            }));
        }
        all.forEach(Thread::start);
        for (Thread t : all) {
            t.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("seeds 0 to 3, one a thread", failure.get());
        }
        assertEquals(0, bitmap.groupsNotEmpty());
        assertEquals(0, bitmap.estimate());
    }
}
