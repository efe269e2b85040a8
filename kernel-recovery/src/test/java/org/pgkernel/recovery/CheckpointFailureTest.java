package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.DbState;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.testkit.FaultyDisk;
import org.pgkernel.testkit.FaultyDisk.Call;

/** A checkpoint whose write or sync phase fails does not complete, and the redo pointer stays. */
class CheckpointFailureTest {
    private static final int REL = 16384;
    private static final String DATA = "/base/5/" + REL;

    @TempDir Path dir;
    private TestCluster cluster;
    private final FaultyDisk disk = new FaultyDisk(new PosixDisk());

    @BeforeEach
    void create() throws IOException {
        cluster = new TestCluster(dir);
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.writer.flush();
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private Recovery open(Disk on, Recovery.Mode mode) {
        return Recovery.open(
                on,
                dir.toString(),
                mode,
                TestCluster.options(ReplayListener.NONE),
                cluster.providers());
    }

    private Recovery replayed(Recovery.Mode mode) {
        Recovery recovery = open(disk, mode);
        recovery.begin();
        recovery.replay(0);
        return recovery;
    }

    /** The written pages are gone, as the system may have thrown them away. */
    private void loseThePages() {
        try (RandomAccessFile file = new RandomAccessFile(dir + DATA, "rw")) {
            long length = file.length();
            file.setLength(0);
            file.setLength(length);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private void assertPointerHasNotMoved() {
        assertEquals(cluster.checkpointLsn, cluster.control().checkPoint());
        assertEquals(cluster.checkpointLsn, cluster.control().checkPointRedo());
    }

    private void assertACrashRecoveryRewritesThePages() throws IOException {
        try (Recovery recovery = open(new PosixDisk(), Recovery.Mode.CRASH)) {
            recovery.begin();
            recovery.replay(0);
            recovery.finishCrashRecovery();
            recovery.shutdown();
        }
        assertEquals(1, cluster.countInFile(REL, 0));
        assertEquals(DbState.SHUTDOWNED, cluster.control().state());
    }

    @Test
    @DisplayName(
            "C08: a sync that fails once stops the kernel: no checkpoint completes, though later"
                    + " syncs would succeed, and redo rewrites the lost pages")
    void aFailedSyncFailsThisCheckpointAndEveryLaterOne() throws IOException {
        Recovery recovery = replayed(Recovery.Mode.CRASH);
        boolean[] failed = {false};
        disk.before(
                Call.SYNC,
                (path, offset) -> {
                    if (path.endsWith(DATA) && !failed[0]) {
                        failed[0] = true;
                        loseThePages();
                        throw new DiskException("told to fail", path, DiskException.EIO);
                    }
                });
        KernelStoppedException first =
                assertThrows(KernelStoppedException.class, recovery::finishCrashRecovery);
        assertTrue(first.getMessage().contains(DATA), first.getMessage());
        assertFalse(first.mayRetry());
        assertTrue(failed[0]);
        assertPointerHasNotMoved();
        for (int i = 0; i < 2; i++) {
            KernelStoppedException later =
                    assertThrows(KernelStoppedException.class, recovery::checkpoint);
            assertTrue(later.getMessage().contains("not tried again"), later.getMessage());
            assertPointerHasNotMoved();
        }
        recovery.close();
        disk.clear(Call.SYNC);
        assertACrashRecoveryRewritesThePages();
    }

    @Test
    @DisplayName("C08: the same for the restartpoint of a standby that is stopped")
    void aFailedSyncFailsTheRestartPoint() {
        cluster.wal.checkpoint(
                XlogRedo.CHECKPOINT_ONLINE, cluster.wal.writer.nextRecordLsn(), 700, 16384);
        cluster.wal.writer.flush();
        Recovery recovery = replayed(Recovery.Mode.STANDBY);
        disk.fail(Call.SYNC, DATA, DiskException.EIO);
        assertThrows(KernelStoppedException.class, recovery::interrupt);
        disk.clear(Call.SYNC);
        assertThrows(KernelStoppedException.class, recovery::interrupt);
        assertPointerHasNotMoved();
        assertEquals(DbState.IN_ARCHIVE_RECOVERY, cluster.control().state());
        recovery.close();
    }

    @Test
    void aFailedWriteFailsTheCheckpointByNameAndLeavesThePageDirtyForTheNext() throws IOException {
        Recovery recovery = replayed(Recovery.Mode.CRASH);
        disk.fail(Call.WRITE, DATA, DiskException.EIO);
        for (int i = 0; i < 2; i++) {
            KernelException e = assertThrows(DiskException.class, () -> recovery.pool().flushAll());
            assertTrue(e.getMessage().contains("rel=1663/5/" + REL), e.getMessage());
            assertTrue(e.getMessage().contains("fork=main block=0"), e.getMessage());
        }
        assertThrows(DiskException.class, recovery::finishCrashRecovery);
        assertPointerHasNotMoved();
        recovery.close();
        disk.clear(Call.WRITE);
        assertACrashRecoveryRewritesThePages();
    }

    @Test
    @DisplayName(
            "C01: a planted dirty page of a missing file fails each checkpoint by name; the pointer"
                    + " stays, the file is not made anew")
    void aPlantedLeftoverFailsTheCheckpointLoudly() throws IOException {
        int leftover = 16999;
        Recovery recovery = replayed(Recovery.Mode.CRASH);
        recovery.finishCrashRecovery();
        long before = cluster.control().checkPoint();
        SmgrRelation relation = recovery.pool().smgr().open(1663, 5, leftover);
        relation.create(ForkNumber.MAIN, false);
        int buffer = recovery.pool().extend(relation, ForkNumber.MAIN, true);
        recovery.pool().markDirty(buffer);
        recovery.pool().unlock(buffer);
        recovery.pool().release(buffer);
        recovery.pool().smgr().syncRequests().forget(1663, 5, leftover, 0);
        recovery.pool().smgr().close(relation);
        Path file = dir.resolve("base/5/" + leftover);
        Files.delete(file);
        for (int i = 0; i < 2; i++) {
            KernelException e = assertThrows(KernelException.class, recovery::checkpoint);
            assertTrue(e.getMessage().contains("rel=1663/5/" + leftover), e.getMessage());
            assertTrue(e.getMessage().contains("fork=main block=0"), e.getMessage());
            assertEquals(before, cluster.control().checkPoint());
            assertFalse(Files.exists(file));
        }
        // Once its buffers are dropped, as they should have been, checkpoints go through again.
        // With the database's: LOOKUP takes a fork without a file for empty.
        recovery.pool().dropDatabase(5);
        recovery.checkpoint();
        assertTrue(cluster.control().checkPoint() > before);
        recovery.close();
    }

    @Test
    @DisplayName(
            "C07: a relation that is dropped between the write and the sync phase is passed over")
    void aDropBetweenWriteAndSyncPhaseIsNoFailure() {
        Recovery recovery = replayed(Recovery.Mode.CRASH);
        recovery.finishCrashRecovery();
        SmgrRelation relation = recovery.pool().smgr().open(1663, 5, REL);
        int buffer = recovery.pool().read(relation, ForkNumber.MAIN, 0, ReadMode.NORMAL);
        recovery.pool().lockExclusive(buffer);
        recovery.pool().markDirty(buffer);
        recovery.pool().unlock(buffer);
        recovery.pool().release(buffer);
        long before = cluster.control().checkPoint();
        boolean[] dropped = {false};
        disk.after(
                Call.WRITE,
                (path, offset) -> {
                    if (path.endsWith(DATA) && !dropped[0]) {
                        dropped[0] = true;
                    }
                });
        disk.before(
                Call.OPEN,
                (path, offset) -> {
                    // The sync phase opens the file by name: drop it just then.
                    if (path.endsWith(DATA) && dropped[0]) {
                        dropped[0] = false;
                        SmgrRelation[] one = {relation};
                        recovery.pool().dropRelations(one, 1);
                        recovery.pool().smgr().unlinkAll(one, 1, true);
                    }
                });
        recovery.checkpoint();
        assertFalse(Files.exists(dir.resolve("base/5/" + REL)));
        assertTrue(cluster.control().checkPoint() > before);
        recovery.close();
    }
}
