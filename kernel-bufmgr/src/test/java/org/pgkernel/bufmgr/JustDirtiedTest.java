package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.SmgrRelation;

/** C32: a page that changes while its older copy is written is dirty when that write ends. */
@Timeout(60)
class JustDirtiedTest {
    @TempDir Path directory;

    PoolFixture f;
    SmgrRelation r;

    /** A write that has its copy of block 1, with version 10, waits here. */
    final CountDownLatch copied = new CountDownLatch(1);

    final CountDownLatch goOn = new CountDownLatch(1);
    volatile boolean failTheWrite;
    int buffer;

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(16, true, DropStrategy.FULL_SCAN);
        f.pool.hintImageLog(new RecordingHintLog());
        r = f.create(1, ForkNumber.MAIN, 40);
        f.pool.flushAll();
        f.change(r, ForkNumber.MAIN, 1, 10);
        buffer = f.pool.allocator.probe(PoolFixture.SPC, PoolFixture.DB, 1, 0, 1);
        f.disk.beforeWrite =
                (path, offset) -> {
                    f.disk.beforeWrite = (p, o) -> {};
                    copied.countDown();
                    ReadAndExtendTest.await(goOn);
                    if (failTheWrite) {
                        throw new DiskException("planted file=" + path, DiskException.EIO);
                    }
                };
    }

    @AfterEach
    void close() {
        assertEquals(0, f.pool.pinnedBuffers());
        PoolInspection.check(f.pool);
        f.close();
    }

    @Test
    @DisplayName("C32(4): evicted and read back the page has its newest version")
    void evictedAndReadBackThePageHasItsNewestVersion() throws Exception {
        FutureTask<Integer> cleaner = start(this::flushBlock1);
        ReadAndExtendTest.await(copied);
        hint(11);
        goOn.countDown();
        cleaner.get();
        assertEquals(10, f.versionOnDisk(r, ForkNumber.MAIN, 1), "the older copy was written");
        assertNotEquals(0, f.pool.descriptors.state(buffer) & BufferState.DIRTY);
        f.evictAll(f.create(2, ForkNumber.MAIN, 16));
        assertEquals(11, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(11, f.readVersion(r, ForkNumber.MAIN, 1));
    }

    @Test
    @DisplayName("C32(4): a checkpoint that begins after the change writes it, older write or not")
    void aCheckpointDoesNotTakeTheOlderCopyForTheChange() throws Exception {
        FutureTask<Integer> cleaner = start(this::flushBlock1);
        ReadAndExtendTest.await(copied);
        hint(11); // then the checkpoint's redo pointer
        FutureTask<Integer> checkpoint = start(f.pool::flushAll);
        while ((f.pool.descriptors.state(buffer) & BufferState.CHECKPOINT_NEEDED) == 0) {
            Thread.onSpinWait(); // it has begun and counts the page in
        }
        goOn.countDown();
        cleaner.get();
        assertEquals(1, checkpoint.get(), "the checkpoint took the cleaner's write for its own");
        assertEquals(11, f.versionOnDisk(r, ForkNumber.MAIN, 1), "what a crash would leave");
        assertEquals(
                0,
                f.pool.descriptors.state(buffer)
                        & (BufferState.DIRTY | BufferState.CHECKPOINT_NEEDED));
    }

    @Test
    @DisplayName("C32: a change during a checkpoint's own write is left to the next checkpoint")
    void aChangeDuringTheCheckpointsWriteIsTheNextOnes() throws Exception {
        FutureTask<Integer> checkpoint = start(f.pool::flushAll);
        ReadAndExtendTest.await(copied);
        hint(11);
        goOn.countDown();
        assertEquals(1, checkpoint.get());
        assertEquals(10, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(1, f.pool.flushAll(), "the change was forgotten");
        assertEquals(11, f.versionOnDisk(r, ForkNumber.MAIN, 1));
        assertEquals(0, f.pool.flushAll());
    }

    @Test
    @DisplayName("C32: a failed write during which the page changed leaves it dirty")
    void aFailedWriteLeavesTheChangedPageDirty() throws Exception {
        failTheWrite = true;
        FutureTask<Integer> cleaner = start(this::flushBlock1);
        ReadAndExtendTest.await(copied);
        hint(11);
        goOn.countDown();
        assertThrows(java.util.concurrent.ExecutionException.class, cleaner::get);
        assertEquals(1, f.pool.flushAll());
        assertEquals(11, f.versionOnDisk(r, ForkNumber.MAIN, 1));
    }

    private int flushBlock1() {
        int b = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        try {
            f.pool.lockShared(b);
            try {
                f.pool.flushOne(b);
            } finally {
                f.pool.unlock(b);
            }
        } finally {
            f.pool.release(b);
        }
        return b;
    }

    private void hint(int version) {
        int b = f.pool.read(r, ForkNumber.MAIN, 1, ReadMode.NORMAL);
        f.pool.lockShared(b);
        f.page(b).putInt(4104, version);
        f.pool.markDirtyHint(b, true);
        f.pool.unlock(b);
        f.pool.release(b);
    }

    static FutureTask<Integer> start(java.util.concurrent.Callable<Integer> body) {
        FutureTask<Integer> task = new FutureTask<>(body);
        new Thread(task).start();
        return task;
    }
}
