package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;
import org.pgkernel.smgr.SmgrRelation;

/** BUF-13: every lock of the pool checks its rank, so an inversion is caught where it is made. */
@Timeout(30)
class LockOrderTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;
    int buffer;

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(16, true, DropStrategy.ADAPTIVE);
        r = f.create(1, ForkNumber.MAIN, 40);
        buffer = f.pool.read(r, ForkNumber.MAIN, 0, ReadMode.NORMAL);
    }

    @AfterEach
    void close() {
        f.pool.release(buffer);
        for (LockRank rank : LockRank.values()) {
            assertFalse(rank.isHeld(), "left: " + rank);
        }
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    void contentLockUnderTheExtensionLockIsCaught() {
        AtomicReference<AssertionError> caught = inTheNextWrite(() -> f.pool.lockExclusive(buffer));
        f.pool.release(f.pool.extend(r, ForkNumber.MAIN, false));
        assertCaught(caught.get(), "CONTENT taken while holding RELATION_EXTENSION");
    }

    @Test
    void contentLockUnderAWriteIsCaught() {
        f.change(r, ForkNumber.MAIN, 3, 1);
        AtomicReference<AssertionError> caught = inTheNextWrite(() -> f.pool.lockShared(buffer));
        f.pool.flushAll();
        // The writer holds the page's own content lock, which comes before; the write is in the
        // way.
        assertCaught(caught.get(), "CONTENT taken while holding WRITE_IN_PROGRESS");
    }

    @Test
    void waitForAReadUnderAWriteIsCaught() {
        f.change(r, ForkNumber.MAIN, 3, 1);
        AtomicReference<AssertionError> caught =
                inTheNextWrite(() -> f.pool.io.start(buffer, true));
        f.pool.flushAll();
        assertCaught(caught.get(), "READ_IN_PROGRESS taken while holding WRITE_IN_PROGRESS");
    }

    @Test
    void partitionLockUnderAHeaderLockIsCaught() {
        int state = f.pool.descriptors.lockHeader(buffer);
        assertCaught(
                assertThrows(AssertionError.class, () -> f.pool.table.lockShared(3)),
                "MAPPING_PARTITION taken while holding HEADER");
        assertCaught(
                assertThrows(AssertionError.class, () -> f.pool.tryLockExclusive(buffer)),
                "CONTENT tried while holding HEADER");
        f.pool.descriptors.unlockHeader(buffer, state);
    }

    @Test
    void partitionLockUnderAForksStripeIsCaught() {
        ForkTable forks = ((ResidentForks) f.pool.tracker).forks();
        forks.lock(5);
        assertCaught(
                assertThrows(AssertionError.class, () -> f.pool.table.lockExclusive(3)),
                "MAPPING_PARTITION taken while holding FORK_STRIPE");
        forks.unlock(5);
    }

    @Test
    void secondHeaderLockIsCaught() {
        int state = f.pool.descriptors.lockHeader(buffer);
        assertCaught(
                assertThrows(AssertionError.class, () -> f.pool.descriptors.lockHeader(buffer ^ 1)),
                "HEADER taken while holding HEADER");
        f.pool.descriptors.unlockHeader(buffer, state);
    }

    @Test
    void contentLocksOfSeveralPagesMayBeHeld() {
        int other = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockExclusive(buffer);
        f.pool.lockExclusive(other);
        f.pool.unlock(buffer);
        f.pool.unlock(other);
        f.pool.release(other);
    }

    private AtomicReference<AssertionError> inTheNextWrite(Runnable action) {
        AtomicReference<AssertionError> caught = new AtomicReference<>();
        f.disk.beforeWrite =
                (path, offset) -> {
                    f.disk.beforeWrite = (p, o) -> {};
                    caught.set(assertThrows(AssertionError.class, action::run));
                };
        return caught;
    }

    private static void assertCaught(AssertionError error, String what) {
        assertNotNull(error, "nothing was caught");
        assertTrue(error.getMessage().contains(what), error.getMessage());
    }
}
