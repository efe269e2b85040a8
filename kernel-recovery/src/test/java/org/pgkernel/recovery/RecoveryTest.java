package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

class RecoveryTest {
    private static final int REL = 16384;

    @TempDir Path dir;

    private TestCluster cluster;

    @BeforeEach
    void make() throws IOException {
        cluster = new TestCluster(dir);
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private void crashRecover() {
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            recovery.begin();
            if (recovery.needsRedo()) {
                recovery.replay(0);
            }
            recovery.finishCrashRecovery();
            recovery.shutdown();
        }
    }

    @Test
    void crashRecoveryReplaysToTheEndAndWritesTwoCheckpoints() throws IOException {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.add(RmgrIds.HEAP2, 0, 900, new byte[8]);
        long end = cluster.wal.writer.nextRecordLsn();
        crashRecover();
        assertEquals(1, cluster.countInFile(REL, 0));
        ControlFile control = cluster.control();
        assertEquals(DbState.SHUTDOWNED, control.state());
        assertEquals(901, control.checkPointNextXid());
        assertEquals(0, control.minRecoveryPoint());
        assertEquals(0, control.checkPointOldestActiveXid());
        // End of recovery where the WAL ended, then the shutdown's right after it.
        try (WalReader reader =
                new WalReader(
                        cluster.disk,
                        cluster.wal.directory,
                        TimelineHistory.of(1),
                        TestWal.SEGMENT,
                        TestWal.SYSTEM)) {
            reader.begin(end);
            assertEquals(XlogRedo.CHECKPOINT_SHUTDOWN, reader.next().type());
            WalRecord last = reader.next();
            assertEquals(XlogRedo.CHECKPOINT_SHUTDOWN, last.type());
            assertEquals(control.checkPoint(), last.lsn());
            assertEquals(control.checkPointRedo(), last.lsn());
            assertEquals(null, reader.next());
        }
        assertEquals(
                List.of(
                        "beforeRedo",
                        "afterRedo",
                        "checkpoint SLRU",
                        "checkpoint TWO_PHASE",
                        "afterRecovery",
                        "checkpoint SLRU",
                        "checkpoint TWO_PHASE"),
                cluster.calls);
    }

