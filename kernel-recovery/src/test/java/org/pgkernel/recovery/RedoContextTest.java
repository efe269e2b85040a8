package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

class RedoContextTest {
    private static final int REL = 16384;

    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();
    private StorageManager smgr;
    private BufferPool pool;
    private RedoContext context;
    private TestWal wal;
    private WalReader reader;

    @BeforeEach
    void open() throws IOException {
        Files.createDirectories(dir.resolve("base/5"));
        smgr =
                new StorageManager(
                        disk,
                        dir.toString(),
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.RECOVERY_ONLY,
                        new SyncRequests(disk, dir.toString()));
        smgr.inRecovery(true);
        pool = BufferPool.open(64, smgr, lsn -> {}, false, DropStrategy.LOOKUP);
        context = RedoContext.standalone(pool, new FakeCounters());
        wal = new TestWal(disk, dir);
    }

    @AfterEach
    void close() {
        if (reader != null) {
            reader.close();
        }
        wal.close();
        pool.close();
        smgr.close();
    }

    private WalRecord record(long lsn) {
        if (reader != null) {
            reader.close();
        }
        reader = wal.reader(lsn);
        WalRecord record = reader.next();
        assertEquals(lsn, record.lsn());
        return record;
    }

    /** A formatted page with an LSN and a mark, at the end of the fork. */
    private void writePage(int rel, ForkNumber fork, long lsn, int mark) {
        SmgrRelation relation = smgr.open(TestWal.SPC, TestWal.DB, rel);
        relation.create(fork, true);
        UnsafeBuffer page = new UnsafeBuffer(ByteBuffer.allocateDirect(Page.SIZE));
        Page.init(page, 0);
        Page.setLsn(page, lsn);
        page.putInt(TinyHeap.COUNT, mark);
        relation.extend(fork, relation.nblocks(fork), page.addressOffset(), false);
    }

    private static UnsafeBuffer image(int mark) {
        UnsafeBuffer page = new UnsafeBuffer(ByteBuffer.allocateDirect(Page.SIZE));
        Page.init(page, 0);
        page.putInt(TinyHeap.COUNT, mark);
        return page;
    }

    @Test
    @DisplayName("C27: an image is restored whatever the page's LSN is")
    void anImageIsRestoredOverANewerPage() {
        writePage(REL, ForkNumber.MAIN, 0x7FFFFFFFFFL, 1);
        WalRecord record = record(wal.image(XlogRedo.FPI, REL, ForkNumber.MAIN, 0, image(2)));
        RedoBuffer buffer = context.buffer(0);
        assertEquals(RedoAction.RESTORED, context.read(record, 0, buffer));
        assertEquals(2, buffer.page().getInt(TinyHeap.COUNT));
        assertEquals(record.endLsn(), Page.lsn(buffer.page()));
        assertEquals(0, buffer.block());
        buffer.release();
        assertFalse(buffer.isValid());
    }

    @Test
    @DisplayName(
            "C27: a change is done already if the page's LSN is at the record's end or past it, and only then")
    void theInterlockComparesWithTheRecordsEnd() {
        WalRecord record = record(wal.heap(TinyHeap.SET, REL, 0, 1, 2));
        writePage(REL, ForkNumber.MAIN, record.endLsn() - 1, 0);
        writePage(REL, ForkNumber.MAIN, record.endLsn(), 0);
        writePage(REL, ForkNumber.MAIN, record.endLsn() + 1, 0);
        assertEquals(RedoAction.NEEDS_REDO, context.read(record, 0, context.buffer(0)));
        assertEquals(RedoAction.DONE, context.read(record, 1, context.buffer(1)));
        assertEquals(RedoAction.DONE, context.read(record, 2, context.buffer(2)));
        assertTrue(context.buffer(1).isValid());
        for (int i = 0; i < 3; i++) {
            context.buffer(i).release();
        }
    }

    @Test
    @DisplayName("C31 3: an image of an unformatted page stays all zeros, without LSN")
    void anImageOfANewPageGetsNoLsn() {
        writePage(REL, ForkNumber.MAIN, 5, 1);
        WalRecord record =
                record(
                        wal.image(
                                XlogRedo.FPI,
                                REL,
                                ForkNumber.MAIN,
                                0,
                                new UnsafeBuffer(ByteBuffer.allocateDirect(Page.SIZE))));
        assertEquals(RedoAction.RESTORED, context.read(record, 0, context.buffer(0)));
        for (int i = 0; i < Page.SIZE; i += 4) {
            assertEquals(0, context.buffer(0).page().getInt(i));
        }
        context.buffer(0).release();
    }

