package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/** Reads of neighbouring blocks, and hints that they will be read. */
@Timeout(60)
class VectoredReadTest {
    private static final int BLOCKS = 60;
    private static final int SEGMENT = 16;
    private static final ForkNumber MAIN = ForkNumber.MAIN;

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    final int[] buffers = new int[64];

    /** Calls of the disk for several blocks, and blocks read in all. */
    final AtomicInteger calls = new AtomicInteger();

    final List<Long> blocksRead = Collections.synchronizedList(new ArrayList<>());

    @BeforeEach
    void open() {
        start(false);
    }

    /** A relation none of whose pages is in the pool, in segments of 16 blocks. */
    private void start(boolean inRecovery) {
        f =
                new PoolFixture(
                                directory.resolve("recovery=" + inRecovery),
                                inRecovery,
                                SizePolicy.RECOVERY_ONLY,
                                SEGMENT)
                        .pool(256, true, DropStrategy.ADAPTIVE);
        f.pool.maxBackends(4);
        r = f.create(1, MAIN, BLOCKS);
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        f.disk.beforeVectoredRead = (path, offset) -> calls.incrementAndGet();
        f.disk.beforeRead = (path, offset) -> blocksRead.add(block(path, offset));
    }

    private static long block(String path, long offset) {
        int dot = path.lastIndexOf('.');
        int segment = dot < 0 ? 0 : Integer.parseInt(path.substring(dot + 1));
        return (long) segment * SEGMENT + offset / Page.SIZE;
    }

    @AfterEach
    void close() {
        try {
            assertEquals(0, f.pool.pinnedBuffers(), "BUF-8: pins left");
            PoolInspection.check(f.pool);
        } finally {
            f.close();
        }
    }

    private int read(int block, int count) {
        return f.pool.readMany(r, MAIN, block, count, ReadMode.NORMAL, null, buffers);
    }

    private void releaseAll(int count) {
        for (int i = 0; i < count; i++) {
            f.pool.release(buffers[i]);
        }
    }

    private void assertPages(int first, int count) {
        for (int i = 0; i < count; i++) {
            assertEquals(first + i, f.pool.block(buffers[i]));
            assertEquals(first + i, f.page(buffers[i]).getInt(4100), "page of buffer " + i);
            assertEquals(1, f.page(buffers[i]).getInt(4096));
        }
    }

    private int readCheckAndRelease(int first, int count) {
        int got = read(first, count);
        assertPages(first, got);
        releaseAll(got);
        return got;
    }

