package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/** What every replacement policy owes the pool, whatever it chooses. */
@Timeout(120)
class ReplacementContractTest {
    @TempDir Path directory;

    PoolFixture f;

    private SmgrRelation open(Replacement policy, int nbuffers, int blocks) {
        f = new PoolFixture(directory, false);
        f.pool(
                BufferPoolOptions.of(nbuffers)
                        .withStrategy(DropStrategy.FULL_SCAN)
                        .withReplacement(policy),
                new DropParts());
        return f.create(1, ForkNumber.MAIN, blocks);
    }

    @AfterEach
    void close() {
        try {
            assertEquals(0, f.pool.pinnedBuffers(), "pins left");
            PoolInspection.check(f.pool);
        } finally {
            f.close();
        }
    }

    private int read(SmgrRelation r, int block) {
        return f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL);
    }

    private boolean isResident(int block) {
        return f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, block) >= 0;
    }

    private int missing() {
        int block = 0;
        while (isResident(block)) {
            block++;
        }
        return block;
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void theOnlyUnpinnedBufferIsFoundWhicheverItIs(Replacement policy) {
        SmgrRelation r = open(policy, 16, 40);
        for (int round = 0; round < 4; round++) {
            for (int free = 0; free < 16; free++) {
                int[] pinned = pinAllBut(r, free);
                int taken = read(r, missing());
                assertEquals(free, taken, "round " + round);
                f.pool.release(taken);
                for (int buffer : pinned) {
                    f.pool.release(buffer);
                }
            }
        }
    }

    /** Pins what is in all buffers but one. */
    private int[] pinAllBut(SmgrRelation r, int free) {
        int[] pinned = new int[15];
        int count = 0;
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            if (d.buffer() != free) {
                pinned[count] = read(r, d.block());
                assertEquals(d.buffer(), pinned[count++]);
            }
        }
        assertEquals(15, count);
        return pinned;
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void withEveryBufferPinnedTheCallerIsToldAndAfterOneUnpinItWorksAgain(Replacement policy) {
        SmgrRelation r = open(policy, 16, 40);
        int[] pinned = new int[16];
        for (int i = 0; i < 16; i++) {
            pinned[i] = read(r, i);
        }
        BufferAccessStrategy ring = BufferAccessStrategy.of(BufferAccessStrategy.Type.VACUUM, 16);
        for (int i = 0; i < 3; i++) {
            NoFreeBufferException e = assertThrows(NoFreeBufferException.class, () -> read(r, 20));
            assertTrue(e.getMessage().contains("no unpinned buffer"), e.getMessage());
            assertThrows(
                    NoFreeBufferException.class,
                    () -> f.pool.read(r, ForkNumber.MAIN, 20, ReadMode.NORMAL, ring));
            assertThrows(
                    NoFreeBufferException.class, () -> f.pool.extend(r, ForkNumber.MAIN, true));
        }
        f.pool.release(read(r, 3)); // what is in the pool can still be read
        f.pool.release(pinned[7]);
        assertEquals(pinned[7], read(r, 20));
        for (int buffer : pinned) {
            f.pool.release(buffer);
        }
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void victimsThatAreHeldAreAllDifferentAndNoneIsLeftAfterThem(Replacement policy)
            throws Exception {
        open(policy, 64, 200);
        Set<Integer> held = ConcurrentHashMap.newKeySet();
        AtomicInteger twice = new AtomicInteger();
        Thread[] threads = new Thread[8];
        for (int t = 0; t < threads.length; t++) {
            int hash = t * 0x9E3779B9;
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 8; i++) {
                                    if (!held.add(f.pool.replacement.victim(hash + i))) {
                                        twice.incrementAndGet();
                                    }
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(0, twice.get(), "a buffer was given twice");
        assertEquals(64, held.size());
        assertThrows(NoFreeBufferException.class, () -> f.pool.replacement.victim(1));
        held.forEach(f.pool.allocator::unpin);
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void buffersThatADropFreedAreTakenFirst(Replacement policy) {
        SmgrRelation r = open(policy, 16, 40);
        SmgrRelation s = f.create(2, ForkNumber.MAIN, 4);
        Set<Integer> freed = new HashSet<>();
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            if (d.relation().relNumber() == 2) {
                freed.add(d.buffer());
            }
        }
        assertFalse(freed.isEmpty());
        f.pool.dropRelations(new SmgrRelation[] {s}, 1);
        Set<Integer> used = new HashSet<>();
        long ticks = f.pool.replacement.syncStart().ticks();
        for (int i = 0; i < freed.size(); i++) {
            int buffer = read(r, missing());
            used.add(buffer);
            f.pool.release(buffer);
        }
        assertEquals(freed, used);
        assertEquals(ticks, f.pool.replacement.syncStart().ticks(), "the hand did not move");
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void aPageUsedAgainAndAgainStaysWhileOthersPassThrough(Replacement policy) {
        SmgrRelation r = open(policy, 64, 400);
        for (int i = 0; i < 10; i++) {
            f.pool.release(read(r, 0));
        }
        for (int i = 1; i < 2000; i++) {
            f.pool.release(read(r, 1 + i % 399));
            if (i % 8 == 0) {
                assertTrue(isResident(0), "evicted after " + i);
                f.pool.release(read(r, 0));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void aScanThroughARingTakesItsRingFromThePoolAndNoMore(Replacement policy) {
        SmgrRelation hot = open(policy, 256, 220);
        SmgrRelation big = f.create(2, ForkNumber.MAIN, 2000);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 220; i++) {
                f.pool.release(read(hot, i));
            }
        }
        Set<Integer> before = new HashSet<>();
        for (int i = 0; i < 220; i++) {
            if (isResident(i)) {
                before.add(i);
            }
        }
        assertTrue(before.size() >= 200, "hot pages are in the pool: " + before.size());
        BufferAccessStrategy ring = BufferAccessStrategy.forScan(2000, 256);
        assertEquals(32, ring.ringSize());
        long allocations = f.pool.replacement.syncStart().allocations();
        for (int i = 0; i < 2000; i++) {
            f.pool.release(f.pool.read(big, ForkNumber.MAIN, i, ReadMode.NORMAL, ring));
        }
        assertTrue(f.pool.replacement.syncStart().allocations() - allocations <= 32);
        long gone = before.stream().filter(block -> !isResident(block)).count();
        assertTrue(gone <= 32, gone + " hot pages went");
    }

    /** Random use by one thread; what is pinned stays what it is. */
    @ParameterizedTest
    @EnumSource(Replacement.class)
    void aPinnedPageStaysInItsBuffer(Replacement policy) {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        SmgrRelation r = open(policy, 16, 60);
        SmgrRelation s = f.create(2, ForkNumber.MAIN, 4);
        Map<Integer, Integer> pinned = new HashMap<>(); // buffer, block
        for (int i = 0; i < 20_000; i++) {
            int block = random.nextInt(60);
            if (random.nextInt(100) == 0) {
                f.readVersion(s, ForkNumber.MAIN, random.nextInt(4));
                f.pool.dropRelations(new SmgrRelation[] {s}, 1);
            } else if (pinned.size() < 14 && random.nextBoolean()) {
                if (!pinned.containsValue(block)) {
                    pinned.put(read(r, block), block);
                }
            } else if (!pinned.isEmpty() && random.nextInt(3) == 0) {
                int buffer = new ArrayList<>(pinned.keySet()).get(random.nextInt(pinned.size()));
                f.pool.release(buffer);
                pinned.remove(buffer);
            } else {
                f.readVersion(r, ForkNumber.MAIN, block);
            }
            pinned.forEach((b, at) -> assertEquals(at, f.pool.block(b), "seed " + seed));
        }
        pinned.keySet().forEach(f.pool::release);
    }

    /** Threads with rings and without, drops between them: every page read is the right one. */
    @ParameterizedTest
    @EnumSource(Replacement.class)
    void threadsThatReplaceAtTheSameTimeGetTheirOwnPages(Replacement policy) throws Exception {
        SmgrRelation r = open(policy, 32, 120);
        SmgrRelation dropped = f.create(2, ForkNumber.MAIN, 3);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicInteger refused = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            Random random = new Random(t);
            BufferAccessStrategy ring =
                    t < 6 ? null : BufferAccessStrategy.of(BufferAccessStrategy.Type.VACUUM, 32);
            boolean drops = t == 0;
            threads.add(
                    new Thread(
                            () -> {
                                try {
                                    for (int i = 0; i < 4_000 && failure.get() == null; i++) {
                                        use(r, dropped, drops && i % 10 == 0, random, ring);
                                    }
                                } catch (NoFreeBufferException e) {
                                    refused.incrementAndGet();
                                } catch (Throwable e) {
                                    failure.compareAndSet(null, e);
                                }
                            }));
        }
        threads.forEach(Thread::start);
        for (Thread t : threads) {
            t.join();
        }
        assertNull(failure.get(), () -> Arrays.toString(failure.get().getStackTrace()));
        assertEquals(0, refused.get(), "each thread has two pins at most, so buffers are left");
    }

    private void use(
            SmgrRelation r,
            SmgrRelation dropped,
            boolean drop,
            Random random,
            BufferAccessStrategy ring) {
        if (drop) {
            f.pool.release(f.pool.read(dropped, ForkNumber.MAIN, 1, ReadMode.NORMAL));
            f.pool.dropRelations(new SmgrRelation[] {dropped}, 1);
            return;
        }
        int[] blocks = {random.nextInt(120), random.nextInt(120)};
        int[] buffers = new int[2];
        for (int i = 0; i < 2; i++) {
            buffers[i] = f.pool.read(r, ForkNumber.MAIN, blocks[i], ReadMode.NORMAL, ring);
        }
        for (int i = 0; i < 2; i++) {
            assertEquals(blocks[i], f.pool.block(buffers[i]));
            assertEquals(blocks[i], f.page(buffers[i]).getInt(4100));
            f.pool.release(buffers[i]);
        }
    }
}