    @Test
    void redoAndRecordMustAgreeOnWhoFormatsThePage() {
        WalRecord init = record(wal.heap(TinyHeap.INIT, REL, 0));
        assertThrows(DamagedDataException.class, () -> context.read(init, 0, context.buffer(0)));
        WalRecord set = record(wal.heap(TinyHeap.SET, REL, 0));
        String message =
                assertThrows(
                                DamagedDataException.class,
                                () -> context.init(set, 0, context.buffer(0)))
                        .getMessage();
        assertTrue(
                message.contains("WILL_INIT")
                        && message.contains("rel=1663/5/16384 fork=MAIN block=0 lsn="),
                message);
        assertThrows(DamagedDataException.class, () -> context.read(set, 3, context.buffer(0)));
        assertTrue(context.holdsNothing());
    }

    @Test
    @DisplayName(
            "C26 1: a change to a block past the end, or of a relation without file, is remembered as missing")
    void aBlockThatIsNotThereIsRemembered() {
        writePage(REL, ForkNumber.MAIN, 5, 1);
        WalRecord record = record(wal.heap(TinyHeap.SET, REL, 0, 5));
        assertEquals(RedoAction.NOT_FOUND, context.read(record, 1, context.buffer(1)));
        assertFalse(context.buffer(1).isValid());
        WalRecord other = record(wal.heap(TinyHeap.SET, REL + 1, 2));
        assertEquals(RedoAction.NOT_FOUND, context.read(other, 0, context.buffer(0)));
        assertEquals(2, context.missingPages());
        // The file is there now, empty: the relation's drop is further on in the WAL.
        assertTrue(Files.exists(dir.resolve("base/5/" + (REL + 1))));
        context.dropRelations(
                new int[] {TestWal.SPC, TestWal.DB, REL, TestWal.SPC, TestWal.DB, REL + 1}, 2);
        assertEquals(0, context.missingPages());
        assertFalse(Files.exists(dir.resolve("base/5/" + (REL + 1))));
        context.checkMissingPages();
    }

    @Test
    void anAllZeroPageIsMissingTooAndHeldByNobody() {
        SmgrRelation relation = smgr.open(TestWal.SPC, TestWal.DB, REL);
        relation.create(ForkNumber.MAIN, true);
        relation.zeroExtend(ForkNumber.MAIN, 0, 1, false);
        WalRecord record = record(wal.heap(TinyHeap.SET, REL, 0));
        assertEquals(RedoAction.NOT_FOUND, context.read(record, 0, context.buffer(0)));
        String message =
                assertThrows(DamagedDataException.class, context::checkMissingPages).getMessage();
        assertTrue(message.contains("is uninitialized"), message);
        // No pin is left: the page can be dropped.
        pool.dropRelations(new SmgrRelation[] {relation}, 1);
    }

    @Test
    @DisplayName("C26 2: after consistency a missing page is an error at once")
    void afterConsistencyAMissingPageIsAnError() {
        context.state().consistent = true;
        WalRecord record = record(wal.heap(TinyHeap.SET, REL, 5));
        String message =
                assertThrows(
                                DamagedDataException.class,
                                () -> context.read(record, 0, context.buffer(0)))
                        .getMessage();
        assertTrue(message.contains("block=5"), message);
    }

    @Test
    void formattingAPageExtendsTheForkUpToIt() {
        WalRecord record = record(wal.heap(TinyHeap.INIT, REL, 3));
        context.init(record, 0, context.buffer(0));
        assertEquals(3, context.buffer(0).block());
        assertEquals(0, context.buffer(0).page().getShort(Page.PD_UPPER));
        context.buffer(0).release();
        assertEquals(4, smgr.open(TestWal.SPC, TestWal.DB, REL).nblocks(ForkNumber.MAIN));
        assertEquals(4 * 8192, dir.resolve("base/5/" + REL).toFile().length());
    }

