package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.smgr.SmgrRelation;

/** What each read mode does with a page that is here, on disk, damaged, refused, or missing. */
@Timeout(60)
class ReadModeTest {
    private static final ForkNumber MAIN = ForkNumber.MAIN;

    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    final AtomicInteger reads = new AtomicInteger();

    @BeforeEach
    void open() {
        start(false);
    }

    /** Ten pages, none of them in the pool. */
    private void start(boolean inRecovery) {
        f =
                new PoolFixture(directory.resolve("recovery=" + inRecovery), inRecovery)
                        .pool(64, true, DropStrategy.FULL_SCAN);
        r = f.create(1, MAIN, 10);
        f.pool.dropRelations(new SmgrRelation[] {r}, 1);
        f.disk.beforeRead = (path, offset) -> reads.incrementAndGet();
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

    private static boolean locks(ReadMode mode) {
        return mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
    }

    /** Checks that the page came locked or not, as the mode says, and lets go of it. */
    private void release(int buffer, ReadMode mode) {
        assertEquals(locks(mode), f.pool.content.heldExclusivelyByMe(buffer));
        if (locks(mode)) {
            f.pool.unlock(buffer);
        }
        f.pool.release(buffer);
    }

    private void assertZeros(int buffer) {
        assertTrue(f.pool.io.isZeroPage(buffer));
        assertFalse(
                BufferState.has((int) f.pool.descriptors.state(buffer), BufferState.DIRTY),
                "nobody has changed it");
    }

    @ParameterizedTest
    @EnumSource(ReadMode.class)
    void aPageThatIsHereIsGivenAsItIs(ReadMode mode) {
        f.change(r, MAIN, 3, 55);
        reads.set(0);
        int buffer = f.pool.read(r, MAIN, 3, mode);
        assertEquals(55, f.version(buffer));
        assertEquals(0, reads.get());
        release(buffer, mode);
    }

    @ParameterizedTest
    @EnumSource(ReadMode.class)
    void aPageOnDiskIsReadUnlessItIsToBeOverwritten(ReadMode mode) {
        int buffer = f.pool.read(r, MAIN, 3, mode);
        if (locks(mode)) {
            assertZeros(buffer);
            assertEquals(0, reads.get());
        } else {
            assertEquals(3, f.page(buffer).getInt(4100));
            assertEquals(1, reads.get());
        }
        release(buffer, mode);
    }

    @ParameterizedTest
    @EnumSource(ReadMode.class)
    void aDamagedPageIsAnErrorOrZeros(ReadMode mode) {
        f.poke(r, MAIN, 3, 5000, 1);
        if (mode == ReadMode.NORMAL || mode == ReadMode.NORMAL_NO_LOG) {
            DamagedDataException e =
                    assertThrows(DamagedDataException.class, () -> f.pool.read(r, MAIN, 3, mode));
            assertTrue(e.getMessage().endsWith("rel=1663/5/1 fork=main block=3"), e.getMessage());
        } else {
            int buffer = f.pool.read(r, MAIN, 3, mode);
            assertZeros(buffer);
            release(buffer, mode);
        }
    }

    @ParameterizedTest
    @EnumSource(ReadMode.class)
    void whatTheDiskRefusesIsAnErrorInEveryModeThatReads(ReadMode mode) {
        f.disk.beforeRead =
                (path, offset) -> {
                    throw new DiskException("planted", path, DiskException.EIO);
                };
        if (locks(mode)) {
            int buffer = f.pool.read(r, MAIN, 3, mode);
            assertZeros(buffer);
            release(buffer, mode);
        } else {
            assertThrows(DiskException.class, () -> f.pool.read(r, MAIN, 3, mode));
        }
    }

    @ParameterizedTest
    @EnumSource(ReadMode.class)
    void aBlockPastTheEndIsAnErrorOutsideRecoveryAndZerosInIt(ReadMode mode) {
        if (!locks(mode)) {
            KernelException e =
                    assertThrows(KernelException.class, () -> f.pool.read(r, MAIN, 12, mode));
            assertTrue(e.getMessage().contains("block=12"), e.getMessage());
        }
        f.close();
        start(true);
        int buffer = f.pool.read(r, MAIN, 12, mode);
        assertZeros(buffer);
        release(buffer, mode);
        assertEquals(10, r.nblocks(MAIN), "a read does not extend the fork");
    }

    @ParameterizedTest
    @EnumSource(
            value = ReadMode.class,
            names = {"ZERO_AND_LOCK", "ZERO_AND_CLEANUP_LOCK"})
    @DisplayName(
            "C27: a page that is in the pool and pinned by a reader is locked for the restore; the reader sees the"
                    + " old page, then the new one")
    void aPinnedPageIsRestoredUnderItsReader(ReadMode mode) throws Exception {
        f.change(r, MAIN, 3, 1);
        int mine = f.pool.read(r, MAIN, 3, ReadMode.NORMAL);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CountDownLatch restored = new CountDownLatch(1);
        Thread restorer =
                new Thread(
                        () -> {
                            try {
                                int buffer = f.pool.read(r, MAIN, 3, mode);
                                assertEquals(1, f.version(buffer), "zeroed");
                                f.page(buffer).putInt(4104, 2);
                                f.pool.markDirty(buffer);
                                release(buffer, mode);
                            } catch (Throwable e) {
                                failure.set(e);
                            }
                            restored.countDown();
                        });
        restorer.start();
        if (mode == ReadMode.ZERO_AND_CLEANUP_LOCK) {
            // It waits until our pin is gone, and does not keep the lock meanwhile.
            while (restorer.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
            f.pool.lockShared(mine);
            assertEquals(1, f.version(mine));
            f.pool.unlock(mine);
            f.pool.release(mine);
            ReadAndExtendTest.await(restored);
        } else {
            ReadAndExtendTest.await(restored);
            f.pool.lockShared(mine);
            assertEquals(2, f.version(mine));
            f.pool.unlock(mine);
            f.pool.release(mine);
        }
        restorer.join();
        if (failure.get() != null) {
            throw new AssertionError(failure.get());
        }
        assertEquals(2, f.readVersion(r, MAIN, 3));
    }

    @ParameterizedTest
    @EnumSource(
            value = ReadMode.class,
            names = {"ZERO_AND_LOCK", "ZERO_AND_CLEANUP_LOCK"})
    @DisplayName(
            "C27: a page that is not in the pool, restored while a reader waits for it from the moment its buffer is"
                    + " claimed: the reader sees the new page")
    void aReaderWaitsFromTheClaimToTheNewPage(ReadMode mode) throws Exception {
        int claimed = f.pool.read(r, MAIN, 3, mode);
        assertZeros(claimed);
        AtomicInteger seen = new AtomicInteger(-1);
        Thread reader = new Thread(() -> seen.set(f.readVersion(r, MAIN, 3)));
        reader.start();
        // It gets as far as the lock, which the restorer has had from before the page was valid.
        while (reader.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        f.stamp(claimed, 1, 3, 9);
        f.pool.markDirty(claimed);
        f.pool.unlock(claimed);
        f.pool.release(claimed);
        reader.join();
        assertEquals(9, seen.get());
        assertEquals(0, reads.get(), "the old page was read");
    }
}
