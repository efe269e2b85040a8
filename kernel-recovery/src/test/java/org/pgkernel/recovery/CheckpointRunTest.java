package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.DbState;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.CheckpointSchedule;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;

/** Online checkpoints beside who inserts, step by step. */
class CheckpointRunTest {
    private static final int REL = 16384;

    @TempDir Path dir;
    private TestCluster cluster;
    private Recovery recovery;
    private Primary primary;

    @BeforeEach
    void start() throws IOException {
        cluster = new TestCluster(dir);
        cluster.shutdownCheckpoint(DbState.IN_PRODUCTION);
        cluster.wal.heap(TinyHeap.INIT, REL, 0);
        recovery = cluster.open(Recovery.Mode.CRASH);
        recovery.begin();
        recovery.replay(0);
        recovery.finishCrashRecovery();
        primary =
                recovery.startPrimary(
                        new PrimaryOptions(1 << 16, ImageCompression.OFF, (spc, db, rel) -> false));
    }

    @AfterEach
    void close() {
        recovery.close();
        cluster.close();
    }

    private CheckpointRun begin() {
        return primary.beginCheckpoint(CheckpointSchedule.IMMEDIATE, System::nanoTime);
    }

    private long logNoop() {
        return primary.wal().insert(new WalRecordBuilder().begin(RmgrIds.XLOG, XlogRedo.NOOP, 0));
    }

    private void finish(CheckpointRun run) {
        for (int i = 0; i < 1000 && !run.isDone(); i++) {
            run.doWork();
        }
        assertTrue(run.isDone(), "it waits for somebody");
    }

    private void assertWaits(CheckpointRun run) {
        long before = cluster.control().checkPoint();
        for (int i = 0; i < 100; i++) {
            run.doWork();
        }
        assertEquals(0, run.doWork());
        assertFalse(run.isDone());
        assertEquals(before, cluster.control().checkPoint());
    }

