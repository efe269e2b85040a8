package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/** Growing a relation by several pages, and the lock under which it grows. */
@Timeout(60)
class RelationExtensionTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;
    private static final int SEGMENT = 16;

    @TempDir Path directory;

    PoolFixture f;
    final int[] buffers = new int[64];

    @BeforeEach
    void open() {
        start(SizePolicy.RECOVERY_ONLY, 256);
    }

    private void start(SizePolicy policy, int nbuffers) {
        f =
                new PoolFixture(directory, false, policy, SEGMENT)
                        .pool(nbuffers, true, DropStrategy.FULL_SCAN);
        f.pool.maxBackends(4);
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

    private void releaseAll(int count) {
        for (int i = 0; i < count; i++) {
            f.pool.release(buffers[i]);
        }
    }

    /** Stores some bytes of the next write, then says that the disk is full. */
    private void fillDisk(int bytesThatFit) {
        f.disk.beforeWrite = PartialWrite.failing(bytesThatFit, DiskException.ENOSPC);
    }

    private void freeDisk() {
        f.disk.beforeWrite = (path, offset) -> {};
    }

    private void assertNothingOf(SmgrRelation r, int firstBlock) {
        for (PoolInspection.Descriptor d : PoolInspection.descriptors(f.pool)) {
            assertFalse(
                    d.relation().relNumber() == r.relNumber()
                            && Integer.compareUnsigned(d.block(), firstBlock) >= 0,
                    "left in the pool: " + d);
        }
        assertEquals(0, f.pool.pinnedBuffers());
    }

    @Test
    void severalPagesAreAddedByOneWriteInFileAndPool() {
        SmgrRelation r = f.create(1, MAIN, 3);
        AtomicInteger writes = new AtomicInteger();
        f.disk.beforeWrite = (path, offset) -> writes.incrementAndGet();
        assertEquals(10, f.pool.extendBy(r, MAIN, 10, null, buffers, false));
        assertEquals(1, writes.get());
        assertEquals(13, r.nblocks(MAIN));
        assertEquals(13L * Page.SIZE, f.file(r, MAIN).toFile().length());
        for (int i = 0; i < 10; i++) {
            assertEquals(3 + i, f.pool.block(buffers[i]));
            assertTrue(f.pool.io.isZeroPage(buffers[i]));
            assertTrue(f.pool.tryLockExclusive(buffers[i]), "came locked");
            f.pool.unlock(buffers[i]);
        }
        releaseAll(10);
        assertEquals(0, f.readVersion(r, MAIN, 2));
    }

    @Test
    void theFirstPageComesLockedIfWishedTheOthersDoNot() {
        SmgrRelation r = f.create(1, MAIN, 14);
        assertEquals(
                6, f.pool.extendBy(r, MAIN, 6, null, buffers, true)); // over a segment's border
        assertFalse(f.pool.tryLockExclusive(buffers[0]));
        assertTrue(f.pool.tryLockExclusive(buffers[1]));
        f.pool.unlock(buffers[0]);
        f.pool.unlock(buffers[1]);
        releaseAll(6);
        assertEquals(20, r.nblocks(MAIN));
        for (int i = 14; i < 20; i++) {
            f.pool.release(f.pool.read(r, MAIN, i, ReadMode.NORMAL));
        }
    }

    @Test
    @DisplayName(
            "R09: an extension takes a share of the pool's pins, one at least, none on failure")
    void pinsAreLimited() {
        f.close();
        start(SizePolicy.RECOVERY_ONLY, 16);
        SmgrRelation r = f.create(1, MAIN, 2);
        int most = f.pool.extendBy(r, MAIN, 40, null, buffers, false);
        assertEquals(4, most, "a quarter of 16 buffers");
        assertEquals(2 + most, r.nblocks(MAIN));
        releaseAll(most);

        int[] pinned = new int[16];
        SmgrRelation other = f.create(2, MAIN, 15);
        for (int i = 0; i < 15; i++) {
            pinned[i] = f.pool.read(other, MAIN, i, ReadMode.NORMAL);
        }
        assertEquals(1, f.pool.extendBy(r, MAIN, 8, null, buffers, false), "one buffer is free");
        assertEquals(3 + most, r.nblocks(MAIN));
        pinned[15] = buffers[0];
        assertThrows(
                NoFreeBufferException.class,
                () -> f.pool.extendBy(r, MAIN, 8, null, buffers, false));
        assertEquals(3 + most, r.nblocks(MAIN));
        for (int buffer : pinned) {
            f.pool.release(buffer);
        }
    }

    @Test
    void anExtensionThroughARingTakesHalfOfItsBuffersAndKeepsToThem() {
        SmgrRelation r = f.create(1, MAIN, 0);
        BufferAccessStrategy ring =
                BufferAccessStrategy.of(BufferAccessStrategy.Type.BULK_WRITE, 256);
        assertEquals(32, ring.ringSize());
        Set<Integer> used = new HashSet<>();
        for (int i = 0; i < 20; i++) {
            int got = f.pool.extendBy(r, MAIN, 40, ring, buffers, false);
            assertEquals(16, got);
            for (int b = 0; b < got; b++) {
                used.add(buffers[b]);
            }
            releaseAll(got);
        }
        assertEquals(320, r.nblocks(MAIN));
        assertEquals(32, used.size());
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C09: 1,000 times, the write of 1 or 8 new pages stores 3.5 KiB and finds the disk full: the size counts"
                    + " whole blocks, block 2 is an error, nothing is pinned or kept; the next one overwrites the piece")
    void extensionThatFailsHalfWay(SizePolicy policy) {
        f.close();
        start(policy, 128);
        SmgrRelation r = f.create(1, MAIN, 2);
        ForkNumber[] forks = {MAIN};
        int[] first = {2};
        for (int round = 0; round < 1000; round++) {
            int count = round % 2 == 0 ? 1 : 8;
            fillDisk(3584);
            DiskException e =
                    assertThrows(
                            DiskException.class,
                            () -> f.pool.extendBy(r, MAIN, count, null, buffers, round(count)));
            assertEquals(DiskException.ENOSPC, e.errno());
            assertTrue(e.mayRetry());
            assertEquals(2 * Page.SIZE + 3584, f.file(r, MAIN).toFile().length());
            assertEquals(2, r.nblocks(MAIN));
            assertNothingOf(r, 2);
            assertThrows(
                    DamagedDataException.class, () -> f.pool.read(r, MAIN, 2, ReadMode.NORMAL));
            assertNothingOf(r, 2);

            freeDisk();
            assertEquals(count, f.pool.extendBy(r, MAIN, count, null, buffers, true));
            f.stamp(buffers[0], 1, 2, round + 1);
            f.pool.markDirty(buffers[0]);
            f.pool.flushOne(buffers[0]);
            f.pool.unlock(buffers[0]);
            releaseAll(count);
            assertEquals(2 + count, r.nblocks(MAIN));
            f.pool.dropRelationForks(r, forks, first, 1);
            assertEquals(round + 1, f.readVersion(r, MAIN, 2));

            f.pool.dropRelationForks(r, forks, first, 1);
            r.truncate(MAIN, 2);
        }
        PoolInspection.check(f.pool);
    }

    private static boolean round(int count) {
        return count == 8;
    }

    @Test
    @DisplayName("C09: what was written whole before the disk was full counts, and is zeros")
    void wholeBlocksOfAFailedExtensionCount() {
        SmgrRelation r = f.create(1, MAIN, 2);
        fillDisk(3 * Page.SIZE + 512);
        assertThrows(DiskException.class, () -> f.pool.extendBy(r, MAIN, 8, null, buffers, false));
        assertEquals(5, r.nblocks(MAIN));
        assertNothingOf(r, 2);
        freeDisk();
        for (int block = 2; block < 5; block++) {
            int buffer = f.pool.read(r, MAIN, block, ReadMode.NORMAL);
            assertTrue(f.pool.io.isZeroPage(buffer));
            f.pool.release(buffer);
        }
        assertThrows(KernelException.class, () -> f.pool.read(r, MAIN, 5, ReadMode.NORMAL));
        assertEquals(4, f.pool.extendBy(r, MAIN, 4, null, buffers, false));
        assertEquals(5, f.pool.block(buffers[0]));
        releaseAll(4);
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName(
            "C10(1): a size that is too small makes an extension find a live page, in the pool or in the file; it is"
                    + " named, and nothing is overwritten")
    void aSizeThatIsTooSmallOverwritesNothing(SizePolicy policy) {
        f.close();
        start(policy, 256);
        SmgrRelation r = f.create(1, MAIN, 5);
        for (boolean resident : new boolean[] {true, false}) {
            if (!resident) {
                f.pool.dropRelations(new SmgrRelation[] {r}, 1);
            }
            // The system says that the file is shorter than it is.
            r.forgetSizes();
            f.disk.sizeOf = (path, size) -> path.endsWith("/1") ? 3L * Page.SIZE : size;
            for (int count : new int[] {1, 8}) {
                DamagedDataException e =
                        assertThrows(
                                DamagedDataException.class,
                                () -> f.pool.extendBy(r, MAIN, count, null, buffers, true));
                assertTrue(
                        e.getMessage().endsWith("rel=1663/5/1 fork=main block=3"), e.getMessage());
                assertTrue(e.getMessage().startsWith(resident ? "the pool" : "the file"));
                assertThrows(DamagedDataException.class, () -> f.pool.extend(r, MAIN, false));
                assertEquals(0, f.pool.pinnedBuffers());
            }
            f.disk.sizeOf = (path, size) -> size;
            assertEquals(5, r.nblocks(MAIN), "the wrong size is not kept");
            for (int block = 0; block < 5; block++) {
                assertEquals(0, f.versionOnDisk(r, MAIN, block));
                assertEquals(block, f.onDisk(r, MAIN, block)[4100]);
            }
        }
        buffers[0] = f.pool.extend(r, MAIN, false);
        assertEquals(5, f.pool.block(buffers[0]));
        releaseAll(1);
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName("C10(2): when no size is remembered the file is asked: unknown is never 0")
    void anUnknownSizeIsAsked(SizePolicy policy) {
        f.close();
        start(policy, 256);
        SmgrRelation r = f.create(1, MAIN, 5);
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        int size = 5;
        for (int way = 0; way < 4; way++) {
            if (way % 2 == 0) {
                r.forgetSizes();
            } else {
                f.smgr.close(r);
            }
            if (way < 2) {
                buffers[0] = f.pool.extend(r, MAIN, false);
                assertEquals(size, f.pool.block(buffers[0]));
                releaseAll(1);
                size++;
            } else {
                assertEquals(3, f.pool.extendBy(r, MAIN, 3, null, buffers, false));
                assertEquals(size, f.pool.block(buffers[0]));
                releaseAll(3);
                size += 3;
            }
            assertEquals(size, r.nblocks(MAIN));
        }
        for (int block = 0; block < 5; block++) {
            assertEquals(0, f.readVersion(r, MAIN, block));
        }
    }

    @Test
    @DisplayName(
            "C10(3): a valid zero page whose space was never allocated is kept, and the file really grows under it")
    void aZeroPagePastTheEndIsTakenOver() {
        SmgrRelation r = f.create(1, MAIN, 5);
        int stray = f.pool.read(r, MAIN, 5, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(stray);
        assertEquals(4, f.pool.extendBy(r, MAIN, 4, null, buffers, true)); // somebody has it pinned
        assertEquals(stray, buffers[0]);
        assertFalse(f.pool.tryLockExclusive(stray), "not locked");
        f.pool.unlock(stray);
        assertEquals(9L * Page.SIZE, f.file(r, MAIN).toFile().length());
        releaseAll(4);
        f.pool.release(stray);

        // One that lies behind the first new block ends the extension before it.
        int behind = f.pool.read(r, MAIN, 11, ReadMode.ZERO_AND_LOCK);
        f.pool.unlock(behind);
        f.pool.release(behind);
        assertEquals(2, f.pool.extendBy(r, MAIN, 4, null, buffers, false));
        releaseAll(2);
        assertEquals(4, f.pool.extendBy(r, MAIN, 4, null, buffers, false));
        assertEquals(behind, buffers[0]);
        releaseAll(4);
        assertEquals(15, r.nblocks(MAIN));
    }

    @Test
    @DisplayName("C10(3), C09: when the file cannot grow, such a page stays as it was")
    void aZeroPagePastTheEndSurvivesAFailure() {
        SmgrRelation r = f.create(1, MAIN, 5);
        int stray = f.pool.read(r, MAIN, 5, ReadMode.ZERO_AND_LOCK);
        f.pool.markDirty(stray);
        f.pool.unlock(stray);
        fillDisk(0);
        for (int i = 0; i < 300; i++) {
            assertThrows(
                    DiskException.class, () -> f.pool.extendBy(r, MAIN, 4, null, buffers, true));
        }
        freeDisk();
        assertTrue(f.pool.tryLockExclusive(stray), "the lock was kept");
        f.pool.unlock(stray);
        int state = f.pool.descriptors.state(stray);
        assertTrue(BufferState.has(state, BufferState.VALID | BufferState.DIRTY));
        assertEquals(1, f.refcount(stray));
        f.pool.release(stray);
        assertNothingOf(r, 6);
        assertEquals(4, f.pool.extendBy(r, MAIN, 4, null, buffers, false));
        assertEquals(stray, buffers[0]);
        releaseAll(4);
    }

    /** The content lock ranks before the extension lock: a holder may be about to extend. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoHasAZeroPagePastTheEndLockedMayGoOnAndExtend(boolean lockFirst) throws Exception {
        SmgrRelation r = f.create(1, MAIN, 5);
        int stray = f.pool.read(r, MAIN, 5, ReadMode.ZERO_AND_LOCK);
        AtomicInteger got = new AtomicInteger();
        Thread grower =
                new Thread(
                        () -> {
                            int added = f.pool.extendBy(r, MAIN, 2, null, buffers, lockFirst);
                            assertEquals(8, f.pool.block(buffers[0]));
                            assertEquals(lockFirst, f.pool.content.heldExclusivelyByMe(buffers[0]));
                            if (lockFirst) {
                                f.pool.unlock(buffers[0]);
                            }
                            releaseAll(added);
                            got.set(added);
                        });
        grower.start();
        while (r.nblocks(MAIN) != 7 || grower.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        f.pool.release(f.pool.extend(r, MAIN, false));
        f.stamp(stray, 1, 5, 9); // it is ours, not the other's, who gets the next block
        f.pool.markDirty(stray);
        f.pool.flushOne(stray);
        f.pool.unlock(stray);
        grower.join();
        assertEquals(2, got.get());
        f.pool.release(stray);
        assertEquals(9, f.readVersion(r, MAIN, 5));
        assertEquals(10, r.nblocks(MAIN));
    }

    @Test
    void theLockIsTheRelationsAndMayBeTakenAgainForAnotherFork() {
        SmgrRelation r = f.create(1, MAIN, 2);
        r.create(ForkNumber.FSM, false);
        try (ExtensionLock growing = f.pool.lockForExtension(r)) {
            assertEquals(0, growing.waiters());
            assertEquals(0, growing.extraPages());
            f.pool.release(f.pool.extend(r, MAIN, false));
            f.pool.release(f.pool.extend(r, ForkNumber.FSM, false));
            assertTrue(f.pool.extension.anyLockHeld());
        }
        assertFalse(f.pool.extension.anyLockHeld());
    }

    @Test
    void twoRelationsAtOnceAreRefusedWhetherTheirLocksCollideOrNot() {
        SmgrRelation r = f.create(1, MAIN, 2);
        boolean collided = false;
        boolean apart = false;
        for (int rel = 2; !collided || !apart; rel++) {
            SmgrRelation other = f.relation(rel);
            boolean same = f.pool.extension.lockOf(r) == f.pool.extension.lockOf(other);
            collided |= same;
            apart |= !same;
            try (ExtensionLock growing = f.pool.lockForExtension(r)) {
                assertThrows(AssertionError.class, () -> lockAndForget(other, same));
            }
        }
    }

    private void lockAndForget(SmgrRelation relation, boolean same) {
        try {
            f.pool.lockForExtension(relation);
        } catch (AssertionError e) {
            if (same) {
                f.pool.extension.lockOf(relation).close(); // it was taken before it was judged
            }
            throw e;
        }
    }

    @Test
    void whoHoldsTheLockSeesHowManyWait() throws Exception {
        SmgrRelation r = f.create(1, MAIN, 2);
        Thread[] threads = new Thread[3];
        AtomicInteger added = new AtomicInteger();
        try (ExtensionLock growing = f.pool.lockForExtension(r)) {
            for (int t = 0; t < threads.length; t++) {
                threads[t] =
                        new Thread(
                                () -> {
                                    f.pool.release(f.pool.extend(r, MAIN, false));
                                    added.incrementAndGet();
                                });
                threads[t].start();
                while (growing.waiters() != t + 1) {
                    Thread.onSpinWait();
                }
            }
            assertEquals(60, growing.extraPages());
            assertEquals(0, added.get());
        }
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(5, r.nblocks(MAIN));
        assertEquals(512, ExtensionLock.extraPages(26));
        assertEquals(500, ExtensionLock.extraPages(25));
    }

    @Test
    void concurrentBulkExtensionsGetDifferentBlocks() throws Exception {
        SmgrRelation r = f.create(1, MAIN, 0);
        Thread[] threads = new Thread[4];
        AtomicIntegerArray owners = new AtomicIntegerArray(4000);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int t = 0; t < threads.length; t++) {
            int id = t + 1;
            threads[t] =
                    new Thread(
                            () -> {
                                try {
                                    extendAtRandom(r, id, owners);
                                } catch (Throwable e) {
                                    failure.compareAndSet(null, e);
                                }
                            });
            threads[t].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("seeds 1 to 4", failure.get());
        }
        int size = r.nblocks(MAIN);
        for (int block = 0; block < size; block++) {
            assertEquals(owners.get(block), f.readVersion(r, MAIN, block), "block " + block);
        }
        assertEquals(0, owners.get(size));
    }

    private void extendAtRandom(SmgrRelation r, int id, AtomicIntegerArray owners) {
        int[] mine = new int[12];
        long x = id * 0x9E3779B97F4A7C15L;
        for (int round = 0; round < 60; round++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            int got = f.pool.extendBy(r, MAIN, 1 + (int) ((x >>> 33) % 12), null, mine, false);
            for (int i = 0; i < got; i++) {
                int block = f.pool.block(mine[i]);
                if (!owners.compareAndSet(block, 0, id)) {
                    throw new AssertionError("block given out twice " + block);
                }
                f.pool.lockExclusive(mine[i]);
                f.stamp(mine[i], 1, block, id);
                f.pool.markDirty(mine[i]);
                f.pool.unlock(mine[i]);
                f.pool.release(mine[i]);
            }
        }
    }

    @Test
    void aReaderPastTheEndDoesNotSpoilTheExtension() throws Exception {
        SmgrRelation r = f.create(1, MAIN, 5);
        CountDownLatch reading = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        f.disk.beforeRead =
                (path, offset) -> {
                    if (offset == 6L * Page.SIZE && reading.getCount() > 0) {
                        reading.countDown();
                        ReadAndExtendTest.await(goOn);
                    }
                };
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread reader =
                new Thread(
                        () -> {
                            try {
                                f.pool.release(f.pool.read(r, MAIN, 6, ReadMode.NORMAL));
                            } catch (KernelException e) {
                                failure.set(e);
                            }
                        });
        reader.start();
        ReadAndExtendTest.await(reading);
        assertEquals(
                1, f.pool.extendBy(r, MAIN, 4, null, buffers, false), "waits for nobody behind");
        releaseAll(1);
        goOn.countDown();
        reader.join();
        assertNotNull(failure.get());
        assertEquals(4, f.pool.extendBy(r, MAIN, 4, null, buffers, false));
        assertEquals(6, f.pool.block(buffers[0]));
        releaseAll(4);
    }
}