    private boolean isResident(int block) {
        return f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, block) >= 0;
    }

    @Test
    void missingNeighboursAreReadByOneCall() {
        assertEquals(10, read(3, 10));
        assertEquals(1, calls.get());
        assertEquals(10, blocksRead.size());
        assertPages(3, 10);
        releaseAll(10);
        assertEquals(10, read(3, 10));
        assertEquals(10, blocksRead.size(), "they were there");
        assertPages(3, 10);
        releaseAll(10);
    }

    @Test
    void aRunCrossesASegmentBorderByOneCallForEachSegment() {
        assertEquals(20, read(10, 20));
        assertEquals(2, calls.get());
        assertPages(10, 20);
        releaseAll(20);
    }

    @Test
    void residentPagesArePinnedAndOnlyTheOthersRead() {
        for (int block : new int[] {4, 5, 9}) {
            f.readVersion(r, MAIN, block);
        }
        f.change(r, MAIN, 5, 77);
        blocksRead.clear();
        assertEquals(12, read(0, 12));
        assertPages(0, 12);
        assertEquals(77, f.version(buffers[5]));
        assertEquals(List.of(0L, 1L, 2L, 3L, 6L, 7L, 8L, 10L, 11L), blocksRead);
        assertEquals(3, calls.get());
        for (int i = 0; i < 12; i++) {
            int state = f.pool.descriptors.state(buffers[i]);
            assertEquals(1, f.refcount(buffers[i]), "pins of block " + i);
        }
        releaseAll(12);
    }

    @Test
    void longRunsAreReadInPieces() {
        f.close();
        f = new PoolFixture(directory, false).pool(512, true, DropStrategy.ADAPTIVE);
        f.pool.maxBackends(4);
        r = f.create(2, MAIN, 60);
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        calls.set(0);
        f.disk.beforeVectoredRead = (path, offset) -> calls.incrementAndGet();
        assertEquals(60, read(0, 60));
        assertEquals(2, calls.get(), "60 blocks, at most " + VectoredReader.MAX_RUN + " at once");
        for (int i = 0; i < 60; i++) {
            assertEquals(i, f.page(buffers[i]).getInt(4100));
        }
        releaseAll(60);
    }

    @Test
    void aScanThroughARingKeepsToItsBuffers() {
        BufferAccessStrategy ring =
                BufferAccessStrategy.of(BufferAccessStrategy.Type.BULK_READ, 256);
        assertEquals(32, ring.ringSize());
        Set<Integer> used = new HashSet<>();
        for (int round = 0; round < 5; round++) {
            for (int block = 0; block < BLOCKS; ) {
                int count = Math.min(48, BLOCKS - block);
                int got = f.pool.readMany(r, MAIN, block, count, ReadMode.NORMAL, ring, buffers);
                assertTrue(got >= 1 && got <= 32, "more pins than the ring has buffers");
                assertPages(block, got);
                for (int i = 0; i < got; i++) {
                    used.add(buffers[i]);
                }
                releaseAll(got);
                block += got;
            }
        }
        assertEquals(32, used.size());
    }

    @Test
    void aDamagedPageInTheMiddleIsNamedAndItsNeighboursStay() {
        f.poke(r, MAIN, 7, 5000, 1);
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> read(4, 8));
        assertTrue(e.getMessage().endsWith("rel=1663/5/1 fork=main block=7"), e.getMessage());
        assertEquals(0, f.pool.pinnedBuffers());
        assertFalse(isResident(7));
        blocksRead.clear();
        for (int block : new int[] {4, 5, 6, 8, 9, 10, 11}) {
            assertEquals(0, f.readVersion(r, MAIN, block));
        }
        assertEquals(List.of(), blocksRead, "the good pages of the run are in the pool");
        assertEquals(8, f.pool.readMany(r, MAIN, 4, 8, ReadMode.ZERO_ON_ERROR, null, buffers));
        assertTrue(Page.isNew(f.page(buffers[3])));
        assertEquals(0, f.page(buffers[3]).getLong(5000));
        assertEquals(8, f.page(buffers[4]).getInt(4100));
        releaseAll(8);
    }

    @Test
    void aDamagedPageBeforeAResidentOneLeavesNoPin() {
        f.readVersion(r, MAIN, 5);
        f.poke(r, MAIN, 4, 100, 1, 2, 3);
        assertThrows(DamagedDataException.class, () -> read(3, 4));
        assertEquals(0, f.pool.pinnedBuffers());
    }

    @Test
    void severalDamagedPagesAreAllTold() {
        f.poke(r, MAIN, 5, 5000, 1);
        f.poke(r, MAIN, 9, 5000, 1);
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> read(2, 10));
        assertTrue(e.getMessage().endsWith("block=5"), e.getMessage());
        assertEquals(1, e.getSuppressed().length);
        assertTrue(e.getSuppressed()[0].getMessage().endsWith("block=9"));
    }

    @Test
    void aBlockThatTheDiskRefusesIsNamedAndItsNeighboursStay() {
        f.disk.beforeRead =
                (path, offset) -> {
                    if (block(path, offset) == 18) {
                        throw new DiskException("planted", path, DiskException.EIO);
                    }
                };
        for (int i = 0; i < 300; i++) { // more often than there are buffers: a leak would show
            f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            DiskException e = assertThrows(DiskException.class, () -> read(12, 10));
            assertEquals(DiskException.EIO, e.errno());
            assertTrue(e.getMessage().contains("rel=1663/5/1 fork=main block=18"), e.getMessage());
            assertEquals(0, f.pool.pinnedBuffers());
        }
        for (int block = 12; block < 22; block++) {
            assertEquals(block != 18, isResident(block), "block " + block);
        }
        f.disk.beforeRead = (path, offset) -> {};
        assertEquals(10, read(12, 10));
        assertPages(12, 10);
        releaseAll(10);
    }

    @Test
    void theForksEndIsAnErrorThatNamesTheFirstMissingBlock() {
        DamagedDataException e = assertThrows(DamagedDataException.class, () -> read(55, 9));
        assertTrue(e.getMessage().contains("block=60"), e.getMessage());
        assertTrue(isResident(59));
        assertFalse(isResident(60));
    }

    @Test
    void inRecoveryBlocksPastTheEndAreZeros() {
        f.close();
        start(true);
        assertEquals(9, read(55, 9));
        assertPages(55, 5);
        for (int i = 5; i < 9; i++) {
            assertTrue(Page.isNew(f.page(buffers[i])));
        }
        releaseAll(9);
    }

    @Test
    @DisplayName(
            "R09: one call takes a share of the pool's pins, one at least, and keeps none on failure")
    void pinsAreLimited() {
        f.close();
        f = new PoolFixture(directory, false).pool(16, true, DropStrategy.FULL_SCAN);
        f.pool.maxBackends(4);
        r = f.create(3, MAIN, 40);
        int most = read(0, 40);
        assertEquals(4, most, "a quarter of 16 buffers");
        releaseAll(most);

        int[] pinned = new int[16];
        for (int i = 0; i < 15; i++) {
            pinned[i] = f.pool.read(r, MAIN, i, ReadMode.NORMAL);
        }
        assertEquals(1, read(20, 8), "one buffer is free");
        assertEquals(20, f.page(buffers[0]).getInt(4100));
        pinned[15] = buffers[0];
        assertThrows(NoFreeBufferException.class, () -> read(30, 8));
        assertEquals(1, read(14, 8), "a resident one can always be pinned again");
        releaseAll(1);
        for (int i = 0; i < 16; i++) {
            int buffer = pinned[i];
            assertEquals(1, f.refcount(buffer));
            f.pool.release(buffer);
        }
    }

    @Test
    @DisplayName("R09: a backend's pins count against its share; one more page is always granted")
    void aBackendsPinsAreItsOwn() {
        f.pool.maxBackends(32); // 8 buffers each
        try (BackendBuffers backend = f.pool.backend("reader")) {
            assertEquals(8, backend.readMany(r, MAIN, 0, 20, ReadMode.NORMAL, null, buffers));
            assertPages(0, 8);
            assertEquals(8, backend.pinnedBuffers());
            int[] more = new int[20];
            assertEquals(1, backend.readMany(r, MAIN, 20, 20, ReadMode.NORMAL, null, more));
            assertEquals(1, backend.extendBy(r, MAIN, 20, null, more, true));
            assertEquals(60, f.pool.block(more[0]));
            backend.unlock(more[0]);
            // Pages that it has pinned already: the pool counts the backend once.
            assertEquals(1, backend.readMany(r, MAIN, 3, 4, ReadMode.NORMAL, null, more));
            assertEquals(buffers[3], more[0]);
            assertEquals(2, backend.pins(buffers[3]));
            assertEquals(1, f.refcount(buffers[3]));
        }
        assertEquals(0, f.pool.pinnedBuffers());
    }

    @Test
    void aBlockThatAnotherReadsEndsTheRunWhichIsReadBeforeTheWait() throws Exception {
        CountDownLatch reading = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        f.disk.beforeRead =
                (path, offset) -> {
                    if (block(path, offset) == 6) {
                        reading.countDown();
                        ReadAndExtendTest.await(goOn);
                    }
                };
        Thread other = new Thread(() -> f.pool.release(f.pool.read(r, MAIN, 6, ReadMode.NORMAL)));
        other.start();
        ReadAndExtendTest.await(reading);
        AtomicInteger got = new AtomicInteger();
        Thread reader = new Thread(() -> got.set(readCheckAndRelease(2, 8)));
        reader.start();
        // While the other still reads block 6, ours are finished: this would hang otherwise.
        for (int block = 2; block < 6; block++) {
            while (!isResident(block)) {
                Thread.onSpinWait();
            }
            assertEquals(0, f.readVersion(r, MAIN, block));
        }
        assertFalse(isResident(7), "the run went on past a block that another reads");
        goOn.countDown();
        other.join();
        reader.join();
        assertEquals(8, got.get());
    }

    @Test
    void whenTheOtherReaderFailsWeReadTheBlockOurselves() throws Exception {
        CountDownLatch reading = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger times = new AtomicInteger();
        f.disk.beforeRead =
                (path, offset) -> {
                    if (block(path, offset) == 6 && times.incrementAndGet() == 1) {
                        reading.countDown();
                        ReadAndExtendTest.await(goOn);
                        throw new DiskException("planted", path, DiskException.EIO);
                    }
                };
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread other =
                new Thread(
                        () -> {
                            try {
                                f.pool.read(r, MAIN, 6, ReadMode.NORMAL);
                            } catch (DiskException e) {
                                failure.set(e);
                            }
                        });
        other.start();
        ReadAndExtendTest.await(reading);
        AtomicInteger got = new AtomicInteger();
        Thread reader = new Thread(() -> got.set(readCheckAndRelease(2, 8)));
        reader.start();
        while (!isResident(5)) {
            Thread.onSpinWait();
        }
        goOn.countDown();
        other.join();
        reader.join();
        assertNotNull(failure.get());
        assertEquals(8, got.get());
    }

    /** Overlapping runs from different ends, again and again over pages that keep being evicted. */
    @Test
    void overlappingReadersDoNotDeadlockAndSeeTheRightPages() throws Exception {
        f.close();
        f = new PoolFixture(directory, false).pool(64, true, DropStrategy.ADAPTIVE);
        f.pool.maxBackends(4);
        r = f.create(4, MAIN, 120);
        Thread[] threads = new Thread[4];
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int t = 0; t < threads.length; t++) {
            long seed = t + 1;
            threads[t] =
                    new Thread(
                            () -> {
                                try {
                                    readAtRandom(seed);
                                } catch (Throwable e) {
                                    failure.compareAndSet(null, e);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join(40_000);
            assertFalse(t.isAlive(), "deadlock, seeds 1 to 4");
        }
        if (failure.get() != null) {
            throw new AssertionError("seeds 1 to 4", failure.get());
        }
    }

    private void readAtRandom(long seed) {
        int[] mine = new int[16];
        long x = seed * 0x9E3779B97F4A7C15L;
        for (int round = 0; round < 3000; round++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            int first = (int) ((x >>> 33) % 108);
            int got = f.pool.readMany(r, MAIN, first, 12, ReadMode.NORMAL, null, mine);
            for (int i = 0; i < got; i++) {
                if (f.page(mine[i]).getInt(4100) != first + i) {
                    throw new AssertionError("wrong page for block " + (first + i));
                }
                f.pool.release(mine[i]);
            }
        }
    }

    @Test
    void hintsAreGivenForWhatIsNotInThePoolARunAtATime() {
        List<String> hints = new ArrayList<>();
        f.disk.beforePrefetch =
                (path, offset, length) -> hints.add(block(path, offset) + "+" + length / Page.SIZE);
        f.readVersion(r, MAIN, 5);
        f.readVersion(r, MAIN, 6);
        assertEquals(18, f.pool.prefetch(r, MAIN, 2, 20));
        // Blocks 16 on lie in the next segment.
        assertEquals(List.of("2+3", "7+9", "16+6"), hints);
        hints.clear();
        assertEquals(0, f.pool.prefetch(r, MAIN, 5, 2));
        assertEquals(1, f.pool.prefetch(r, MAIN, 4, 1));
        assertEquals(List.of("4+1"), hints);
        assertFalse(isResident(4), "a hint reads nothing");
        assertEquals(3, f.pool.prefetch(r, ForkNumber.FSM, 0, 3), "no such fork: no error");
    }
}
