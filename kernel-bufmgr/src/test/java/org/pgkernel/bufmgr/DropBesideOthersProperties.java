package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.statistics.Statistics;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Relations, truncations and databases are dropped while other threads read, change, write and
 * evict pages of other relations in the same, too small pool: after each drop nothing of its
 * victims is left, and at the end nothing of the others was lost, and what the strategy keeps is
 * what is there.
 */
class DropBesideOthersProperties {
    private static final int WORKERS = 3;
    private static final int BLOCKS = 90;
    private static final int OWN_DB = 9;
    private static final int ROUNDS = 40;

    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final AtomicInteger operations = new AtomicInteger();
    private volatile boolean stop;

    @Property(tries = 14, edgeCases = EdgeCasesMode.NONE)
    void dropsLeaveNothingAndTakeNothingElse(
            @ForAll DropStrategy strategy,
            @ForAll @IntRange(min = 24, max = 150) int nbuffers,
            @ForAll long seed)
            throws Exception {
        Path directory = Files.createTempDirectory("beside");
        BufferPoolOptions options = BufferPoolOptions.of(nbuffers).withStrategy(strategy);
        try (PoolFixture f = new PoolFixture(directory, true)) {
            f.pool(options, new DropStrategyProperties.NarrowFingerprints(3));
            run(f, seed);
            Statistics.collect(strategy);
        } finally {
            DropRun.delete(directory);
        }
    }

    private void run(PoolFixture f, long seed) throws InterruptedException {
        stop = false; // one instance serves all tries
        failure.set(null);
        operations.set(0);
        AtomicIntegerArray counts = new AtomicIntegerArray(2 * BLOCKS);
        SmgrRelation[] relations = {
            f.create(1, ForkNumber.MAIN, BLOCKS), f.create(2, ForkNumber.MAIN, BLOCKS)
        };
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < WORKERS; t++) {
            long mine = seed + t;
            threads.add(
                    new Thread(() -> guarded(() -> work(f, relations, counts, new Random(mine)))));
        }
        threads.add(
                new Thread(
                        () ->
                                guarded(
                                        () -> {
                                            while (!stop) {
                                                f.pool.flushAll();
                                                Thread.yield();
                                            }
                                        })));
        threads.forEach(Thread::start);
        guarded(() -> drops(f, new Random(~seed)));
        stop = true;
        for (Thread t : threads) {
            t.join(20_000);
            assertFalse(t.isAlive(), "hangs");
        }
        if (failure.get() != null) {
            throw new AssertionError("the seed is fixed, the schedule is not", failure.get());
        }
        assertTrue(operations.get() > ROUNDS, "too little happened: " + operations);
        PoolInspection.check(f.pool);
        assertEquals(0, f.pool.pinnedBuffers());
        for (int i = 0; i < 2 * BLOCKS; i++) {
            assertEquals(
                    counts.get(i),
                    f.readVersion(relations[i / BLOCKS], ForkNumber.MAIN, i % BLOCKS));
        }
    }

    private void guarded(Runnable body) {
        try {
            body.run();
        } catch (Throwable t) {
            failure.compareAndSet(null, t);
            stop = true;
        }
    }

    private void work(
            PoolFixture f, SmgrRelation[] relations, AtomicIntegerArray counts, Random random) {
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        while (!stop) {
            int i = random.nextInt(2 * BLOCKS);
            int b;
            try {
                b =
                        f.pool.read(
                                relations[i / BLOCKS],
                                ForkNumber.MAIN,
                                i % BLOCKS,
                                ReadMode.NORMAL);
            } catch (NoFreeBufferException e) {
                continue;
            }
            f.pool.lockExclusive(b);
            f.pool.wrap(b, page);
            if (page.getInt(4096) != i / BLOCKS + 1
                    || page.getInt(4100) != i % BLOCKS
                    || page.getInt(4104) != counts.get(i)) {
                throw new AssertionError("page " + i + " is not what was written");
            }
            if (random.nextBoolean()) {
                page.putInt(4104, counts.incrementAndGet(i));
                f.pool.markDirty(b);
            }
            f.pool.unlock(b);
            f.pool.release(b);
            operations.incrementAndGet();
        }
    }

    /**
     * Each round: one relation in a database of its own, of two forks, some pages evicted by the
     * others by the time it is dropped.
     */
    private void drops(PoolFixture f, Random random) {
        ForkNumber[] forks = {ForkNumber.MAIN, ForkNumber.FSM};
        for (int round = 0; round < ROUNDS && !stop; round++) {
            SmgrRelation r = f.smgr.open(PoolFixture.SPC, OWN_DB, 100 + round);
            int[] sizes = {random.nextInt(30), random.nextInt(4)};
            for (int i = 0; i < 2; i++) {
                r.create(forks[i], true);
                for (int block = 0; block < sizes[i]; block++) {
                    int b = f.pool.extend(r, forks[i], true);
                    f.stamp(b, r.relNumber(), block, round);
                    f.pool.markDirty(b);
                    f.pool.unlock(b);
                    f.pool.release(b);
                }
            }
            if (random.nextInt(3) == 0) {
                int[] first = {random.nextInt(sizes[0] + 1), random.nextInt(sizes[1] + 1)};
                f.pool.dropRelationForks(r, forks, first, 2);
                assertGone(f, r, first);
                for (int i = 0; i < 2; i++) {
                    r.truncate(forks[i], first[i]);
                    for (int block = 0; block < first[i]; block++) {
                        assertEquals(round, f.readVersion(r, forks[i], block));
                    }
                }
            }
            if (random.nextInt(4) == 0) {
                f.pool.dropDatabase(OWN_DB);
            } else {
                f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            }
            assertGone(f, r, new int[2]);
            f.smgr.unlinkAll(new SmgrRelation[] {r}, 1, true);
        }
    }

    /** Brute force, each descriptor under its header lock. */
    private static void assertGone(PoolFixture f, SmgrRelation r, int[] first) {
        BufferDescriptors d = f.pool.descriptors;
        for (int buffer = 0; buffer < f.pool.nbuffers(); buffer++) {
            int state = d.lockHeader(buffer);
            boolean left =
                    (state & BufferState.TAG_VALID) != 0
                            && d.isOfRelation(buffer, r.spcOid(), r.dbOid(), r.relNumber())
                            && Integer.compareUnsigned(d.block(buffer), first[d.fork(buffer)]) >= 0;
            d.unlockHeader(buffer, state);
            assertFalse(left, "left of a dropped relation");
        }
    }
}
