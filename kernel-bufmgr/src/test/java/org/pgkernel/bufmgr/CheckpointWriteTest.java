package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/** A checkpoint's write-out, driven step by step, with a clock that a test moves. */
@Timeout(60)
class CheckpointWriteTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    @TempDir Path directory;

    PoolFixture f;

    /** Now, and where WAL is written. */
    final AtomicLong now = new AtomicLong(1000 * SECOND);

    final AtomicLong wal = new AtomicLong(0x5000000);

    /** Files and blocks as they are written. */
    final List<String> written = new ArrayList<>();

    @BeforeEach
    void open() {
        f = new PoolFixture(directory, false).pool(256, true, DropStrategy.ADAPTIVE);
    }

    @AfterEach
    void close() {
        f.close();
    }

    private SmgrRelation dirty(int spc, int rel, int blocks) throws Exception {
        Files.createDirectories(directory.resolve("pg_tblspc/" + spc + "/PG_15_202209061/5"));
        SmgrRelation relation = f.smgr.open(spc, PoolFixture.DB, rel);
        relation.create(ForkNumber.MAIN, false);
        for (int i = 0; i < blocks; i++) {
            int buffer = f.pool.extend(relation, ForkNumber.MAIN, true);
            f.stamp(buffer, rel, i, 1);
            f.pool.markDirty(buffer);
            f.pool.unlock(buffer);
            f.pool.release(buffer);
        }
        f.disk.beforeWrite =
                (path, offset) ->
                        written.add(path.replaceAll(".*/", "") + " " + offset / Page.SIZE);
        written.clear();
        return relation;
    }

    private CheckpointWrite begin(CheckpointSchedule schedule) {
        return f.pool.beginCheckpoint(
                schedule, now::get, CheckpointWrite.DEFAULT_FLUSH_AFTER_PAGES);
    }

    private SpreadSchedule spread(long timeoutNanos, long walBytes) {
        return new SpreadSchedule(now::get, timeoutNanos, 0.5, wal::get, walBytes);
    }

    /** Steps until the write-out rests or is done. */
    private static int stepsUntilRest(CheckpointWrite write) {
        int steps = 0;
        while (write.doWork() != 0) {
            steps++;
        }
        return steps;
    }

    @Test
    void eachStepWritesOnePageAndAnImmediateCheckpointDoesNotRest() throws Exception {
        dirty(PoolFixture.SPC, 1, 10);
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        assertEquals(1, write.doWork(), "finds the dirty buffers");
        assertEquals(0, written.size());
        for (int i = 1; i <= 10; i++) {
            assertFalse(write.isDone());
            assertEquals(1, write.doWork());
            assertEquals(i, written.size());
        }
        assertTrue(write.isDone());
        assertEquals(0, write.doWork());
        assertEquals(10, write.written());
    }

    @Test
    void timeSpreadsThePagesEvenlyOverItsTarget() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        // 100 pages in half of 10 s: 20 a second, 2 while it rests.
        CheckpointWrite write = begin(spread(10 * SECOND, Long.MAX_VALUE));
        long start = now.get();
        stepsUntilRest(write);
        while (!write.isDone()) {
            double due = (double) (now.get() - start) / SECOND * 20;
            assertTrue(written.size() >= due - 3, written.size() + " pages, due " + due);
            assertTrue(written.size() <= due + 1, written.size() + " pages, due " + due);
            now.addAndGet(SECOND / 50);
            stepsUntilRest(write);
        }
        assertEquals(100, written.size());
        double seconds = (double) (now.get() - start) / SECOND;
        assertTrue(seconds >= 4.8 && seconds <= 5, "done after " + seconds + " s");
    }

    @Test
    void evenFarAheadItWritesAPageAfterEachRest() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        CheckpointWrite write = begin(spread(200_000 * SECOND, Long.MAX_VALUE));
        stepsUntilRest(write);
        for (int i = 1; i < 100; i++) {
            assertEquals(i, written.size());
            assertEquals(0, write.doWork());
            now.addAndGet(CheckpointWrite.NAP_NANOS);
            assertEquals(1, stepsUntilRest(write));
        }
        assertTrue(write.isDone());
    }

    @Test
    void aRestIsNotCutShortByWal() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        CheckpointWrite write = begin(spread(200 * SECOND, 1000));
        stepsUntilRest(write);
        int before = written.size();
        wal.addAndGet(400); // 80 pages are due by WAL
        now.addAndGet(CheckpointWrite.NAP_NANOS - 1);
        assertEquals(0, write.doWork());
        assertEquals(before, written.size());
        now.addAndGet(1);
        stepsUntilRest(write);
        assertEquals(80, written.size());
    }

    @Test
    void muchWalMakesItFasterThanTimeAsks() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        CheckpointWrite write = begin(spread(200_000 * SECOND, 1000));
        stepsUntilRest(write);
        for (int percent = 5; percent <= 45; percent += 5) {
            wal.addAndGet(50);
            now.addAndGet(CheckpointWrite.NAP_NANOS);
            stepsUntilRest(write);
            assertEquals(2 * percent, written.size(), percent + " % of the WAL");
        }
    }

    @Test
    void aHurriedCheckpointRestsNoMore() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        CheckpointWrite write = begin(spread(200 * SECOND, Long.MAX_VALUE));
        stepsUntilRest(write);
        assertFalse(write.isDone());
        write.hurry();
        stepsUntilRest(write);
        assertTrue(write.isDone());
        assertEquals(100, written.size());
    }

    @Test
    void tablespacesWithDifferentSharesEndTogether() throws Exception {
        dirty(PoolFixture.SPC, 1, 100);
        dirty(20_000, 2, 10);
        dirty(30_000, 3, 50);
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        write.doWork();
        int[] done = new int[4];
        int[] all = {0, 100, 10, 50};
        for (int n = 1; n <= 160; n++) {
            write.doWork();
            String last = written.getLast();
            int rel = Integer.parseInt(last.substring(0, 1));
            assertEquals(done[rel], Integer.parseInt(last.substring(2)), "in the file's order");
            done[rel]++;
            for (int r = 1; r <= 3; r++) {
                double expected = n / 160.0 * all[r];
                assertTrue(
                        Math.abs(done[r] - expected) <= 1.5,
                        "relation " + r + " has " + done[r] + " of " + all[r] + " after " + n);
            }
        }
        assertTrue(write.isDone());
    }

    @Test
    void whatOthersHaveWrittenCountsAsDoneAndIsNotWrittenAgain() throws Exception {
        SmgrRelation one = dirty(PoolFixture.SPC, 1, 20);
        dirty(PoolFixture.SPC, 2, 20);
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        write.doWork();
        f.pool.flushRelation(one);
        assertEquals(20, written.size());
        stepsUntilRest(write);
        assertEquals(40, written.size());
        assertEquals(20, write.written());
        assertEquals(40, write.processed());
    }

    @Test
    void whatBecomesDirtyLaterIsTheNextCheckpoints() throws Exception {
        SmgrRelation one = dirty(PoolFixture.SPC, 1, 3);
        dirty(PoolFixture.SPC, 2, 3);
        f.pool.flushRelation(one);
        written.clear();
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        write.doWork();
        f.change(one, ForkNumber.MAIN, 1, 7);
        stepsUntilRest(write);
        assertEquals(List.of("2 0", "2 1", "2 2"), written);
        assertEquals(1, f.pool.flushAll());
        assertEquals(7, f.versionOnDisk(one, ForkNumber.MAIN, 1));
    }

    @Test
    void aDropDuringTheWriteOutTakesItsPagesOutOfIt() throws Exception {
        SmgrRelation one = dirty(PoolFixture.SPC, 1, 20);
        dirty(PoolFixture.SPC, 2, 20);
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        for (int i = 0; i < 6; i++) {
            write.doWork();
        }
        assertEquals(5, written.size());
        f.pool.dropRelations(new SmgrRelation[] {one}, 1);
        f.smgr.unlinkAll(new SmgrRelation[] {one}, 1, true);
        stepsUntilRest(write);
        assertEquals(25, written.size());
        assertEquals(1, f.syncs.process(), "the dropped relation's sync was forgotten");
    }

    @Test
    void afterAFailureTheWriteOutIsOfNoUseAndAnotherWritesTheRest() throws Exception {
        dirty(PoolFixture.SPC, 1, 20);
        int[] left = {5};
        f.disk.beforeWrite =
                (path, offset) -> {
                    if (left[0]-- == 0) {
                        throw new DiskException("planted file=" + path, DiskException.EIO);
                    }
                };
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        DiskException e = assertThrows(DiskException.class, () -> stepsUntilRest(write));
        assertTrue(e.getMessage().contains("block=5"), e.getMessage());
        assertFalse(write.isDone());
        assertThrows(IllegalStateException.class, write::doWork);
        assertEquals(15, f.pool.flushAll());
        assertEquals(0, f.pool.flushAll());
        assertEquals(0, f.pool.pinnedBuffers());
    }

    @Test
    void neighboursAreHintedAtTogetherAndInOrder() throws Exception {
        dirty(PoolFixture.SPC, 1, 70);
        dirty(20_000, 2, 70);
        List<String> hints = new ArrayList<>();
        f.disk.onWriteback =
                (path, offset, length) ->
                        hints.add(
                                path.replaceAll(".*/", "")
                                        + " "
                                        + offset / Page.SIZE
                                        + "+"
                                        + length / Page.SIZE);
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        stepsUntilRest(write);
        assertEquals(
                List.of(
                        "1 0+16", "2 0+16", "1 16+16", "2 16+16", "1 32+16", "2 32+16", "1 48+16",
                        "2 48+16", "1 64+6", "2 64+6"),
                hints);
    }

    @Test
    void hintsSortMergeAndKeepForksAndRelationsApart() throws Exception {
        List<String> hints = new ArrayList<>();
        f.disk.onWriteback =
                (path, offset, length) ->
                        hints.add(
                                path.replaceAll(".*/", "")
                                        + " "
                                        + offset / Page.SIZE
                                        + "+"
                                        + length / Page.SIZE);
        SmgrRelation one = f.create(1, ForkNumber.MAIN, 12);
        f.create(1, ForkNumber.FSM, 12);
        f.create(2, ForkNumber.MAIN, 12);
        WriteBackHints h = new WriteBackHints(f.smgr, 9);
        int spc = one.spcOid();
        int db = one.dbOid();
        int[][] pages = {{2, 0, 1}, {1, 0, 7}, {1, 0, 5}, {1, 1, 6}, {1, 0, 6}, {1, 0, 9}};
        for (int[] p : pages) {
            h.add(spc, db, p[0], p[1], p[2]);
        }
        h.add(spc, db, 1, 0, 6);
        h.add(spc, db, 2, 0, 2);
        assertEquals(List.of(), hints, "below the limit");
        h.add(spc, db, 2, 0, 0);
        assertEquals(List.of("1 5+3", "1 9+1", "1_fsm 6+1", "2 0+3"), hints);
        h.issue();
        assertEquals(4, hints.size(), "nothing is told twice");
        new WriteBackHints(f.smgr, 0).add(spc, db, 1, 0, 1);
        assertEquals(4, hints.size(), "no hints at 0");
    }

    @Test
    void aHintForARelationThatIsGoneIsPassedOver() {
        WriteBackHints h = new WriteBackHints(f.smgr, 2);
        h.add(PoolFixture.SPC, PoolFixture.DB, 77, 0, 1);
        h.issue();
        assertFalse(f.smgr.open(PoolFixture.SPC, PoolFixture.DB, 77).exists(ForkNumber.MAIN));
    }

    @Test
    @DisplayName("C01: a page whose file is gone fails the write-out by name; nothing is skipped")
    void aLeftoverFailsTheWriteOut() throws Exception {
        SmgrRelation one = dirty(PoolFixture.SPC, 16_390, 3);
        f.smgr.close(one);
        Files.delete(f.file(one, ForkNumber.MAIN));
        for (int i = 0; i < 2; i++) {
            CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
            DiskException e = assertThrows(DiskException.class, () -> stepsUntilRest(write));
            assertTrue(e.getMessage().contains("1663/5/16390"), e.getMessage());
            assertTrue(e.getMessage().contains("fork=main"), e.getMessage());
            assertTrue(e.getMessage().contains("block=0"), e.getMessage());
            assertFalse(write.isDone());
        }
        assertFalse(Files.exists(f.file(one, ForkNumber.MAIN)));
    }

    @Test
    void nothingDirtyIsDoneAtOnce() {
        CheckpointWrite write = begin(CheckpointSchedule.IMMEDIATE);
        write.doWork();
        assertTrue(write.isDone());
    }

    @Test
    void walBetweenCheckpointsFollowsTheSizeLimit() {
        // PostgreSQL's defaults: 1 GB, 16 MB segments, target 0.9: 33 segments.
        assertEquals(33L << 24, SpreadSchedule.walBytes(1L << 30, 1 << 24, 0.9));
        assertEquals(1L << 24, SpreadSchedule.walBytes(1, 1 << 24, 0.9));
        assertThrows(
                RefusedException.class,
                () -> new SpreadSchedule(now::get, SECOND, 1.5, wal::get, 1));
    }
}
