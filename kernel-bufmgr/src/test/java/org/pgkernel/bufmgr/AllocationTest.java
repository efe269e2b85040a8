package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.BufferAccessStrategy.Type;
import org.pgkernel.smgr.SmgrRelation;

/** The hot paths allocate nothing. */
class AllocationTest {
    private static final int ROUNDS = 20_000;

    @TempDir Path directory;

    @Test
    void hitsLocksAndMarksAllocateNothing() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(256, true, DropStrategy.LOOKUP)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
            assertAllocatesNothing(
                    "hit",
                    () -> {
                        for (int i = 0; i < ROUNDS; i++) {
                            int b = f.pool.read(r, ForkNumber.MAIN, i % 100, ReadMode.NORMAL);
                            f.pool.lockExclusive(b);
                            f.pool.markDirty(b);
                            f.pool.unlock(b);
                            f.pool.lockShared(b);
                            f.pool.markDirtyHint(b, true);
                            f.pool.unlock(b);
                            f.pool.release(b);
                        }
                    });
        }
    }

    @Test
    void pinsAndLocksOfABackendAllocateNothing() {
        try (PoolFixture f =
                new PoolFixture(directory, false).pool(256, true, DropStrategy.LOOKUP)) {
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
            BackendBuffers backend = f.pool.backend("b");
            int[] held = new int[20]; // more than the array holds
            assertAllocatesNothing(
                    "pins and locks as scopes",
                    () -> {
                        for (int i = 0; i < held.length; i++) {
                            held[i] = backend.read(r, ForkNumber.MAIN, i, ReadMode.NORMAL);
                        }
                        for (int i = 0; i < ROUNDS; i++) {
                            try (BufferPin pin =
                                            backend.pin(
                                                    r, ForkNumber.MAIN, i % 100, ReadMode.NORMAL);
                                    ContentLock lock = pin.lockExclusive()) {
                                backend.pinAgain(pin.buffer());
                                pin.markDirty();
                                backend.release(pin.buffer());
                            }
                        }
                        for (int buffer : held) {
                            backend.release(buffer);
                        }
                    });
            backend.close();
        }
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void missesEvictionsAndWritesAllocateNothingOfThePoolsOwn(Replacement policy) {
        BufferPoolOptions options =
                BufferPoolOptions.of(16).withStrategy(DropStrategy.LOOKUP).withReplacement(policy);
        try (PoolFixture f = new PoolFixture(directory, true).pool(options, new DropParts())) {
            BufferAccessStrategy ring = BufferAccessStrategy.of(Type.BULK_WRITE, 16);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
            // Nothing of the pool's own. A system call may cost a 40-byte view of its errno, if the
            // compiler does not inline it away.
            long systemCalls = 2L * ROUNDS / 4;
            assertAllocatesAtMost(
                    systemCalls * 40 + 256,
                    "miss with a dirty victim",
                    () -> {
                        for (int i = 0; i < ROUNDS / 4; i++) {
                            BufferAccessStrategy by = i % 2 == 0 ? ring : null;
                            int b = f.pool.read(r, ForkNumber.MAIN, i % 100, ReadMode.NORMAL, by);
                            f.pool.lockExclusive(b);
                            f.pool.markDirty(b);
                            f.pool.unlock(b);
                            f.pool.release(b);
                        }
                    });
        }
    }

    @Test
    void vectoredReadsAllocateNothingOfThePoolsOwn() {
        try (PoolFixture f =
                new PoolFixture(directory, true).pool(64, true, DropStrategy.ADAPTIVE)) {
            f.pool.maxBackends(8);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 200);
            int[] buffers = new int[8];
            long systemCalls = ROUNDS / 4;
            assertAllocatesAtMost(
                    systemCalls * 40 + 256,
                    "vectored read with evictions",
                    () -> {
                        for (int i = 0; i < ROUNDS / 4; i++) {
                            int first = i * 8 % 192;
                            int got =
                                    f.pool.readMany(
                                            r,
                                            ForkNumber.MAIN,
                                            first,
                                            8,
                                            ReadMode.NORMAL,
                                            null,
                                            buffers);
                            for (int b = 0; b < got; b++) {
                                f.pool.release(buffers[b]);
                            }
                            f.pool.prefetch(r, ForkNumber.MAIN, first, 4);
                        }
                    });
        }
    }

    @Test
    void extensionsAllocateNothingOfThePoolsOwn() {
        try (PoolFixture f =
                new PoolFixture(directory, false).pool(64, true, DropStrategy.ADAPTIVE)) {
            f.pool.maxBackends(8);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 1);
            ForkNumber[] forks = {ForkNumber.MAIN};
            int[] first = {1};
            int[] buffers = new int[8];
            long systemCalls = 6L * ROUNDS / 40;
            assertAllocatesAtMost(
                    systemCalls * 40 + 256,
                    "extension by several pages",
                    () -> {
                        for (int i = 0; i < ROUNDS / 40; i++) {
                            int got = f.pool.extendBy(r, ForkNumber.MAIN, 8, null, buffers, true);
                            f.pool.unlock(buffers[0]);
                            for (int b = 0; b < got; b++) {
                                f.pool.release(buffers[b]);
                            }
                            f.pool.release(f.pool.extend(r, ForkNumber.MAIN, false));
                            f.pool.dropRelationForks(r, forks, first, 1);
                            r.truncate(ForkNumber.MAIN, 1);
                        }
                    });
        }
    }

    @Test
    void dropsAllocateNothing() {
        for (DropStrategy strategy : DropStrategy.values()) {
            try (PoolFixture f =
                    new PoolFixture(directory.resolve(strategy.name()), true)
                            .pool(4096, true, strategy)) {
                SmgrRelation[] relations = new SmgrRelation[30];
                for (int i = 0; i < relations.length; i++) {
                    relations[i] = f.create(i + 1, ForkNumber.MAIN, 2);
                }
                ForkNumber[] forks = {ForkNumber.MAIN};
                int[] first = {1};
                assertAllocatesAtMost(
                        500 * 40 + 256,
                        "drop by " + strategy,
                        () -> {
                            for (int i = 0; i < 500; i++) {
                                f.pool.dropRelationForks(relations[i % 30], forks, first, 1);
                                f.pool.dropRelations(relations, 30);
                                f.pool.release(
                                        f.pool.read(
                                                relations[i % 30],
                                                ForkNumber.MAIN,
                                                0,
                                                ReadMode.NORMAL));
                            }
                        });
            }
        }
    }

    static void assertAllocatesNothing(String what, Runnable work) {
        assertAllocatesAtMost(256, what, work);
    }

    private static void assertAllocatesAtMost(long limit, String what, Runnable work) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        long end = System.nanoTime() + 20_000_000_000L;
        while (least > limit && System.nanoTime() < end) { // until the compiler has done its work
            long before = threads.getCurrentThreadAllocatedBytes();
            work.run();
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertTrue(least <= limit, what + " allocates: " + least + " bytes");
    }
}
