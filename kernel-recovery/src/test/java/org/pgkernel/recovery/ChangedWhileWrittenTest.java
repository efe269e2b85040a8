package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.DbState;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.HintImageLog;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * C32 to its end: a page changes while an older copy of it is written, a checkpoint follows whose
 * redo pointer is past the change, the server crashes. Redo cannot bring the change back, so the
 * checkpoint must have written it.
 */
@Timeout(60)
class ChangedWhileWrittenTest {
    private static final int REL = 16384;
    private static final String DATA = "/base/5/" + REL;

    /** Where a hint is set on the page, which no record knows of. */
    private static final int HINT = TinyHeap.COUNT + 8;

    @TempDir Path dir;

    private TestCluster cluster;
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());
    private final CountDownLatch copied = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);
    private Recovery primary;
    private BufferPool pool;
    private SmgrRelation relation;

    @BeforeEach
    void start() throws Exception {
        cluster = new TestCluster(dir);
        cluster.checksums = true; // or pages are written as they are at the last moment
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.writer.flush();
        primary = open(disk);
        primary.begin();
        primary.replay(0);
        primary.finishCrashRecovery();
        pool = primary.pool();
        pool.hintImageLog(new NoImages());
        relation = pool.smgr().open(TestWal.SPC, TestWal.DB, REL);
    }

    @AfterEach
    void close() {
        goOn.countDown();
        primary.close();
        cluster.close();
    }

    private Recovery open(org.pgkernel.base.disk.Disk on) {
        return Recovery.open(
                on,
                dir.toString(),
                Recovery.Mode.CRASH,
                TestCluster.options(ReplayListener.NONE),
                cluster.providers());
    }

    /** Adds one to the page's count, as a transaction does: exclusively locked, and logged. */
    private void add() {
        int buffer = pool.read(relation, ForkNumber.MAIN, 0, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, page);
        page.putInt(TinyHeap.COUNT, page.getInt(TinyHeap.COUNT) + 1);
        pool.markDirty(buffer);
        WalRecordBuilder record =
                new WalRecordBuilder()
                        .begin(RmgrIds.HEAP, TinyHeap.SET, TransactionId.INVALID)
                        .block(0, TestWal.SPC, TestWal.DB, REL, ForkNumber.MAIN, 0, 0);
        Page.setLsn(page, primary.writer.append(record));
        pool.unlock(buffer);
        pool.release(buffer);
    }

    /** Our page is logged since the last checkpoint before each hint, so none needs an image. */
    private final class NoImages implements HintImageLog {
        @Override
        public void delayCheckpoint() {}

        @Override
        public void allowCheckpoint() {}

        @Override
        public long redoPointer() {
            return cluster.control().checkPointRedo();
        }

        @Override
        public long logImage(
                int spc,
                int db,
                int rel,
                ForkNumber fork,
                int block,
                DirectBuffer page,
                boolean standard) {
            throw new AssertionError("a page that was logged is logged again");
        }
    }

    /** Changes the page beside whoever writes it. */
    private void hint(int value) {
        int buffer = pool.read(relation, ForkNumber.MAIN, 0, ReadMode.NORMAL);
        pool.lockShared(buffer);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, page);
        page.putInt(HINT, value);
        pool.markDirtyHint(buffer, true);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    private int inFile(int offset) throws Exception {
        return new UnsafeBuffer(java.nio.file.Files.readAllBytes(Path.of(dir + DATA)))
                .getInt(offset);
    }

    private static FutureTask<Void> start(Runnable body) {
        FutureTask<Void> task = new FutureTask<>(body, null);
        new Thread(task).start();
        return task;
    }

    /** Somebody cleans the page: has its copy, and has not written it yet. */
    private FutureTask<Void> cleanerThatStops() throws Exception {
        disk.before(
                Call.WRITE,
                (path, offset) -> {
                    if (path.endsWith(DATA)) {
                        disk.before(Call.WRITE, (p, o) -> {});
                        copied.countDown();
                        try {
                            goOn.await();
                        } catch (InterruptedException e) {
                            throw new AssertionError(e);
                        }
                    }
                });
        FutureTask<Void> cleaner = start(() -> pool.flushRelation(relation));
        copied.await();
        return cleaner;
    }

    private void crash() {
        primary.writer.flush();
        primary.close(); // writes nothing: what the pool held is gone
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("C32(4): checkpoint, crash, redo: the change beside the older write is there")
    void aCrashAfterTheCheckpointLosesNothing(boolean checkpointBeginsDuringTheWrite)
            throws Exception {
        add(); // 2, and the page is dirty
        FutureTask<Void> cleaner = cleanerThatStops();
        hint(77);
        FutureTask<Void> checkpoint = null;
        if (checkpointBeginsDuringTheWrite) {
            checkpoint = new FutureTask<>(primary::checkpoint, null);
            Thread thread = new Thread(checkpoint);
            thread.start();
            while (thread.getState() != Thread.State.WAITING) { // for the write in progress
                assertTrue(thread.isAlive(), "the checkpoint did not wait for the write");
                Thread.onSpinWait();
            }
        }
        goOn.countDown();
        cleaner.get();
        if (checkpoint == null) {
            assertEquals(0, inFile(HINT), "the cleaner wrote its older copy");
            primary.checkpoint();
        } else {
            checkpoint.get();
        }
        long redo = cluster.control().checkPointRedo();
        add(); // 3, after the redo pointer: in the WAL only
        crash();
        assertEquals(2, inFile(TinyHeap.COUNT));
        try (Recovery recovery = open(new PosixDisk())) {
            recovery.begin();
            assertTrue(recovery.needsRedo());
            recovery.replay(0);
            assertEquals(redo, cluster.control().checkPointRedo(), "redo began there");
            recovery.finishCrashRecovery();
            recovery.shutdown();
        }
        assertEquals(3, inFile(TinyHeap.COUNT));
        assertEquals(77, inFile(HINT), "the change is lost");
    }

    @Test
    @DisplayName("C32(4): a crash right after the older write: redo brings the later change back")
    void aCrashAfterTheOlderWriteLosesNoLoggedChange() throws Exception {
        add(); // 2
        FutureTask<Void> cleaner = cleanerThatStops();
        FutureTask<Void> changer = start(this::add); // 3, when the write has ended
        goOn.countDown();
        cleaner.get();
        changer.get();
        crash();
        assertEquals(2, inFile(TinyHeap.COUNT));
        try (Recovery recovery = open(new PosixDisk())) {
            recovery.begin();
            recovery.replay(0);
            recovery.finishCrashRecovery();
            recovery.shutdown();
        }
        assertEquals(3, inFile(TinyHeap.COUNT));
    }
}
