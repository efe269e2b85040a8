package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.statistics.Statistics;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * While threads change, read and evict pages, and the background writer cleans: whatever had been
 * changed when a flush or a checkpoint began is in the file when it returns, under every strategy
 * and found in every way (C32 for the checkpoint, the flush and the background writer).
 */
class WriteOutBesideOthersProperties {
    private static final int WORKERS = 2;
    private static final int RELATIONS = 3;
    private static final int BLOCKS = 60;
    private static final int ROUNDS = 60;

    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final AtomicInteger changes = new AtomicInteger();
    private volatile boolean stop;

    @Property(tries = 16, edgeCases = EdgeCasesMode.NONE)
    void whatWasDirtyBeforeIsOnDiskAfterwards(
            @ForAll DropStrategy strategy,
            @ForAll FlushPath way,
            @ForAll @IntRange(min = 32, max = 250) int nbuffers,
            @ForAll long seed)
            throws Exception {
        Path directory = Files.createTempDirectory("writeout");
        BufferPoolOptions options = BufferPoolOptions.of(nbuffers).withStrategy(strategy);
        DropParts parts =
                strategy == DropStrategy.ADAPTIVE
                        ? new FlushProperties.Forced(way, null)
                        : new DropParts();
        try (PoolFixture f = new PoolFixture(directory, true)) {
            f.pool(options, parts);
            run(f, seed);
            Statistics.collect(strategy);
        } finally {
            DropRun.delete(directory);
        }
    }

    private void run(PoolFixture f, long seed) throws Exception {
        stop = false; // one instance serves all tries
        failure.set(null);
        changes.set(0);
        SmgrRelation[] relations = new SmgrRelation[RELATIONS];
        for (int i = 0; i < RELATIONS; i++) {
            relations[i] = f.create(i + 1, ForkNumber.MAIN, BLOCKS);
        }
        AtomicIntegerArray versions = new AtomicIntegerArray(RELATIONS * BLOCKS);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < WORKERS; t++) {
            long mine = seed + t;
            threads.add(
                    new Thread(
                            () -> guarded(() -> work(f, relations, versions, new Random(mine)))));
        }
        threads.add(new Thread(() -> guarded(() -> clean(f))));
        threads.forEach(Thread::start);
        guarded(() -> writeOut(f, relations, versions, new Random(~seed)));
        stop = true;
        for (Thread t : threads) {
            t.join(20_000);
            assertFalse(t.isAlive(), "hangs");
        }
        if (failure.get() != null) {
            throw new AssertionError("the seed is fixed, the schedule is not", failure.get());
        }
        assertTrue(changes.get() > ROUNDS, "too little happened: " + changes);
        PoolInspection.check(f.pool);
        assertEquals(0, f.pool.pinnedBuffers());
    }

    /** A page's version is told after it was changed, marked and unlocked. */
    private void work(
            PoolFixture f, SmgrRelation[] relations, AtomicIntegerArray versions, Random random) {
        while (!stop) {
            int r = random.nextInt(RELATIONS);
            int block = random.nextInt(BLOCKS);
            int buffer = f.pool.read(relations[r], ForkNumber.MAIN, block, ReadMode.NORMAL);
            if (random.nextInt(3) == 0) {
                f.pool.release(buffer);
                continue;
            }
            f.pool.lockExclusive(buffer);
            int version = f.version(buffer) + 1;
            f.page(buffer).putInt(4104, version);
            f.pool.markDirty(buffer);
            // Under the lock, or a later version could be told before this one.
            versions.set(r * BLOCKS + block, version);
            f.pool.unlock(buffer);
            f.pool.release(buffer);
            changes.incrementAndGet();
        }
    }

    private void clean(PoolFixture f) {
        AtomicLong now = new AtomicLong();
        BackgroundWriter writer =
                f.pool.backgroundWriter(BackgroundWriterOptions.DEFAULT, now::get);
        while (!stop) {
            now.addAndGet(BackgroundWriterOptions.DEFAULT.delayNanos());
            writer.doWork();
            Thread.yield();
        }
    }

    private void writeOut(
            PoolFixture f, SmgrRelation[] relations, AtomicIntegerArray versions, Random random) {
        for (int round = 0; round < ROUNDS && failure.get() == null; round++) {
            int kind = random.nextInt(4);
            int one = random.nextInt(RELATIONS);
            int[] before = new int[RELATIONS * BLOCKS];
            for (int i = 0; i < before.length; i++) {
                before[i] = versions.get(i);
            }
            switch (kind) {
                case 0 -> f.pool.flushRelation(relations[one]);
                case 1 -> f.pool.flushRelations(relations, 2);
                case 2 -> f.pool.flushDatabase(PoolFixture.DB);
                default -> f.pool.flushAll();
            }
            for (int i = 0; i < before.length; i++) {
                int r = i / BLOCKS;
                boolean victim = kind >= 2 || (kind == 0 ? r == one : r < 2);
                if (victim) {
                    int onDisk = f.versionOnDisk(relations[r], ForkNumber.MAIN, i % BLOCKS);
                    assertTrue(
                            onDisk >= before[i],
                            "kind "
                                    + kind
                                    + " relation "
                                    + (r + 1)
                                    + " block "
                                    + i % BLOCKS
                                    + ": had "
                                    + before[i]
                                    + ", on disk "
                                    + onDisk);
                }
            }
        }
    }

    private void guarded(Runnable body) {
        try {
            body.run();
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
            stop = true;
        }
    }
}
