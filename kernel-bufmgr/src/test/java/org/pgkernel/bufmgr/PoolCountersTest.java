package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** Every kind of work is counted once, where it belongs. */
class PoolCountersTest {
    @TempDir Path directory;

    private PoolFixture f;
    private SmgrRelation r;
    private Map<PoolCounter, Long> before;

    @BeforeEach
    void fill() {
        f = new PoolFixture(directory, true).pool(16, false, DropStrategy.ADAPTIVE);
        r = f.create(1, ForkNumber.MAIN, 40);
        f.pool.flushAll();
        before = values();
    }

    @AfterEach
    void close() {
        f.close();
    }

    private Map<PoolCounter, Long> values() {
        Map<PoolCounter, Long> values = new EnumMap<>(PoolCounter.class);
        for (PoolCounter counter : PoolCounter.values()) {
            values.put(counter, f.pool.counters().value(counter));
        }
        return values;
    }

    /** What changed since {@link #before}, and nothing but that. */
    private void assertCounted(Object... expected) {
        Map<PoolCounter, Long> changes = new EnumMap<>(PoolCounter.class);
        values().forEach(
                        (counter, value) -> {
                            if (value != before.get(counter).longValue()) {
                                changes.put(counter, value - before.get(counter));
                            }
                        });
        Map<PoolCounter, Long> wanted = new EnumMap<>(PoolCounter.class);
        for (int i = 0; i < expected.length; i += 2) {
            wanted.put((PoolCounter) expected[i], ((Integer) expected[i + 1]).longValue());
        }
        assertEquals(wanted, changes);
        before = values();
    }

    private void read(int block) {
        f.pool.release(f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
    }

    @Test
    void readsHitsAndEvictions() {
        read(0);
        assertCounted(PoolCounter.READS, 1, PoolCounter.EVICTIONS, 1);
        read(0);
        read(0);
        assertCounted(PoolCounter.HITS, 2);
        int[] buffers = new int[4];
        int got = f.pool.readMany(r, ForkNumber.MAIN, 1, 4, ReadMode.NORMAL, null, buffers);
        Arrays.stream(buffers, 0, got).forEach(f.pool::release);
        assertCounted(PoolCounter.READS, got, PoolCounter.EVICTIONS, got);
        try (BackendBuffers backend = f.pool.backend("b")) {
            int first = backend.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
            int again = backend.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
            backend.release(first);
            backend.release(again);
        }
        assertCounted(PoolCounter.HITS, 2);
    }

    @Test
    void addedPagesAreNoReads() {
        f.pool.release(f.pool.extend(r, ForkNumber.MAIN, false));
        assertCounted(PoolCounter.EXTENSIONS, 1, PoolCounter.EVICTIONS, 1);
    }

    @Test
    void writesByWhoWroteThem() {
        f.change(r, ForkNumber.MAIN, 0, 1);
        before = values();
        f.pool.flushAll();
        assertCounted(PoolCounter.WRITES_BY_CHECKPOINTER, 1);
        f.change(r, ForkNumber.MAIN, 0, 2);
        before = values();
        f.pool.flushRelation(r);
        assertCounted(PoolCounter.WRITES_BY_FLUSHES, 1);
        f.change(r, ForkNumber.MAIN, 0, 3);
        before = values();
        for (int block = 1; block < 40; block++) {
            read(block);
        }
        long evicted = values().get(PoolCounter.WRITES_BY_BACKENDS);
        assertEquals(before.get(PoolCounter.WRITES_BY_BACKENDS) + 1, evicted, "to make room");
    }

    @Test
    void dropsByPath() {
        for (int block = 0; block < 3; block++) {
            read(block);
        }
        before = values();
        int resident = f.pool.snapshot().summary().used();
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        PoolCounter path = PoolCounter.of(f.pool.dropStatistics().decisions().getLast().path());
        assertCounted(path, 1, PoolCounter.DROPPED, resident);
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        assertCounted(PoolCounter.DROPS_OF_NOTHING, 1);
    }

    @Test
    void syncsAreTheStorageManagers() {
        int synced = f.syncs.process();
        assertTrue(synced > 0);
        // The files, and the directory that got them.
        assertCounted(PoolCounter.SYNCS, synced + 1);
    }

    @Test
    void hitsOfManyThreadsAddUp() throws InterruptedException {
        read(0);
        before = values();
        AtomicInteger done = new AtomicInteger();
        Thread[] threads = new Thread[20];
        for (int t = 0; t < threads.length; t++) {
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 1000; i++) {
                                    read(0);
                                }
                                done.incrementAndGet();
                            });
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(threads.length, done.get());
        assertCounted(PoolCounter.HITS, 20_000);
    }

    @Test
    void everyCounterHasALineWithItsUnit() {
        String[] lines = f.pool.counters().toString().split("\n");
        assertEquals(PoolCounter.values().length, lines.length);
        for (PoolCounter counter : PoolCounter.values()) {
            String line = lines[counter.ordinal()];
            assertTrue(line.endsWith(" " + counter.unit() + " " + counter.text()), line);
        }
    }
}