    @Test
    void afterACleanShutdownNothingIsReplayedAndOneCheckpointFollows() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        long end = cluster.wal.writer.nextRecordLsn();
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            assertFalse(recovery.needsRedo());
            recovery.begin();
            recovery.finishCrashRecovery();
            assertEquals(DbState.IN_PRODUCTION, cluster.control().state());
            recovery.shutdown();
        }
        assertEquals(end, cluster.control().checkPoint());
        assertEquals(DbState.SHUTDOWNED, cluster.control().state());
    }

    @Test
    void redoBeginsAtTheRedoPointOfAnOnlineCheckpoint() throws IOException {
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long redo = cluster.wal.heap(TinyHeap.INIT, REL + 1, 0);
        cluster.wal.heap(TinyHeap.SET, REL + 1, 0);
        cluster.checkpoint(XlogRedo.CHECKPOINT_ONLINE, redo, DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.SET, REL + 1, 0);
        crashRecover();
        assertEquals(2, cluster.countInFile(REL + 1, 0));
        assertFalse(Files.exists(dir.resolve("base/5/" + REL)));
    }

    @Test
    void aRecordThatIsNotCoveredIsRefusedByNameBeforeAnythingIsWritten() throws IOException {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long uncovered = cluster.wal.heap(TinyHeap.UNCOVERED, REL, 0);
        byte[] control = Files.readAllBytes(dir.resolve("global/pg_control"));
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.CRASH))
                        .getMessage();
        assertTrue(
                message.contains("Heap/UNCOVERED")
                        && message.endsWith("lsn=" + Lsn.format(uncovered)),
                message);
        cluster.wal.add(RmgrIds.TABLESPACE, TablespaceRedo.CREATE, 0, new byte[8]);
        assertFalse(Files.exists(dir.resolve("base/5/" + REL)));
        assertEquals(
                java.util.Arrays.hashCode(control),
                java.util.Arrays.hashCode(Files.readAllBytes(dir.resolve("global/pg_control"))));
        assertTrue(cluster.calls.isEmpty());
    }

    @Test
    void tablespaceRecordsAreRefusedByName() {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.add(RmgrIds.TABLESPACE, TablespaceRedo.CREATE, 0, new byte[8]);
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.CRASH))
                        .getMessage();
        assertTrue(message.contains("Tablespace/CREATE"), message);
    }

    @Test
    void walMissingFromTheRedoPointIsRefused() {
        long redo = cluster.wal.writer.nextRecordLsn();
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.checkpoint(
                XlogRedo.CHECKPOINT_ONLINE, redo - TestWal.SEGMENT, DbState.IN_PRODUCTION);
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.CRASH))
                        .getMessage();
        assertTrue(message.contains("redo point") && message.contains("lsn="), message);
        assertEquals(DbState.IN_PRODUCTION, cluster.control().state());
    }

    @Test
    void walThatEndsBeforeTheCheckpointItBelongsToIsRefused() throws IOException {
        long redo = cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long damaged = cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.checkpoint(XlogRedo.CHECKPOINT_ONLINE, redo, DbState.IN_PRODUCTION);
        cluster.wal.writer.flush();
        try (var file =
                new java.io.RandomAccessFile(
                        dir.resolve("pg_wal/000000010000000000000003").toFile(), "rw")) {
            file.seek(damaged % TestWal.SEGMENT + 20);
            file.writeInt(0);
        }
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.CRASH))
                        .getMessage();
        assertTrue(message.contains("between the redo point and its checkpoint"), message);
        assertTrue(message.contains(Lsn.format(damaged)), message);
        assertEquals(DbState.IN_PRODUCTION, cluster.control().state());
    }

    @Test
    void aStandbyRefusesWalThatLeavesChangesOut() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        long parameters =
                cluster.wal.add(
                        RmgrIds.XLOG,
                        XlogRedo.PARAMETER_CHANGE,
                        0,
                        ints(100, 8, 10, 0, 64, ControlFile.WAL_LEVEL_MINIMAL, 0));
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            String message =
                    assertThrows(RefusedException.class, () -> recovery.replay(0)).getMessage();
            assertTrue(message.endsWith("lsn=" + Lsn.format(parameters)), message);
        }
        ControlFile control = cluster.control();
        assertEquals(ControlFile.WAL_LEVEL_REPLICA, control.walLevel());
        control.setWalLevel(ControlFile.WAL_LEVEL_MINIMAL);
        control.write(cluster.disk, dir.toString(), true, java.time.Clock.systemUTC());
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.STANDBY))
                        .getMessage();
        assertTrue(message.contains("wal_level"), message);
        // A crash needs no more than what was logged.
        cluster.open(Recovery.Mode.CRASH).close();
    }

    @Test
    void aMinimumRecoveryPointOfAnAbandonedTimelineIsRefused() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            recovery.replay(0);
            recovery.promote();
            recovery.checkpoint();
        }
        ControlFile control = cluster.control();
        control.setMinRecoveryPoint(control.checkPoint());
        control.setMinRecoveryPointTli(1);
        control.write(cluster.disk, dir.toString(), true, java.time.Clock.systemUTC());
        String message =
                assertThrows(RefusedException.class, () -> cluster.open(Recovery.Mode.STANDBY))
                        .getMessage();
        assertTrue(message.contains("minimum recovery point on timeline 1"), message);
    }

    @Test
    @DisplayName(
            "C30: promotion short of the minimum recovery point is refused, no timeline begins")
    void promotionBeforeTheMinimumRecoveryPointIsRefused() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        long early = cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            recovery.replay(0);
            recovery.pool().flushAll();
        }
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            assertEquals(RedoEngine.Outcome.STOPPED, recovery.replay(early));
            assertThrows(RefusedException.class, recovery::promote);
        }
        assertFalse(Files.exists(dir.resolve("pg_wal/00000002.history")));
        assertEquals(DbState.IN_ARCHIVE_RECOVERY, cluster.control().state());
    }

    @Test
    void damageInTheMiddleKeepsWhatCameBeforeAndARerunGoesOn() throws IOException {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.heap(TinyHeap.INIT, REL + 1, 0);
        long bad = cluster.wal.heap(TinyHeap.FAIL, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL + 1, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            recovery.begin();
            String message =
                    assertThrows(DamagedDataException.class, () -> recovery.replay(0)).getMessage();
            assertTrue(message.endsWith("lsn=" + Lsn.format(bad)), message);
        }
        // The page that the bad record was changing is as its file was; the other holds what came
        // before.
        assertEquals(0, cluster.countInFile(REL + 1, 0));
        assertTrue(cluster.countInFile(REL, 0) <= 1);
        assertEquals(DbState.IN_CRASH_RECOVERY, cluster.control().state());
        assertEquals(cluster.checkpointLsn, cluster.control().checkPoint());
        cluster.heap.failuresAreRepaired = true;
        crashRecover();
        assertEquals(3, cluster.countInFile(REL, 0));
        assertEquals(1, cluster.countInFile(REL + 1, 0));
        assertEquals(DbState.SHUTDOWNED, cluster.control().state());
    }

    @Test
    void anAccessPastThePageIsDamageAndNoCrash() throws IOException {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.OUT_OF_BOUNDS, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            recovery.begin();
            String message =
                    assertThrows(DamagedDataException.class, () -> recovery.replay(0)).getMessage();
            assertTrue(
                    message.contains("Heap/OUT_OF_BOUNDS")
                            && message.contains("rel=1663/5/16384 fork=MAIN block=0 lsn="),
                    message);
        }
        assertEquals(DbState.IN_CRASH_RECOVERY, cluster.control().state());
    }

    @Test
    @DisplayName(
            "C26 2: in crash recovery a missing page stops only at the end of WAL, before any new WAL")
    void aMissingPageStopsCrashRecoveryAtTheEndOfWal() {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.SET, REL, 5);
        cluster.wal.heap(TinyHeap.INIT, REL + 1, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            recovery.begin();
            assertEquals(RedoEngine.Outcome.END_OF_WAL, recovery.replay(0));
            String message =
                    assertThrows(DamagedDataException.class, recovery::finishCrashRecovery)
                            .getMessage();
            assertTrue(message.contains("rel=1663/5/16384 fork=MAIN block=5"), message);
        }
        assertEquals(DbState.IN_CRASH_RECOVERY, cluster.control().state());
    }

    @Test
    @DisplayName("C26 1: a missing page of a database that is dropped later is no error")
    void aMissingPageOfADroppedDatabaseIsForgotten() {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.SET, REL, 5);
        cluster.wal.add(RmgrIds.DATABASE, DatabaseRedo.DROP, 0, ints(5, 1, 1663));
        crashRecover();
        assertFalse(Files.exists(dir.resolve("base/5")));
        assertEquals(DbState.SHUTDOWNED, cluster.control().state());
    }

    @Test
    void aStandbyStopsBeforeTheFirstRecordAtTheLsnAndGoesOn() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long pause = cluster.wal.heap(TinyHeap.SET, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            assertEquals(DbState.IN_ARCHIVE_RECOVERY, cluster.control().state());
            assertEquals(RedoEngine.Outcome.STOPPED, recovery.replay(pause));
            assertEquals(pause, recovery.replayedTo());
            assertEquals(1, recovery.records());
            assertEquals(RedoEngine.Outcome.STOPPED, recovery.replay(pause));
            assertEquals(1, recovery.records());
            assertEquals(RedoEngine.Outcome.END_OF_WAL, recovery.replay(0));
            assertEquals(3, recovery.records());
            recovery.interrupt();
        }
        assertEquals(DbState.SHUTDOWNED_IN_RECOVERY, cluster.control().state());
    }

    @Test
    @DisplayName("C30: the minimum recovery point covers a page before the page is written")
    void theMinimumRecoveryPointIsDurableFirst() {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        long end = cluster.wal.writer.nextRecordLsn();
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            assertEquals(cluster.checkpointLsn, cluster.control().minRecoveryPoint());
            recovery.replay(0);
            assertEquals(cluster.checkpointLsn, cluster.control().minRecoveryPoint());
            recovery.pool().flushAll();
            assertEquals(end, cluster.control().minRecoveryPoint());
            assertEquals(1, cluster.control().minRecoveryPointTli());
        }
    }

    @Test
    void crashRecoveryLeavesTheMinimumRecoveryPointAlone() {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.CRASH)) {
            recovery.begin();
            recovery.replay(0);
            recovery.pool().flushAll();
            recovery.context().flushTo(recovery.replayedTo());
            assertEquals(0, cluster.control().minRecoveryPoint());
        }
    }

    @Test
    @DisplayName(
            "R18, R19, R20: promotion begins the next free timeline with a copy of the last segment")
    void promotionBeginsANewTimeline() throws IOException {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long end = cluster.wal.writer.nextRecordLsn();
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        Files.createFile(dir.resolve("pg_wal/000000010000000000000009"));
        Files.writeString(dir.resolve("pg_wal/00000002.history"), "1\t0/200000\tsomebody else's\n");
        Files.createFile(dir.resolve("standby.signal"));
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            recovery.replay(end);
            assertEquals(3, recovery.promote());
            assertEquals(DbState.IN_PRODUCTION, cluster.control().state());
            // A crash before the first checkpoint follows the new timeline at least this far.
            assertEquals(3, cluster.control().minRecoveryPointTli());
            recovery.checkpoint();
            assertEquals(3, cluster.control().checkPointThisTimeLineId());
            assertEquals(700, cluster.control().checkPointOldestActiveXid());
            assertEquals(0, cluster.control().minRecoveryPoint());
            recovery.shutdown();
        }
        assertFalse(Files.exists(dir.resolve("standby.signal")));
        assertFalse(Files.exists(dir.resolve("pg_wal/000000010000000000000009")));
        assertTrue(Files.exists(dir.resolve("pg_wal/000000030000000000000003")));
        TimelineHistory history = TimelineHistory.read(cluster.disk, cluster.wal.directory, 3);
        assertEquals(1, history.timelineAt(end - 1));
        assertEquals(3, history.timelineAt(end));
        try (WalReader reader =
                new WalReader(
                        cluster.disk,
                        cluster.wal.directory,
                        history,
                        TestWal.SEGMENT,
                        TestWal.SYSTEM)) {
            reader.begin(cluster.checkpointLsn);
            reader.next();
            assertEquals(RmgrIds.HEAP, reader.next().rmid());
            WalRecord endOfRecovery = reader.next();
            assertEquals(XlogRedo.END_OF_RECOVERY, endOfRecovery.type());
            assertEquals(end, endOfRecovery.lsn());
            assertEquals(3, endOfRecovery.data().getInt(8));
            assertEquals(1, endOfRecovery.data().getInt(12));
            assertEquals(RmgrIds.STANDBY, reader.next().rmid());
            assertEquals(XlogRedo.CHECKPOINT_ONLINE, reader.next().type());
            assertEquals(XlogRedo.CHECKPOINT_SHUTDOWN, reader.next().type());
            assertEquals(null, reader.next());
        }
        assertEquals(0, cluster.countInFile(REL, 0));
    }

    @Test
    void aCrashAfterPromotionIsRecoveredAcrossTheTimelineSwitch() throws IOException {
        cluster.shutdownCheckpoint(DbState.SHUTDOWNED);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        cluster.wal.heap(TinyHeap.SET, REL, 0);
        try (Recovery recovery = cluster.open(Recovery.Mode.STANDBY)) {
            recovery.begin();
            recovery.replay(0);
            recovery.promote();
        }
        crashRecover();
        assertEquals(1, cluster.countInFile(REL, 0));
        assertEquals(2, cluster.control().checkPointThisTimeLineId());
        assertEquals(2, cluster.control().checkPointPrevTimeLineId());
    }

    @Test
    @DisplayName(
            "C25: where a record lost its second half, an OVERWRITE_CONTRECORD record says so, and a second recovery passes it")
    void aRecordWithoutItsSecondHalfIsMarked() throws IOException {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        long broken = cluster.wal.add(RmgrIds.HEAP2, 0, 900, new byte[20_000]);
        cluster.wal.writer.flush();
        long secondPage = (broken & -8192L) + 8192;
        try (var file =
                new java.io.RandomAccessFile(
                        dir.resolve("pg_wal/000000010000000000000003").toFile(), "rw")) {
            file.seek(secondPage % TestWal.SEGMENT);
            file.write(new byte[3 * 8192]);
        }
        crashRecover();
        crashRecoverAgain();
        assertEquals(700, cluster.control().checkPointNextXid());
        try (WalReader reader =
                new WalReader(
                        cluster.disk,
                        cluster.wal.directory,
                        TimelineHistory.of(1),
                        TestWal.SEGMENT,
                        TestWal.SYSTEM)) {
            reader.begin(cluster.checkpointLsn);
            reader.next();
            assertEquals(RmgrIds.HEAP, reader.next().rmid());
            WalRecord overwrite = reader.next();
            assertEquals(XlogRedo.OVERWRITE_CONTRECORD, overwrite.type());
            assertEquals(broken, overwrite.data().getLong(0));
            assertEquals(XlogRedo.CHECKPOINT_SHUTDOWN, reader.next().type());
        }
    }

    /** As if it had crashed right after the first recovery's first record. */
    private void crashRecoverAgain() {
        ControlFile control = cluster.control();
        control.setState(DbState.IN_PRODUCTION);
        control.setCheckPoint(cluster.checkpointLsn);
        try (WalReader reader = cluster.wal.reader(cluster.checkpointLsn)) {
            control.setCheckPointCopy(reader.next().data(), 0);
        }
        control.write(cluster.disk, dir.toString(), true, java.time.Clock.systemUTC());
        crashRecover();
    }

    @Test
    void progressIsReported() {
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        for (int i = 0; i < 2 * SerialRedoEngine.PROGRESS_INTERVAL; i++) {
            cluster.wal.heap(TinyHeap.SET, REL, 0);
        }
        cluster.wal.writer.flush();
        List<Long> seen = new java.util.ArrayList<>();
        try (Recovery recovery =
                Recovery.open(
                        cluster.disk,
                        dir.toString(),
                        Recovery.Mode.CRASH,
                        TestCluster.options((lsn, bytes, records) -> seen.add(records)),
                        cluster.providers())) {
            recovery.begin();
            recovery.replay(0);
        }
        assertEquals(List.of(4096L, 8192L, 8193L), seen);
    }

    static byte[] ints(int... values) {
        java.nio.ByteBuffer bytes =
                java.nio.ByteBuffer.allocate(4 * values.length)
                        .order(java.nio.ByteOrder.LITTLE_ENDIAN);
        for (int value : values) {
            bytes.putInt(value);
        }
        return bytes.array();
    }
}
