package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(30)
class ReadAndExtendTest {
    @TempDir Path directory;

    LookupStyle lookupStyle() {
        return LookupStyle.OPTIMISTIC;
    }

    PoolFixture f;

    PoolFixture fixture() {
        return new PoolFixture(directory, false);
    }

    @BeforeEach
    void open() {
        f = fixture().lookupStyle(lookupStyle()).pool(16, true, DropStrategy.FULL_SCAN);
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

    @Test
    void aPageReadTwiceIsReadFromDiskOnceAndSharesItsBuffer() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        AtomicInteger reads = new AtomicInteger();
        f.disk.beforeRead = (path, offset) -> reads.incrementAndGet();
        int a = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
        int b = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL);
        assertEquals(a, b);
        assertEquals(1, reads.get());
        assertEquals(3, f.pool.block(a));
        assertEquals(f.pool.pageAddress(a), f.page(a).addressOffset());
        f.pool.pinAgain(a);
        assertEquals(3, f.refcount(a));
        f.pool.release(a);
        f.pool.release(a);
        f.pool.release(a);
    }

    @Test
    void everyPageComesBackAfterEviction() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 100);
        for (int i = 0; i < 100; i++) {
            f.change(r, ForkNumber.MAIN, i, i + 1000);
        }
        for (int i = 0; i < 100; i++) {
            assertEquals(i + 1000, f.readVersion(r, ForkNumber.MAIN, i));
        }
    }

    @Test
    void extendAddsAZeroPageInFileAndPool() {
        SmgrRelation r = f.relation(1);
        r.create(ForkNumber.MAIN, false);
        int buffer = f.pool.extend(r, ForkNumber.MAIN, false);
        assertEquals(0, f.pool.block(buffer));
        assertTrue(Page.isNew(f.page(buffer)));
        assertTrue(f.pool.tryLockExclusive(buffer), "extend without lock left one");
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        assertEquals(1, r.nblocks(ForkNumber.MAIN));
        int second = f.pool.extend(r, ForkNumber.MAIN, true);
        assertEquals(1, f.pool.block(second));
        assertFalse(f.pool.tryLockExclusive(second), "extend with lock did not lock");
        f.pool.unlock(second);
        f.pool.release(second);
    }

    @Test
    @DisplayName(
            "C31(1): an all-zero page is read as valid; a zero page with a stray byte is damaged; so is a changed page")
    void checksumsJudgePagesOnRead() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        int zero = f.pool.extend(r, ForkNumber.MAIN, false);
        f.pool.release(zero);
        evict(r, 40);
        int buffer = f.pool.read(r, ForkNumber.MAIN, 40, ReadMode.NORMAL);
        assertTrue(Page.isNew(f.page(buffer)));
        f.pool.release(buffer);
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 2));

        evict(r, 40);
        f.poke(r, ForkNumber.MAIN, 40, 5000, 1);
        assertDamaged(r, 40);
        evict(r, 2);
        f.poke(r, ForkNumber.MAIN, 2, 5000, 1);
        assertDamaged(r, 2);
    }

    @Test
    @DisplayName(
            "C31(3): a zero page is written as zeros, without checksum; another page carries the checksum of what was written")
    void zeroPagesGetNoChecksum() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 2);
        int zero = f.pool.extend(r, ForkNumber.MAIN, true);
        f.pool.markDirty(zero);
        f.pool.flushOne(zero);
        f.pool.unlock(zero);
        f.pool.release(zero);
        for (byte b : f.onDisk(r, ForkNumber.MAIN, 2)) {
            assertEquals(0, b);
        }
        UnsafeBuffer page = new UnsafeBuffer(f.onDisk(r, ForkNumber.MAIN, 1));
        assertEquals(Page.checksum(page), PageChecksum.compute(page, 1));
        int pooled = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        assertEquals(0, Page.checksum(f.page(pooled)), "the checksum belongs to the private copy");
        f.pool.release(pooled);
    }

    @Test
    void aDamagedPageNamesItsPlaceAndLeavesNothing() {
        SmgrRelation r = f.create(77, ForkNumber.FSM, 40);
        evict(r, ForkNumber.FSM, 5);
        f.poke(r, ForkNumber.FSM, 5, 100, 0xAB, 0xCD);
        for (int i = 0; i < 100; i++) { // more often than the pool has buffers: a leak would show
            DamagedDataException e =
                    assertThrows(
                            DamagedDataException.class,
                            () -> f.pool.read(r, ForkNumber.FSM, 5, ReadMode.NORMAL));
            assertTrue(e.getMessage().endsWith("rel=1663/5/77 fork=fsm block=5"), e.getMessage());
        }
        assertNotInPool(77, 5);
        int buffer = f.pool.read(r, ForkNumber.FSM, 5, ReadMode.ZERO_ON_ERROR);
        assertTrue(Page.isNew(f.page(buffer)));
        assertEquals(0, f.page(buffer).getLong(100));
        f.pool.release(buffer);
    }

    @Test
    void withoutChecksumsOnlyTheHeaderIsChecked() {
        f.close();
        f =
                new PoolFixture(directory, false)
                        .lookupStyle(lookupStyle())
                        .pool(16, false, DropStrategy.FULL_SCAN);
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        evict(r, 5);
        f.poke(r, ForkNumber.MAIN, 5, 5000, 1);
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 5));
        evict(r, 5);
        f.poke(r, ForkNumber.MAIN, 5, Page.PD_FLAGS, 0xFF, 0xFF);
        assertDamaged(r, 5);
    }

    @Test
    @DisplayName(
            "C09 (pool half): a read that fails leaves no pin and no page; the next one succeeds")
    void aFailedReadLeavesNothing() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        evict(r, 5);
        f.disk.beforeRead =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.EIO);
                };
        for (int i = 0; i < 100; i++) {
            assertThrows(
                    DiskException.class, () -> f.pool.read(r, ForkNumber.MAIN, 5, ReadMode.NORMAL));
        }
        assertNotInPool(1, 5);
        assertEquals(0, f.pool.pinnedBuffers());
        f.disk.beforeRead = (path, offset) -> {};
        assertEquals(0, f.readVersion(r, ForkNumber.MAIN, 5));
    }

    @Test
    void aBlockPastTheEndIsAnErrorAndLeavesNothing() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        assertThrows(
                KernelException.class, () -> f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.NORMAL));
        assertNotInPool(1, 3);
    }

    @Test
    @DisplayName(
            "C09 (pool half): an extension that fails leaves size, pins and pool as they were; the next one takes the same block")
    void aFailedExtensionLeavesNothing() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 2);
        f.disk.beforeWrite =
                (path, offset) -> {
                    throw new DiskException("planted file=" + path, DiskException.ENOSPC);
                };
        for (int i = 0; i < 1000; i++) {
            DiskException e =
                    assertThrows(
                            DiskException.class, () -> f.pool.extend(r, ForkNumber.MAIN, true));
            assertTrue(e.mayRetry());
        }
        assertEquals(2, r.nblocks(ForkNumber.MAIN));
        assertNotInPool(1, 2);
        assertEquals(0, f.pool.pinnedBuffers());
        f.disk.beforeWrite = (path, offset) -> {};
        int buffer = f.pool.extend(r, ForkNumber.MAIN, false);
        assertEquals(2, f.pool.block(buffer));
        f.pool.release(buffer);
    }

    @Test
    @DisplayName(
            "C10(3): a valid zero page past the end is taken over, and the file really grows; a formatted one is not overwritten")
    void extensionMeetsAPageThatIsInThePoolAlready() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 2);
        int stray = f.pool.read(r, ForkNumber.MAIN, 2, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(stray);
        f.pool.release(stray);
        int buffer = f.pool.extend(r, ForkNumber.MAIN, false);
        assertEquals(stray, buffer);
        assertEquals(3, r.nblocks(ForkNumber.MAIN));
        assertEquals(3 * Page.SIZE, f.file(r, ForkNumber.MAIN).toFile().length());
        f.pool.release(buffer);

        int formatted = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_LOCK);
        f.stamp(formatted, 1, 3, 9);
        f.pool.unlock(formatted);
        f.pool.release(formatted);
        DamagedDataException e =
                assertThrows(
                        DamagedDataException.class, () -> f.pool.extend(r, ForkNumber.MAIN, true));
        assertTrue(e.getMessage().endsWith("rel=1663/5/1 fork=main block=3"), e.getMessage());
        assertEquals(3, r.nblocks(ForkNumber.MAIN));
        assertEquals(9, f.readVersion(r, ForkNumber.MAIN, 3));
    }

    @Test
    @DisplayName(
            "C27: a page that is in the pool is locked, not zeroed; a fresh one is zero and locked before anyone sees it")
    void zeroAndLockKeepsAValidPage() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        f.change(r, ForkNumber.MAIN, 7, 55);
        for (ReadMode mode :
                new ReadMode[] {ReadMode.ZERO_AND_LOCK, ReadMode.ZERO_AND_CLEANUP_LOCK}) {
            int buffer = f.pool.read(r, ForkNumber.MAIN, 7, mode);
            assertEquals(55, f.version(buffer));
            assertFalse(f.pool.tryLockExclusive(buffer));
            f.pool.unlock(buffer);
            f.pool.release(buffer);
        }
        evict(r, 7);
        AtomicInteger reads = new AtomicInteger();
        f.disk.beforeRead = (path, offset) -> reads.incrementAndGet();
        int fresh = f.pool.read(r, ForkNumber.MAIN, 7, ReadMode.ZERO_AND_LOCK);
        assertEquals(0, reads.get(), "the page is to be overwritten: not read");
        assertTrue(Page.isNew(f.page(fresh)));
        assertFalse(f.pool.tryLockExclusive(fresh));
        f.pool.unlock(fresh);
        f.pool.release(fresh);
    }

    @Test
    @DisplayName(
            "C27: readers of a page that is restored from an image see the old or the new page, never zeros")
    void readersNeverSeeTheZerosOfARestore() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        SmgrRelation other = f.create(2, ForkNumber.MAIN, 100);
        AtomicInteger zeros = new AtomicInteger();
        int fresh = 0;
        CountDownLatch stop = new CountDownLatch(1);
        Thread[] readers = new Thread[2];
        for (int t = 0; t < readers.length; t++) {
            readers[t] =
                    new Thread(
                            () -> {
                                while (stop.getCount() > 0) {
                                    int b = f.pool.read(r, ForkNumber.MAIN, 7, ReadMode.NORMAL);
                                    f.pool.lockShared(b);
                                    if (f.page(b).getInt(4096) != 1) {
                                        zeros.incrementAndGet();
                                    }
                                    f.pool.unlock(b);
                                    f.pool.release(b);
                                    LockSupport.parkNanos(
                                            200_000); // let the page be evicted now and then
                                }
                            });
            readers[t].start();
        }
        for (int round = 0; round < 300; round++) {
            int b = f.pool.read(r, ForkNumber.MAIN, 7, ReadMode.ZERO_AND_LOCK);
            if (Page.isNew(f.page(b))) {
                fresh++;
            }
            f.stamp(b, 1, 7, round);
            f.pool.markDirty(b);
            f.pool.unlock(b);
            f.pool.release(b);
            for (int i = 0; i < 100; i++) {
                f.pool.release(f.pool.read(other, ForkNumber.MAIN, i, ReadMode.NORMAL));
            }
        }
        stop.countDown();
        for (Thread t : readers) {
            t.join();
        }
        assertEquals(0, zeros.get());
        assertTrue(fresh > 0, "the page was never evicted: nothing was tested");
    }

    @Test
    @DisplayName("C27: a fresh zero page is locked first and becomes valid then")
    void aFreshPageBecomesValidUnderItsLock() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 3);
        r.zeroExtend(ForkNumber.MAIN, 3, 1, true);
        int next = f.pool.replacement.highWater(); // where the page will go: hold it up there
        f.pool.lockExclusive(next);
        Thread restorer =
                new Thread(
                        () -> {
                            int b = f.pool.read(r, ForkNumber.MAIN, 3, ReadMode.ZERO_AND_LOCK);
                            f.stamp(b, 1, 3, 9);
                            f.pool.unlock(b);
                            f.pool.release(b);
                        });
        restorer.start();
        while (restorer.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        int state = f.pool.descriptors.state(next);
        assertEquals(BufferState.TAG_VALID, state & (BufferState.TAG_VALID | BufferState.VALID));
        AtomicInteger seen = new AtomicInteger(-1);
        Thread reader = new Thread(() -> seen.set(f.readVersion(r, ForkNumber.MAIN, 3)));
        reader.start();
        f.pool.unlock(next);
        restorer.join();
        reader.join();
        assertEquals(9, seen.get());
    }

    @Test
    void twoReadersOfOneBlockReadItOnceAndTheSecondWaits() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        evict(r, 5);
        CountDownLatch reading = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger reads = new AtomicInteger();
        f.disk.beforeRead =
                (path, offset) -> {
                    reads.incrementAndGet();
                    reading.countDown();
                    await(goOn);
                };
        int[] buffers = new int[2];
        Thread first =
                new Thread(() -> buffers[0] = f.pool.read(r, ForkNumber.MAIN, 5, ReadMode.NORMAL));
        first.start();
        await(reading);
        Thread second =
                new Thread(() -> buffers[1] = f.pool.read(r, ForkNumber.MAIN, 5, ReadMode.NORMAL));
        second.start();
        second.join(100);
        assertTrue(second.isAlive(), "the second reader did not wait");
        goOn.countDown();
        first.join();
        second.join();
        assertEquals(buffers[0], buffers[1]);
        assertEquals(1, reads.get());
        f.pool.release(buffers[0]);
        f.pool.release(buffers[1]);
    }

    @Test
    void whenTheReaderFailsAWaiterTriesItself() throws Exception {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        evict(r, 5);
        CountDownLatch reading = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicInteger reads = new AtomicInteger();
        f.disk.beforeRead =
                (path, offset) -> {
                    if (reads.incrementAndGet() == 1) {
                        reading.countDown();
                        await(goOn);
                        throw new DiskException("planted file=" + path, DiskException.EIO);
                    }
                };
        AtomicInteger failed = new AtomicInteger();
        Thread first =
                new Thread(
                        () -> {
                            try {
                                f.pool.read(r, ForkNumber.MAIN, 5, ReadMode.NORMAL);
                            } catch (DiskException e) {
                                failed.incrementAndGet();
                            }
                        });
        first.start();
        await(reading);
        AtomicInteger version = new AtomicInteger(-1);
        Thread second = new Thread(() -> version.set(f.readVersion(r, ForkNumber.MAIN, 5)));
        second.start();
        second.join(50);
        goOn.countDown();
        first.join();
        second.join();
        assertEquals(1, failed.get());
        assertEquals(0, version.get());
        assertEquals(2, reads.get());
    }

    @Test
    void concurrentExtensionsGetDifferentBlocks() throws Exception {
        SmgrRelation r = f.relation(1);
        r.create(ForkNumber.MAIN, false);
        Thread[] threads = new Thread[4];
        AtomicInteger failures = new AtomicInteger();
        for (int t = 0; t < threads.length; t++) {
            int id = t;
            threads[t] =
                    new Thread(
                            () -> {
                                for (int i = 0; i < 50; i++) {
                                    int b = f.pool.extend(r, ForkNumber.MAIN, true);
                                    if (!Page.isNew(f.page(b))) {
                                        failures.incrementAndGet();
                                    }
                                    f.stamp(b, 1, f.pool.block(b), id + 1);
                                    f.pool.markDirty(b);
                                    f.pool.unlock(b);
                                    f.pool.release(b);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(0, failures.get());
        assertEquals(200, r.nblocks(ForkNumber.MAIN));
        int[] byThread = new int[5];
        for (int i = 0; i < 200; i++) {
            byThread[f.readVersion(r, ForkNumber.MAIN, i)]++;
        }
        for (int t = 1; t <= 4; t++) {
            assertEquals(50, byThread[t]);
        }
    }

    @Test
    void interruptsDisturbNothing() {
        SmgrRelation r = f.create(1, ForkNumber.MAIN, 40);
        Thread.currentThread().interrupt();
        for (int i = 0; i < 40; i++) {
            f.change(r, ForkNumber.MAIN, i, 5);
        }
        f.pool.flushAll();
        assertTrue(Thread.interrupted());
    }

    private void assertDamaged(SmgrRelation r, int block) {
        DamagedDataException e =
                assertThrows(
                        DamagedDataException.class,
                        () -> f.pool.read(r, ForkNumber.MAIN, block, ReadMode.NORMAL));
        assertTrue(e.getMessage().endsWith("block=" + block), e.getMessage());
    }

    private void assertNotInPool(int rel, int block) {
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            assertFalse(
                    d.relation().relNumber() == rel && d.block() == block,
                    "left in the pool: " + d);
        }
    }

    private void evict(SmgrRelation r, int block) {
        evict(r, ForkNumber.MAIN, block);
    }

    /** Makes sure that a page is not in the pool, by other pages of a helper relation. */
    private void evict(SmgrRelation r, ForkNumber fork, int block) {
        SmgrRelation other = f.relation(999);
        if (!other.exists(ForkNumber.MAIN)) {
            f.create(999, ForkNumber.MAIN, 100);
        }
        int i = 0;
        while (f.pool.allocator.probe(
                        PoolFixture.SPC, PoolFixture.DB, r.relNumber(), fork.ordinal(), block)
                >= 0) {
            f.pool.release(f.pool.read(other, ForkNumber.MAIN, i++ % 100, ReadMode.NORMAL));
            assertTrue(i < 100_000, "cannot be evicted");
        }
    }

    static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(20, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
