package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageVerify;
import org.pgkernel.testkit.SimulatedDisk;

/** What must hold of pool, files and counters while all threads of a {@link StressRun} rest. */
final class StressChecks {
    private static final int SEGMENT_BYTES = StressRun.SEGMENT_BLOCKS * Page.SIZE;

    private final StressRun run;
    private final BufferPool pool;

    StressChecks(StressRun run) {
        this.run = run;
        this.pool = run.pool;
    }

    /**
     * @param kernelStopped a sync has failed, so no checkpoint may be made any more
     */
    void check(boolean kernelStopped) {
        PoolInspection.check(pool);
        assertEquals(0, pool.pinnedBuffers(), "pins left");
        checkCounters();
        checkPool();
        pool.flushAll();
        assertEquals(0, pool.snapshot().summary().dirty(), "dirty after a write-out");
        checkFiles(run.disk.simulated, "in its file");
        if (!kernelStopped) {
            run.syncs.preCheckpoint();
            run.wal.moveRedoPointer();
            run.syncs.process();
            run.syncs.postCheckpoint();
            checkFiles(
                    run.disk.simulated.found(SimulatedDisk.LOSE_ALL),
                    "in its file after a crash behind the checkpoint");
        }
    }

    private void checkCounters() {
        PoolCounters counters = pool.counters();
        long found = counters.value(PoolCounter.HITS) + counters.value(PoolCounter.READS);
        long asked = run.pagesAsked.sum();
        assertTrue(
                found >= asked && found <= asked + run.pagesPerhaps.sum(),
                () -> found + " hits and reads of " + asked + " pages + " + run.pagesPerhaps);
        long written =
                counters.value(PoolCounter.WRITES_BY_CHECKPOINTER)
                        + counters.value(PoolCounter.WRITES_BY_BACKGROUND_WRITER)
                        + counters.value(PoolCounter.WRITES_BY_BACKENDS)
                        + counters.value(PoolCounter.WRITES_BY_FLUSHES);
        assertEquals(run.disk.pagesWritten.sum(), written, "pages that the disk was given");
        assertEquals(run.pagesAdded.sum(), counters.value(PoolCounter.EXTENSIONS), "pages added");
        long drops =
                counters.value(PoolCounter.DROPS_BY_FULL_SCAN)
                        + counters.value(PoolCounter.DROPS_BY_LOOKUP)
                        + counters.value(PoolCounter.DROPS_BY_FINGERPRINT_SCAN)
                        + counters.value(PoolCounter.DROPS_BY_LIST_WALK)
                        + counters.value(PoolCounter.DROPS_OF_NOTHING);
        assertEquals(run.dropCalls.sum(), drops, "calls of drops");
    }

    /** Every page in the pool is the newest; a clean one is in its file as it is in the pool. */
    private void checkPool() {
        Map<String, byte[]> files = new HashMap<>();
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        int dirty = 0;
        int used = 0;
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(pool)) {
            StressRelation relation = relationOf(d);
            used++;
            dirty += d.dirty() ? 1 : 0;
            pool.wrap(d.buffer(), page);
            String fault = relation.fault(page, d.fork(), d.block(), true);
            assertEquals(null, fault, () -> "in the pool: " + d);
            if (!d.dirty()) {
                byte[] file = files.computeIfAbsent(path(relation, d), path -> content(path));
                int at = d.block() % StressRun.SEGMENT_BLOCKS * Page.SIZE;
                assertTrue(file.length >= at + Page.SIZE, () -> "not in the file: " + d);
                byte[] there = new byte[Page.SIZE];
                page.getBytes(0, there);
                byte[] written = Arrays.copyOfRange(file, at, at + Page.SIZE);
                assertArrayEquals(withoutChecksum(there), withoutChecksum(written), () -> "" + d);
            }
        }
        PoolSnapshot.Summary summary = pool.snapshot().summary();
        assertEquals(dirty, summary.dirty(), "dirty pages");
        assertEquals(used, summary.used(), "used buffers");
    }

    private StressRelation relationOf(PoolInspection.Descriptor d) {
        for (StressRelation relation : run.relations) {
            if (relation.handle.locator().equals(d.relation())) {
                return relation;
            }
        }
        throw new AssertionError("a page of a relation that was dropped: " + d);
    }

    private String path(StressRelation relation, PoolInspection.Descriptor d) {
        return segment(
                run.path(relation, relation.handle.relNumber(), d.fork()),
                d.block() / StressRun.SEGMENT_BLOCKS);
    }

    private byte[] content(String path) {
        byte[] content = run.disk.simulated.content(path);
        return content == null ? new byte[0] : content;
    }

    private static byte[] withoutChecksum(byte[] page) {
        page[Page.PD_CHECKSUM] = 0;
        page[Page.PD_CHECKSUM + 1] = 0;
        return page;
    }

    private static String segment(String path, int segment) {
        return segment == 0 ? path : path + "." + segment;
    }

    /** Every page of every relation is the newest one; every other block is zeros or not there. */
    private void checkFiles(SimulatedDisk disk, String where) {
        for (StressRelation relation : run.relations) {
            for (int fork = 0; fork < StressRelation.FORKS.length; fork++) {
                checkFork(disk, relation, fork, where);
            }
        }
    }

    private void checkFork(SimulatedDisk disk, StressRelation relation, int fork, String where) {
        ForkNumber number = StressRelation.FORKS[fork];
        int blocks = relation.handle.nblocks(number);
        String path = run.path(relation, relation.handle.relNumber(), fork);
        byte[] file = null;
        for (int block = 0; block < StressRelation.CAPACITY; block++) {
            int at = block * Page.SIZE % SEGMENT_BYTES;
            if (at == 0) {
                file = disk.content(segment(path, block / StressRun.SEGMENT_BLOCKS));
            }
            int here = block;
            boolean there = file != null && file.length >= at + Page.SIZE;
            if (block >= blocks) {
                assertEquals(0, relation.version(fork, block), () -> "past the end " + where);
            } else if (there) {
                UnsafeBuffer page = new UnsafeBuffer(file, at, Page.SIZE);
                String fault = relation.fault(page, fork, block, true);
                assertEquals(null, fault, () -> where + ": " + relation.place(fork, here));
                assertTrue(
                        PageVerify.isValid(page, block, pool.checksums()),
                        () -> "checksum " + where + ": " + relation.place(fork, here));
                run.tally.pagesCompared.increment();
            } else {
                // A block of zeros that was added and not changed is not worth a sync.
                assertEquals(0, relation.version(fork, block), () -> "not " + where);
            }
        }
    }
}
