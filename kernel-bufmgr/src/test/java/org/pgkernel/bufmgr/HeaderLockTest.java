package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;
import org.pgkernel.smgr.SmgrRelation;

/** Under a header lock nothing is allocated, nothing else is taken, nobody is woken. */
@Timeout(60)
class HeaderLockTest {
    private static final int DIRTY_PAGES = 5;

    @TempDir Path directory;
    PoolFixture f;

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, true).pool(64, true, DropStrategy.ADAPTIVE);
    }

    @AfterEach
    void close() {
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        f.close();
    }

    /** Has no memory for one buffer more than the first {@code room}. */
    private static final class NarrowOrder extends WriteOrder {
        private int room;

        NarrowOrder(int room) {
            this.room = room;
        }

        @Override
        void add(int buffer, int spc, int rel, int fork, int block) {
            if (room-- == 0) {
                throw new OutOfMemoryError("planted");
            }
            super.add(buffer, spc, rel, fork, block);
        }
    }

    private SmgrRelation dirtyRelation() {
        SmgrRelation relation = f.create(1, ForkNumber.MAIN, DIRTY_PAGES);
        for (int block = 0; block < DIRTY_PAGES; block++) {
            f.change(relation, ForkNumber.MAIN, block, 7);
        }
        return relation;
    }

    private void assertNoHeaderIsLocked() {
        for (int buffer = 0; buffer < f.pool.nbuffers(); buffer++) {
            assertEquals(
                    0,
                    f.pool.descriptors.state(buffer) & BufferState.LOCKED,
                    "header locked for ever, buffer " + buffer);
        }
    }

    private void assertAllReachTheFile(SmgrRelation relation) {
        for (int block = 0; block < DIRTY_PAGES; block++) {
            assertEquals(7, f.versionOnDisk(relation, ForkNumber.MAIN, block));
        }
    }

    @Test
    void aCheckpointWithoutMemoryLeavesNoHeaderLockedAndTheNextOneFindsAll() {
        SmgrRelation relation = dirtyRelation();
        WriteOut out =
                new WriteOut(
                        f.pool.descriptors,
                        f.pool.dirty,
                        f.pool.replacement,
                        f.pool.allocator,
                        f.pool.io,
                        f.pool.content,
                        f.smgr);
        assertThrows(OutOfMemoryError.class, () -> out.markDirtyBuffers(new NarrowOrder(2)));
        assertNoHeaderIsLocked();
        assertEquals(DIRTY_PAGES, f.pool.flushAll());
        assertAllReachTheFile(relation);
    }

    @Test
    void aFlushWithoutMemoryLeavesNoHeaderLockedAndTheNextOneFindsAll() {
        SmgrRelation relation = dirtyRelation();
        RelationFlusher flusher =
                new DropParts()
                        .flusher(
                                f.pool,
                                new WriteOut(
                                        f.pool.descriptors,
                                        f.pool.dirty,
                                        f.pool.replacement,
                                        f.pool.allocator,
                                        f.pool.io,
                                        f.pool.content,
                                        f.smgr),
                                new DropCosts(64));
        FlushWork work = FlushWork.of(new SmgrRelation[] {relation}, 1);
        WriteOrder mine = work.order;
        work.order = new NarrowOrder(0);
        try {
            assertThrows(
                    OutOfMemoryError.class,
                    () -> {
                        for (int buffer = 0; buffer < DIRTY_PAGES; buffer++) {
                            flusher.addIfDirtyVictim(buffer, work);
                        }
                    });
        } finally {
            work.order = mine;
        }
        assertNoHeaderIsLocked();
        f.pool.flushRelation(relation);
        assertAllReachTheFile(relation);
    }

    /** A drop that failed under the header lock: so that the test fails, too, and does not hang. */
    private void unlockWhatItLeft(int buffer) {
        int state = f.pool.descriptors.state(buffer);
        if ((state & BufferState.LOCKED) != 0) {
            assertTrue(LockRank.HEADER.enter());
            f.pool.descriptors.unlockHeader(buffer, state);
        }
    }

    /**
     * The page is being written when the drop comes to it, so the drop gives its locks up to wait.
     * Who is woken by that is looked at with a lock of its own, which the header must not wait for:
     * WaitTable asserts it.
     */
    @ParameterizedTest
    @EnumSource(
            value = DropPath.class,
            names = {"LOOKUP", "FINGERPRINT_SCAN"})
    void aDropThatMeetsAWriterWakesOthersWithoutTheHeaderLock(DropPath path) throws Exception {
        SmgrRelation relation = f.create(1, ForkNumber.MAIN, 1);
        int block = path == DropPath.LOOKUP ? 0 : 5000; // a long way to look up
        int buffer = f.pool.read(relation, ForkNumber.MAIN, block, ReadMode.NORMAL);
        f.pool.lockExclusive(buffer);
        f.stamp(buffer, 1, block, 1);
        f.pool.markDirty(buffer);
        f.pool.unlock(buffer);

        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread drop =
                new Thread(() -> f.pool.dropRelations(new SmgrRelation[] {relation}, 1), "drop");
        drop.setUncaughtExceptionHandler((thread, e) -> failure.set(e));
        f.disk.beforeWrite =
                (file, offset) -> {
                    drop.start();
                    Thread.State state;
                    do { // until it waits for this write, or failed
                        Thread.onSpinWait();
                        state = drop.getState();
                    } while (state != Thread.State.WAITING && state != Thread.State.TERMINATED);
                    if (state == Thread.State.TERMINATED) {
                        unlockWhatItLeft(buffer);
                    }
                };
        f.pool.lockShared(buffer);
        f.pool.flushOne(buffer);
        f.disk.beforeWrite = (file, offset) -> {};
        f.pool.unlock(buffer);
        f.pool.release(buffer);
        drop.join();
        assertNull(failure.get(), () -> failure.get().toString());
        assertEquals(path, f.pool.dropStatistics().decisions().stream().findFirst().get().path());
        assertTrue(PoolInspection.descriptors(f.pool).isEmpty(), "nothing is left");
    }
}
