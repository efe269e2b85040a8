package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferAccessStrategy.Type;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Rings beside a model of PostgreSQL's rules, with others who pin, use and change the ring's pages
 * meanwhile; and rings with a fault each, which the model finds.
 */
@Timeout(120)
class BufferAccessStrategyTest {
    private static final int NBUFFERS = 64; // rings of 8
    private static final int BLOCKS = 400;
    private static final int STEPS = 1_500;

    @TempDir Path directory;
    private int runs;

    /** WAL up to here is durable; a page past it has to wait, which is counted. */
    private static final class Wal implements DurabilityGate {
        long flushed;
        int flushes;

        @Override
        public void beforeWrite(long pageLsn) {
            if (wouldFlush(pageLsn)) {
                flushed = pageLsn;
                flushes++;
            }
        }

        @Override
        public boolean wouldFlush(long pageLsn) {
            return pageLsn > flushed;
        }
    }

    /** A ring with a fault. */
    enum Mutant {
        REUSES_A_PINNED_BUFFER {
            @Override
            BufferAccessStrategy ring(Type type) {
                return new BufferAccessStrategy(type, NBUFFERS) {
                    @Override
                    boolean mayReuse(int pins, int uses) {
                        return uses <= 1;
                    }
                };
            }
        },
        IGNORES_THE_USAGE_COUNT {
            @Override
            BufferAccessStrategy ring(Type type) {
                return new BufferAccessStrategy(type, NBUFFERS) {
                    @Override
                    boolean mayReuse(int pins, int uses) {
                        return pins == 0;
                    }
                };
            }
        },
        TAKES_UNUSED_BUFFERS_ONLY {
            @Override
            BufferAccessStrategy ring(Type type) {
                return new BufferAccessStrategy(type, NBUFFERS) {
                    @Override
                    boolean mayReuse(int pins, int uses) {
                        return pins == 0 && uses == 0;
                    }
                };
            }
        },
        FORGETS_TO_REJECT {
            @Override
            BufferAccessStrategy ring(Type type) {
                return new BufferAccessStrategy(type, NBUFFERS) {
                    @Override
                    boolean reject(int buffer) {
                        return false;
                    }
                };
            }
        };

        abstract BufferAccessStrategy ring(Type type);
    }