    @Test
    @DisplayName("C27: formatting does not zero a page that the pool holds already")
    void formattingLeavesAValidPooledPageAsItIs() {
        writePage(REL, ForkNumber.MAIN, 5, 77);
        SmgrRelation relation = smgr.open(TestWal.SPC, TestWal.DB, REL);
        pool.release(pool.read(relation, ForkNumber.MAIN, 0, ReadMode.NORMAL));
        WalRecord record = record(wal.heap(TinyHeap.INIT, REL, 0));
        context.init(record, 0, context.buffer(0));
        assertEquals(77, context.buffer(0).page().getInt(TinyHeap.COUNT));
        context.buffer(0).release();
    }

    @Test
    void withoutLoggingAMissingPageIsJustNotThere() {
        assertEquals(
                -1,
                context.readExtended(
                        TestWal.SPC, TestWal.DB, REL, ForkNumber.FSM, 4, ReadMode.NORMAL_NO_LOG));
        assertEquals(0, context.missingPages());
    }

    /** Only NORMAL takes a page of zeros for a missing one. */
    @Test
    void withoutLoggingAPageOfZerosIsAPage() {
        SmgrRelation relation = smgr.open(TestWal.SPC, TestWal.DB, REL);
        relation.create(ForkNumber.FSM, true);
        relation.zeroExtend(ForkNumber.FSM, 0, 3, true);
        int buffer =
                context.readExtended(
                        TestWal.SPC, TestWal.DB, REL, ForkNumber.FSM, 2, ReadMode.NORMAL_NO_LOG);
        assertEquals(2, pool.block(buffer));
        pool.release(buffer);
        assertEquals(
                -1,
                context.readExtended(
                        TestWal.SPC, TestWal.DB, REL, ForkNumber.FSM, 3, ReadMode.NORMAL_NO_LOG));
        assertEquals(3, relation.nblocks(ForkNumber.FSM), "asking extended the fork");
        assertEquals(0, context.missingPages());
        assertEquals(
                -1,
                context.readExtended(
                        TestWal.SPC, TestWal.DB, REL, ForkNumber.FSM, 2, ReadMode.NORMAL));
        assertEquals(1, context.missingPages());
    }

    @Test
    void zeroOnErrorMakesThePageAndLeavesItUnlocked() {
        int buffer =
                context.readExtended(
                        TestWal.SPC,
                        TestWal.DB,
                        REL,
                        ForkNumber.VISIBILITY_MAP,
                        1,
                        ReadMode.ZERO_ON_ERROR);
        assertEquals(1, pool.block(buffer));
        pool.lockExclusive(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
        assertEquals(2, smgr.open(TestWal.SPC, TestWal.DB, REL).nblocks(ForkNumber.VISIBILITY_MAP));
    }

    @Test
    void anInvalidBlockNumberExtendsNothing() {
        assertThrows(
                DamagedDataException.class,
                () ->
                        context.readExtended(
                                TestWal.SPC,
                                TestWal.DB,
                                REL,
                                ForkNumber.MAIN,
                                -1,
                                ReadMode.ZERO_AND_LOCK));
        assertFalse(Files.exists(dir.resolve("base/5/" + REL)));
    }

    @Test
    void anImageOfAnInitForkIsInTheFileAtOnce() throws IOException {
        WalRecord record = record(wal.image(XlogRedo.FPI, REL, ForkNumber.INIT, 0, image(9)));
        assertEquals(RedoAction.RESTORED, context.read(record, 0, context.buffer(0)));
        byte[] file = Files.readAllBytes(dir.resolve("base/5/" + REL + "_init"));
        assertEquals(9, new UnsafeBuffer(file).getInt(TinyHeap.COUNT));
        assertEquals(record.endLsn(), Page.lsn(new UnsafeBuffer(file)));
        context.buffer(0).release();
    }

    @Test
    void aPageGivenUpHalfChangedGoesBackToWhatTheFileHolds() throws IOException {
        writePage(REL, ForkNumber.MAIN, 5, 1);
        WalRecord record = record(wal.heap(TinyHeap.SET, REL, 0));
        assertEquals(RedoAction.NEEDS_REDO, context.read(record, 0, context.buffer(0)));
        context.buffer(0).markDirty();
        context.buffer(0).page().putInt(TinyHeap.COUNT, 99);
        context.abandonHeldBuffers();
        assertTrue(context.holdsNothing());
        pool.flushAll();
        assertEquals(
                1,
                new UnsafeBuffer(Files.readAllBytes(dir.resolve("base/5/" + REL)))
                        .getInt(TinyHeap.COUNT));
    }
}