    private List<String> records(long from) {
        List<String> names = new ArrayList<>();
        try (WalReader reader = cluster.wal.reader(from)) {
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                names.add(RmgrIds.name(record.rmid()) + "/" + record.type());
            }
        }
        return names;
    }

    @Test
    void insertionBeginsExactlyWhereRecoveryEnded() {
        long endOfRecovery = cluster.control().checkPoint();
        long end = logNoop();
        primary.wal().flush(end);
        assertEquals(
                List.of("XLOG/" + XlogRedo.CHECKPOINT_SHUTDOWN, "XLOG/" + XlogRedo.NOOP),
                records(endOfRecovery));
    }

    @Test
    void whatIsInsertedMeanwhileLiesBetweenRedoPointAndRecord() {
        logNoop();
        CheckpointRun run = begin();
        run.doWork();
        long inBetween = logNoop();
        finish(run);
        assertTrue(Lsn.before(run.redoLsn(), inBetween));
        assertEquals(run.redoLsn(), cluster.control().checkPointRedo());
        assertEquals(
                List.of(
                        "XLOG/" + XlogRedo.NOOP,
                        "Standby/" + RunningXacts.TYPE,
                        "XLOG/" + XlogRedo.CHECKPOINT_ONLINE),
                records(run.redoLsn()));
        assertEquals(DbState.IN_PRODUCTION, cluster.control().state());
    }

    @Test
    @DisplayName(
            "who was between record and dirty page at the redo point is waited for, later ones are not")
    void theRunWaitsForThoseInsideAtTheRedoPoint() {
        CheckpointDelay delay = primary.checkpointDelay();
        delay.delayStart();
        CheckpointRun run = begin();
        assertWaits(run);
        delay.allowStart();
        run.doWork();
        delay.delayStart();
        finish(run);
        delay.allowStart();
    }

    @Test
    @DisplayName(
            "C03: a checkpoint does not complete while a truncation has dropped buffers and not cut the file")
    void theRecordWaitsForATruncationAtWork() {
        CheckpointDelay delay = primary.checkpointDelay();
        CheckpointRun run = begin();
        run.doWork();
        delay.delayCompletion();
        assertWaits(run);
        delay.allowCompletion();
        finish(run);
    }

    @Test
    void whoHasLeftAndEnteredAgainMeanwhileHasLeft() {
        CheckpointDelay.Inside inside = primary.checkpointDelay().start();
        inside.enter();
        long[] seen = inside.look();
        assertFalse(inside.haveLeft(seen));
        inside.leave();
        inside.enter();
        assertTrue(inside.haveLeft(seen));
        inside.leave();
    }

    @Test
    void aPageGetsItsImageInTheFirstRecordAfterTheRedoPoint() {
        RecordInsert insert = new RecordInsert(primary.wal());
        UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
        Page.init(page, 0);
        for (int i = 0; i < 2; i++) {
            Page.setLsn(page, insertChange(insert, page));
            assertTrue(insert.hasImage(0), "first after redo point " + i);
            Page.setLsn(page, insertChange(insert, page));
            assertFalse(insert.hasImage(0));
            finish(begin());
        }
    }

    private static long insertChange(RecordInsert insert, UnsafeBuffer page) {
        return insert.begin(RmgrIds.HEAP, TinyHeap.SET, 0)
                .page(0, 1663, 5, REL, ForkNumber.MAIN, 0, page, RecordInsert.STANDARD)
                .insert();
    }

    @Test
    void aHintsImageGoesToTheLogOnceAfterEachRedoPointAndNeverOfUnloggedRelations() {
        HintImages images =
                new HintImages(
                        primary.wal(),
                        primary.checkpointDelay(),
                        ImageCompression.OFF,
                        (spc, db, rel) -> rel == REL + 1);
        UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
        Page.init(page, 0);
        long before = primary.wal().insertLsn();
        assertEquals(0, images.logImage(1663, 5, REL + 1, ForkNumber.MAIN, 0, page, true));
        assertEquals(before, primary.wal().insertLsn());
        long end = images.logImage(1663, 5, REL, ForkNumber.MAIN, 0, page, true);
        assertEquals(end, primary.wal().insertLsn());
        assertTrue(end > images.redoPointer());
        primary.wal().fullPageWrites(false);
        assertEquals(0, images.logImage(1663, 5, REL, ForkNumber.MAIN, 0, page, true));
    }

    @Test
    @DisplayName(
            "R12: a removal that is asked for after the checkpoint began waits for the next one")
    void removalsBelongToTheCheckpointThatBeginsAfterThem() {
        SmgrRelation first = created(REL + 10);
        SmgrRelation second = created(REL + 11);
        drop(first);
        CheckpointRun run = begin();
        run.doWork();
        drop(second);
        finish(run);
        assertFalse(first.exists(ForkNumber.MAIN));
        assertTrue(second.exists(ForkNumber.MAIN), "its record lies behind the redo point");
        finish(begin());
        assertFalse(second.exists(ForkNumber.MAIN));
    }

    private SmgrRelation created(int rel) {
        SmgrRelation relation = recovery.pool().smgr().open(1663, 5, rel);
        relation.create(ForkNumber.MAIN, false);
        return relation;
    }

    private void drop(SmgrRelation relation) {
        SmgrRelation[] one = {relation};
        recovery.pool().dropRelations(one, 1);
        recovery.pool().smgr().unlinkAll(one, 1, false);
    }

    @Test
    void theShutdownCheckpointIsItsOwnRedoPoint() {
        logNoop();
        recovery.shutdown();
        assertEquals(cluster.control().checkPoint(), cluster.control().checkPointRedo());
        try (WalReader reader = cluster.wal.reader(cluster.control().checkPoint())) {
            WalRecord record = reader.next();
            assertEquals(XlogRedo.CHECKPOINT_SHUTDOWN, record.type());
            assertEquals(record.lsn(), CheckPointRecord.redo(record.data(), 0));
            assertNull(reader.next());
        }
    }
}