    @ParameterizedTest
    @EnumSource(Replacement.class)
    void everyRingTakesTheBuffersThatPostgreSqlWouldTake(Replacement policy) {
        for (Type type : Type.values()) {
            for (int run = 0; run < 4; run++) {
                long seed = System.nanoTime();
                Throwable fault = run(policy, type, BufferAccessStrategy::new, seed);
                assertNull(fault, () -> type + " seed " + seed + ": " + fault);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyFaultIsFound(Mutant mutant) {
        for (int seed = 0; seed < 5; seed++) {
            for (Type type : Type.values()) {
                if (run(Replacement.CLOCK_SWEEP, type, (t, n) -> mutant.ring(t), seed) != null) {
                    return;
                }
            }
        }
        fail(mutant + " survived");
    }

    @ParameterizedTest
    @CsvSource({
        "BULK_READ,16384,32", "BULK_WRITE,16384,2048", "VACUUM,16384,32",
        "BULK_READ,128,16", "BULK_WRITE,1024,128", "VACUUM,16,2"
    })
    void sizesAreThoseOfPostgreSqlAndAnEighthOfThePoolAtMost(Type type, int nbuffers, int size) {
        assertEquals(size, BufferAccessStrategy.of(type, nbuffers).ringSize());
    }

    @Test
    void onlyScansOfMoreThanAQuarterOfThePoolUseARing() {
        assertNull(BufferAccessStrategy.forScan(0, 1024));
        assertNull(BufferAccessStrategy.forScan(256, 1024));
        assertEquals(Type.BULK_READ, BufferAccessStrategy.forScan(257, 1024).type());
        assertNotNull(BufferAccessStrategy.forScan(-2, 1024), "block counts are unsigned");
    }

    @Test
    void aScanOfPagesThatMustNotBeWrittenYetEndsAndFlushesNoWal() {
        try (PoolFixture f = new PoolFixture(directory.resolve("scan"), false)) {
            Wal wal = new Wal();
            f.pool(NBUFFERS, true, DropStrategy.FULL_SCAN, wal);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 200); // the last 64 are in the pool
            BufferAccessStrategy ring = BufferAccessStrategy.of(Type.BULK_READ, NBUFFERS);
            for (int block = 0; block < 40; block++) {
                int buffer = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL, ring);
                change(f, buffer, 1_000_000 + block);
                f.pool.release(buffer);
            }
            // The other 24 buffers hold clean pages: nobody had to write a dirty one.
            assertEquals(0, wal.flushes);
        }
    }

    @Test
    void aPageFoundThroughARingGetsAUseOnlyIfItHasNone() {
        try (PoolFixture f = new PoolFixture(directory.resolve("found"), false)) {
            f.pool(NBUFFERS, true, DropStrategy.FULL_SCAN);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
            BufferAccessStrategy ring = BufferAccessStrategy.of(Type.VACUUM, NBUFFERS);
            for (int used = 0; used <= 5; used++) {
                int buffer = f.pool.read(r, ForkNumber.MAIN, 99, ReadMode.NORMAL);
                int state = f.pool.descriptors.lockHeader(buffer);
                f.pool.descriptors.unlockHeader(
                        buffer,
                        state & ~BufferState.USAGECOUNT_MASK | used * BufferState.USAGECOUNT_ONE);
                for (int i = 0; i < 3; i++) {
                    f.pool.release(f.pool.read(r, ForkNumber.MAIN, 99, ReadMode.NORMAL, ring));
                }
                assertEquals(
                        Math.max(1, used),
                        BufferState.usageCount(f.pool.descriptors.state(buffer)));
                f.pool.release(buffer);
            }
        }
    }

    /** By all ways that take a ring: page by page, many at once, and pages that are added. */
    @ParameterizedTest
    @EnumSource(Replacement.class)
    void allThatGoesThroughARingTakesNoMoreThanTheRingFromThePool(Replacement policy) {
        try (PoolFixture f = new PoolFixture(directory.resolve("ways"), false)) {
            f.pool(
                    BufferPoolOptions.of(NBUFFERS)
                            .withStrategy(DropStrategy.FULL_SCAN)
                            .withReplacement(policy),
                    new DropParts());
            SmgrRelation r = f.create(1, ForkNumber.MAIN, BLOCKS);
            BufferAccessStrategy reads = BufferAccessStrategy.of(Type.BULK_READ, NBUFFERS);
            BufferAccessStrategy writes = BufferAccessStrategy.of(Type.BULK_WRITE, NBUFFERS);
            BackendBuffers backend = f.pool.backend("b");
            int[] buffers = new int[4];
            long before = f.pool.replacement.syncStart().allocations();
            for (int block = 0; block + 4 <= 300; block += 4) {
                int got =
                        backend.readMany(
                                r, ForkNumber.MAIN, block, 4, ReadMode.NORMAL, reads, buffers);
                giveBack(backend, buffers, got);
                buffers[0] = backend.read(r, ForkNumber.MAIN, block / 2, ReadMode.NORMAL, reads);
                giveBack(backend, buffers, 1);
            }
            long read = f.pool.replacement.syncStart().allocations();
            assertTrue(read - before <= 8, read - before + " buffers for reads");
            SmgrRelation grown = f.create(2, ForkNumber.MAIN, 1);
            long created = f.pool.replacement.syncStart().allocations();
            for (int i = 0; i < 50; i++) {
                int got = backend.extendBy(grown, ForkNumber.MAIN, 4, writes, buffers, false);
                giveBack(backend, buffers, got);
            }
            long extended = f.pool.replacement.syncStart().allocations();
            assertTrue(extended - created <= 8, extended - created + " buffers for new pages");
            assertTrue(grown.nblocks(ForkNumber.MAIN) > 50);
            backend.close();
            PoolInspection.check(f.pool);
        }
    }

    private static void giveBack(BackendBuffers backend, int[] buffers, int count) {
        for (int i = 0; i < count; i++) {
            backend.release(buffers[i]);
        }
    }

    private static void change(PoolFixture f, int buffer, long lsn) {
        f.pool.lockExclusive(buffer);
        Page.setLsn(f.page(buffer), lsn);
        f.pool.markDirty(buffer);
        f.pool.unlock(buffer);
    }

    /**
     * One backend scans by a ring; others read some of its pages, keep some pinned, and change
     * some.
     *
     * @return what differs from the model, or null
     */
    private Throwable run(
            Replacement policy,
            Type type,
            BiFunction<Type, Integer, BufferAccessStrategy> rings,
            long seed) {
        try (PoolFixture f = new PoolFixture(directory.resolve("run" + runs++), false)) {
            Wal wal = new Wal();
            f.pool =
                    BufferPool.open(
                            BufferPoolOptions.of(NBUFFERS)
                                    .withStrategy(DropStrategy.FULL_SCAN)
                                    .withReplacement(policy),
                            f.smgr,
                            wal);
            SmgrRelation r = f.create(1, ForkNumber.MAIN, BLOCKS);
            Scan scan = new Scan(f, r, wal, type, rings.apply(type, NBUFFERS), new Random(seed));
            try {
                for (int step = 0; step < STEPS; step++) {
                    scan.step(step);
                }
            } finally {
                scan.pinned.forEach(f.pool::release);
            }
            assertEquals(0, f.pool.pinnedBuffers());
            PoolInspection.check(f.pool);
            return null;
        } catch (AssertionError e) {
            return e;
        }
    }

    private static final class Scan {
        final PoolFixture f;
        final SmgrRelation r;
        final Wal wal;
        final Type type;
        final BufferAccessStrategy ring;
        final Random random;
        final List<Integer> pinned = new ArrayList<>();

        /** The model: the buffer of each place, -1 if it has none. */
        final int[] places;

        int current;
        int next;

        Scan(
                PoolFixture f,
                SmgrRelation r,
                Wal wal,
                Type type,
                BufferAccessStrategy ring,
                Random random) {
            this.f = f;
            this.r = r;
            this.wal = wal;
            this.type = type;
            this.ring = ring;
            this.random = random;
            places = new int[ring.ringSize()];
            Arrays.fill(places, -1);
        }

        void step(int step) {
            int kind = random.nextInt(10);
            if (kind == 0 && !pinned.isEmpty()) {
                f.pool.release(pinned.remove(random.nextInt(pinned.size())));
            } else if (kind <= 3 && step > 20) {
                touchAPageOfTheRing(kind);
            } else {
                scanABlock(step);
            }
        }

        /** Somebody else uses it; perhaps he keeps it, or changes it. */
        private void touchAPageOfTheRing(int kind) {
            int buffer = places[random.nextInt(places.length)];
            if (buffer < 0) {
                return;
            }
            int block = f.pool.block(buffer);
            boolean byRing = random.nextBoolean(); // a backend with a ring of its own
            BufferAccessStrategy other =
                    byRing ? BufferAccessStrategy.of(Type.VACUUM, NBUFFERS) : null;
            int found = f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL, other);
            if (kind == 1) {
                change(f, found, wal.flushed + random.nextInt(3) * 10L);
            }
            if (kind == 2 && pinned.size() < places.length - 3) {
                pinned.add(found);
            } else {
                f.pool.release(found);
            }
        }

        private void scanABlock(int step) {
            do {
                next = (next + 1) % BLOCKS;
            } while (f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, next) >= 0);
            long allocations = f.pool.replacement.syncStart().allocations();
            int flushes = wal.flushes;
            int expected = chooseInRing();
            boolean flushExpected = expected >= 0 && mustFlush(expected);
            int buffer = f.pool.read(r, ForkNumber.MAIN, next, ReadMode.NORMAL, ring);
            f.pool.release(buffer);
            boolean fromPool = f.pool.replacement.syncStart().allocations() != allocations;
            if (expected >= 0) {
                assertFalse(fromPool, "step " + step + ": the ring had buffer " + expected);
                assertEquals(expected, buffer, "step " + step);
                assertEquals(flushExpected, wal.flushes != flushes, "step " + step + ": WAL");
            } else {
                assertTrue(fromPool, "step " + step + ": the ring had none to take");
                places[current] = buffer;
            }
            assertTrue(
                    BufferState.usageCount(f.pool.descriptors.state(buffer)) <= 1,
                    "step " + step + ": a ring makes no page popular");
        }

        /** PostgreSQL's rules. @return the place's buffer, or -1 when the pool has to give one */
        private int chooseInRing() {
            for (; ; ) {
                current = (current + 1) % places.length;
                int buffer = places[current];
                if (buffer < 0) {
                    return -1;
                }
                int state = f.pool.descriptors.state(buffer);
                if (pinned.contains(buffer) || BufferState.usageCount(state) > 1) {
                    return -1;
                }
                if (type != Type.BULK_READ || !mustFlush(buffer)) {
                    return buffer;
                }
                places[current] = -1;
            }
        }

        private boolean mustFlush(int buffer) {
            return BufferState.has(f.pool.descriptors.state(buffer), BufferState.DIRTY)
                    && Page.lsn(f.page(buffer)) > wal.flushed;
        }
    }
}
