package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;
import static org.pgkernel.bufmgr.BufferState.*;
import static org.pgkernel.bufmgr.LookupParts.*;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What {@link PageLookup} promises, whichever kind it is. */
@Timeout(60)
abstract class LookupContract {
    private LookupParts open;

    abstract LookupStyle style();

    private LookupParts parts(int nbuffers) {
        open = new LookupParts(nbuffers, style());
        return open;
    }

    @AfterEach
    void release() {
        if (open != null) {
            open.close();
        }
    }

    @Test
    void aBlockThatNoBufferHoldsIsAbsent() {
        LookupParts p = parts(16);
        assertEquals(PageLookup.ABSENT, p.pin(3));
        assertTrue(p.map(5, 3));
        assertEquals(PageLookup.ABSENT, p.pin(4));
        assertTrue(p.unmap(5, 3));
        assertEquals(PageLookup.ABSENT, p.pin(3));
        assertEquals(0, p.pins());
    }

    @Test
    void aBlockIsFoundInItsBufferAndPinnedOnce() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        assertEquals(5, p.pin(3));
        assertEquals(1, refcount(p.descriptors.state(5)));
        assertEquals(5, p.pin(3));
        assertEquals(2, refcount(p.descriptors.state(5)));
        assertEquals(2, p.pins());
    }

    @Test
    void everyFieldOfTheTagIsCompared() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        int hash = hash(3); // the same chain for all of them
        assertEquals(5, p.lookup.pin(hash, SPC, DB, REL, FORK, 3, 5));
        assertEquals(PageLookup.ABSENT, p.lookup.pin(hash, SPC + 1, DB, REL, FORK, 3, 5));
        assertEquals(PageLookup.ABSENT, p.lookup.pin(hash, SPC, DB + 1, REL, FORK, 3, 5));
        assertEquals(PageLookup.ABSENT, p.lookup.pin(hash, SPC, DB, REL + 1, FORK, 3, 5));
        assertEquals(PageLookup.ABSENT, p.lookup.pin(hash, SPC, DB, REL, FORK + 1, 3, 5));
        assertEquals(PageLookup.ABSENT, p.lookup.pin(hash, SPC, DB, REL, FORK, 4, 5));
        assertEquals(1, p.pins());
    }

    @Test
    void aPageThatIsNotValidIsPinnedAndSaidToBePending() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        int state = p.descriptors.lockHeader(5);
        p.descriptors.unlockHeader(5, state & ~VALID | IO_IN_PROGRESS);
        assertEquals(5 | PageLookup.PENDING, p.pin(3));
        assertEquals(1, p.pins());
    }

    @Test
    void everyPinIsAUseUpToFive() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        for (int uses = 1; uses <= 10; uses++) {
            assertEquals(Math.min(uses, MAX_USAGE_COUNT), usageCount(p.descriptors.state(5)));
            assertEquals(5, p.pin(3));
            p.descriptors.unpin(5);
        }
    }

    @Test
    void aPinMayBeAUseUpToLess() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        assertEquals(5, p.lookup.pin(hash(3), SPC, DB, REL, FORK, 3, 1));
        assertEquals(1, usageCount(p.descriptors.state(5)));
        assertEquals(5, p.lookup.pin(hash(3), SPC, DB, REL, FORK, 3, 3));
        assertEquals(2, usageCount(p.descriptors.state(5)));
        assertEquals(2, refcount(p.descriptors.state(5)));
    }

    @Test
    void allBlocksOfOneLongChainAreFound() {
        int[] blocks = collidingBlocks(3 * OptimisticLookup.MOST_STEPS);
        LookupParts p = parts(128);
        for (int i = 0; i < blocks.length; i++) {
            assertTrue(p.map(i, blocks[i]));
        }
        for (int i = 0; i < blocks.length; i++) {
            assertEquals(i, p.pin(blocks[i]));
        }
        assertEquals(PageLookup.ABSENT, p.pin(collidingBlocks(blocks.length + 1)[blocks.length]));
    }

    @Test
    void theLockOfTheHeaderIsWaitedFor() throws Exception {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        int state = p.descriptors.lockHeader(5);
        AtomicReference<Integer> found = new AtomicReference<>();
        Thread reader = new Thread(() -> found.set(p.pin(3)));
        reader.start();
        while (reader.getState() != Thread.State.TIMED_WAITING) { // it parks in short naps
            Thread.onSpinWait();
        }
        assertNull(found.get());
        p.descriptors.unlockHeader(5, state | DIRTY);
        reader.join();
        assertEquals(5, found.get());
        assertEquals(1, refcount(p.descriptors.state(5)));
        assertNotEquals(0, p.descriptors.state(5) & DIRTY, "the holder's change is there");
    }

    @Test
    void aBlockThatStaysIsFoundWhileItsChainChanges() throws Exception {
        int[] blocks = collidingBlocks(16);
        LookupParts p = parts(16);
        assertTrue(p.map(0, blocks[0]));
        run(
                3,
                200_000,
                (id, random) -> {
                    if (id == 0) {
                        int buffer = p.pin(blocks[0]);
                        assertEquals(0, buffer, "the block is in buffer 0 all the time");
                        p.descriptors.unpin(buffer);
                        return;
                    }
                    // Neighbours in the chain come and go, each thread with its own blocks.
                    int number = id + 2 * random.nextInt(7);
                    if (random.nextBoolean()) {
                        p.unmap(number, blocks[number]);
                    } else if (!p.holds(number, blocks[number])) {
                        p.map(number, blocks[number]);
                    }
                });
        assertEquals(0, p.pins());
    }

    @Test
    void aPinnedBufferHoldsTheBlockThatWasAskedFor() throws Exception {
        LookupParts p = parts(16);
        AtomicLong found = new AtomicLong();
        Object[] owners = new Object[64];
        for (int i = 0; i < 64; i++) {
            owners[i] = new Object();
        }
        run(
                4,
                200_000,
                (id, random) -> {
                    int block = random.nextInt(64);
                    if (id < 2) {
                        int buffer = p.pin(block);
                        if (buffer != PageLookup.ABSENT) {
                            assertTrue(p.holds(buffer, block), "another block's buffer");
                            Thread.onSpinWait();
                            assertTrue(p.holds(buffer, block), "taken away from under the pin");
                            p.descriptors.unpin(buffer);
                            found.incrementAndGet();
                        }
                        return;
                    }
                    synchronized (owners[block]) { // a block is mapped by one thread at a time
                        int buffer = p.pin(block);
                        if (buffer == PageLookup.ABSENT) {
                            p.map(random.nextInt(16), block);
                        } else {
                            p.descriptors.unpin(buffer);
                        }
                    }
                });
        assertEquals(0, p.pins());
        assertTrue(found.get() > 100, "too few found: " + found);
    }

    @Test
    void noPinIsLostOnAHotPage() throws Exception {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        run(
                4,
                200_000,
                (id, random) -> {
                    if (id == 0) { // header locks beside it, whose holders store the whole state
                        int state = p.descriptors.lockHeader(5);
                        p.descriptors.unlockHeader(5, state ^ CHECKPOINT_NEEDED);
                    } else {
                        assertEquals(5, p.pin(3));
                        assertTrue(refcount(p.descriptors.state(5)) > 0);
                        p.descriptors.unpin(5);
                    }
                });
        assertEquals(0, p.pins());
    }

    @Test
    void aLookupAllocatesNothing() {
        LookupParts p = parts(16);
        assertTrue(p.map(5, 3));
        AllocationTest.assertAllocatesNothing(
                "lookup, pin, unpin",
                () -> {
                    for (int i = 0; i < 20_000; i++) {
                        p.descriptors.unpin(p.pin(3));
                        p.pin(4);
                    }
                });
    }

    private interface Step {
        void run(int id, SplittableRandom random);
    }

    /** Runs the step so many times on each of the threads, and fails as the first of them. */
    private static void run(int count, int times, Step step) throws Exception {
        long seed = System.nanoTime();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CyclicBarrier start = new CyclicBarrier(count);
        IntConsumer body =
                id -> {
                    SplittableRandom random = new SplittableRandom(seed + id);
                    try {
                        start.await();
                        for (int i = 0; i < times && failure.get() == null; i++) {
                            step.run(id, random);
                        }
                    } catch (Throwable t) {
                        failure.compareAndSet(null, t);
                    }
                };
        List<Thread> threads = new ArrayList<>();
        for (int id = 0; id < count; id++) {
            int mine = id;
            threads.add(new Thread(() -> body.accept(mine)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        assertNull(failure.get(), () -> "seed " + seed + ": " + failure.get());
    }
}
