package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.Crc32c;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/** The resource managers that live in this module, record by record. */
class ResourceManagersTest {
    private static final int REL = 16384;

    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();
    private final FakeCounters counters = new FakeCounters();
    private final XlogRedo xlog = new XlogRedo();
    private final DatabaseRedo database = new DatabaseRedo();
    private StorageManager smgr;
    private BufferPool pool;
    private RedoContext context;
    private TestWal wal;

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
        context = RedoContext.standalone(pool, counters);
        wal = new TestWal(disk, dir);
    }

    @AfterEach
    void close() {
        wal.close();
        pool.close();
        smgr.close();
    }

    private void redo(ResourceManager manager, long lsn) {
        try (WalReader reader = wal.reader(lsn)) {
            WalRecord record = reader.next();
            assertEquals(lsn, record.lsn());
            assertEquals(manager.id(), record.rmid());
            manager.redo(record, context);
            assertTrue(context.holdsNothing());
        }
    }

    @Test
    @DisplayName(
            "R04: an online checkpoint does not move the object id counter back, and its xid is a minimum")
    void anOnlineCheckpointMovesNothingBackwards() {
        redo(xlog, wal.add(RmgrIds.XLOG, XlogRedo.NEXTOID, 0, RecoveryTest.ints(24576)));
        assertEquals(24576, counters.nextOid);
        counters.nextFullXid = 900;
        counters.nextMulti = 50;
        redo(xlog, wal.checkpoint(XlogRedo.CHECKPOINT_ONLINE, TestWal.START, 700, 16384));
        assertEquals(24576, counters.nextOid);
        assertEquals(900, counters.nextFullXid);
        assertEquals(50, counters.nextMulti);
        redo(xlog, wal.checkpoint(XlogRedo.CHECKPOINT_ONLINE, TestWal.START, 1L << 32 | 5, 16384));
        assertEquals(1L << 32 | 5, counters.nextFullXid);
    }

    @Test
    void aShutdownCheckpointsCountersAreExact() {
        counters.nextFullXid = 900;
        counters.nextOid = 24576;
        redo(xlog, wal.checkpoint(XlogRedo.CHECKPOINT_SHUTDOWN, TestWal.START, 700, 16384));
        assertEquals(700, counters.nextFullXid);
        assertEquals(16384, counters.nextOid);
    }

    @Test
    void theObjectIdOfARecordIsBelievedThoughItIsSmaller() {
        counters.nextOid = -10;
        redo(xlog, wal.add(RmgrIds.XLOG, XlogRedo.NEXTOID, 0, RecoveryTest.ints(16384)));
        assertEquals(16384, counters.nextOid);
    }

    @Test
    @DisplayName("C26 4: no restart is possible from a checkpoint while a missing page is open")
    void aCheckpointWithOpenMissingPagesIsNoPlaceToRestart() {
        context.missingPageTable().remember(1663, 5, REL, ForkNumber.MAIN, 3, false, 1, false);
        redo(xlog, wal.checkpoint(XlogRedo.CHECKPOINT_ONLINE, TestWal.START, 700, 16384));
        assertNull(context.state().safeCheckpoint);
        context.forgetMissingPages(1663, 5, REL, ForkNumber.MAIN, 0);
        long lsn = wal.checkpoint(XlogRedo.CHECKPOINT_ONLINE, TestWal.START, 700, 16384);
        redo(xlog, lsn);
        assertEquals(lsn, context.state().safeCheckpointLsn);
    }

    @Test
    void fullPageWritesAndParametersAreFollowed() {
        redo(xlog, wal.add(RmgrIds.XLOG, XlogRedo.FPW_CHANGE, 0, new byte[] {1}));
        assertTrue(context.state().fullPageWrites);
        redo(xlog, wal.add(RmgrIds.XLOG, XlogRedo.FPW_CHANGE, 0, new byte[] {0}));
        assertFalse(context.state().fullPageWrites);
        byte[] parameters = Arrays.copyOf(RecoveryTest.ints(100, 8, 10, 0, 64, 1), 26);
        parameters[25] = 1;
        redo(xlog, wal.add(RmgrIds.XLOG, XlogRedo.PARAMETER_CHANGE, 0, parameters));
        assertEquals(true, counters.tracked);
    }

    @Test
    void recordsThatNeedNothingDoNothing() {
        for (int type :
                new int[] {
                    XlogRedo.NOOP,
                    XlogRedo.SWITCH,
                    XlogRedo.BACKUP_END,
                    XlogRedo.RESTORE_POINT,
                    XlogRedo.OVERWRITE_CONTRECORD
                }) {
            if (type != XlogRedo.SWITCH && type != XlogRedo.OVERWRITE_CONTRECORD) {
                redo(xlog, wal.add(RmgrIds.XLOG, type, 0, new byte[80]));
            }
            assertTrue(xlog.covers(type));
        }
        redo(new LogicalMessageRedo(), wal.add(RmgrIds.LOGICAL_MESSAGE, 0, 0, new byte[40]));
    }

    @Test
    void shortRecordsAreDamage() {
        for (int type :
                new int[] {
                    XlogRedo.CHECKPOINT_SHUTDOWN,
                    XlogRedo.CHECKPOINT_ONLINE,
                    XlogRedo.NEXTOID,
                    XlogRedo.PARAMETER_CHANGE,
                    XlogRedo.END_OF_RECOVERY
                }) {
            long lsn = wal.add(RmgrIds.XLOG, type, 0, new byte[3]);
            assertThrows(DamagedDataException.class, () -> redo(xlog, lsn), xlog.identify(type));
        }
        for (int type :
                new int[] {
                    DatabaseRedo.CREATE_FILE_COPY, DatabaseRedo.CREATE_WAL_LOG, DatabaseRedo.DROP
                }) {
            long lsn = wal.add(RmgrIds.DATABASE, type, 0, new byte[7]);
            assertThrows(
                    DamagedDataException.class, () -> redo(database, lsn), database.identify(type));
        }
        long drop =
                wal.add(RmgrIds.DATABASE, DatabaseRedo.DROP, 0, RecoveryTest.ints(5, 1000, 1663));
        assertThrows(DamagedDataException.class, () -> redo(database, drop));
        assertTrue(Files.exists(dir.resolve("base/5")));
    }

    @Test
    void anImageRecordWithoutImageIsDamageUnlessItIsAHint() {
        wal.builder
                .begin(RmgrIds.XLOG, XlogRedo.FPI_FOR_HINT, 0)
                .block(0, TestWal.SPC, TestWal.DB, REL, ForkNumber.MAIN, 0, 0);
        redo(xlog, wal.append());
        wal.builder
                .begin(RmgrIds.XLOG, XlogRedo.FPI, 0)
                .block(0, TestWal.SPC, TestWal.DB, REL, ForkNumber.MAIN, 0, 0);
        long lsn = wal.append();
        assertThrows(DamagedDataException.class, () -> redo(xlog, lsn));
        assertEquals(0, context.missingPages());
    }

    @Test
    void typesAreNamedAsPgWaldumpNamesThem() {
        assertEquals("CHECKPOINT_SHUTDOWN", xlog.identify(0x00));
        assertEquals("FPI_FOR_HINT", xlog.identify(0xA1));
        assertEquals("OVERWRITE_CONTRECORD", xlog.identify(0xD0));
        assertNull(xlog.identify(0xC0));
        assertFalse(xlog.covers(0xE0));
        assertEquals("CREATE_FILE_COPY", database.identify(0));
        assertNull(database.identify(0x30));
        assertEquals("custom128", RmgrIds.name(128));
        assertEquals("UNKNOWN (22)", RmgrIds.name(22));
        assertFalse(new ReplicationOriginRedo().covers(ReplicationOriginRedo.SET));
    }

    @Test
    void aDatabaseIsCopiedWithWhatReplayChangedInThePool() throws IOException {
        SmgrRelation relation = smgr.open(TestWal.SPC, 5, REL);
        relation.create(ForkNumber.MAIN, true);
        int buffer = pool.extend(relation, ForkNumber.MAIN, true);
        UnsafeBuffer page = new UnsafeBuffer(0, 0);
        pool.wrap(buffer, page);
        Page.init(page, 0);
        page.putInt(TinyHeap.COUNT, 42);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
        // A first try of the same record, before a crash, left other things behind.
        Files.createDirectories(dir.resolve("base/6/sub"));
        Files.writeString(dir.resolve("base/6/99999"), "old");
        Files.createDirectories(dir.resolve("base/5/directory"));
        redo(
                database,
                wal.add(
                        RmgrIds.DATABASE,
                        DatabaseRedo.CREATE_FILE_COPY,
                        0,
                        RecoveryTest.ints(6, 1663, 5, 1663)));
        assertEquals(
                42,
                new UnsafeBuffer(Files.readAllBytes(dir.resolve("base/6/" + REL)))
                        .getInt(TinyHeap.COUNT));
        assertFalse(Files.exists(dir.resolve("base/6/99999")));
        assertFalse(Files.exists(dir.resolve("base/6/directory")));
    }

    @Test
    void aDatabaseMadeEmptyHasItsVersionFileAlsoTheSecondTime() throws IOException {
        for (int i = 0; i < 2; i++) {
            redo(
                    database,
                    wal.add(
                            RmgrIds.DATABASE,
                            DatabaseRedo.CREATE_WAL_LOG,
                            0,
                            RecoveryTest.ints(7, 1663)));
            assertEquals("15\n", Files.readString(dir.resolve("base/7/PG_VERSION")));
        }
    }

    @Test
    void aSourceThatALaterRecordDroppedIsReplacedByAnEmptyOneBeforeConsistencyOnly() {
        long lsn =
                wal.add(
                        RmgrIds.DATABASE,
                        DatabaseRedo.CREATE_FILE_COPY,
                        0,
                        RecoveryTest.ints(6, 1663, 8, 1663));
        redo(database, lsn);
        assertTrue(Files.isDirectory(dir.resolve("base/6")));
        context.state().consistent = true;
        long again =
                wal.add(
                        RmgrIds.DATABASE,
                        DatabaseRedo.CREATE_FILE_COPY,
                        0,
                        RecoveryTest.ints(6, 1663, 9, 1663));
        assertThrows(DamagedDataException.class, () -> redo(database, again));
    }

    @Test
    void aDroppedDatabaseIsGoneFromPoolAndDisk() {
        SmgrRelation relation = smgr.open(TestWal.SPC, 5, REL);
        relation.create(ForkNumber.MAIN, true);
        pool.release(pool.extend(relation, ForkNumber.MAIN, false));
        context.missingPageTable().remember(1663, 5, REL, ForkNumber.MAIN, 3, false, 1, false);
        redo(
                database,
                wal.add(RmgrIds.DATABASE, DatabaseRedo.DROP, 0, RecoveryTest.ints(5, 1, 1663)));
        assertFalse(Files.exists(dir.resolve("base/5")));
        assertEquals(0, context.missingPages());
        assertEquals(0, smgr.syncRequests().pending());
        assertEquals(0, pool.flushAll());
    }

    @Test
    @DisplayName("C30: the minimum recovery point covers the record before a database's files go")
    void theMinimumRecoveryPointIsMovedBeforeADatabaseGoes() {
        List<Long> flushed = new ArrayList<>();
        context =
                RedoContext.standalone(
                        pool,
                        counters,
                        lsn -> {
                            assertTrue(Files.exists(dir.resolve("base/5")));
                            flushed.add(lsn);
                        });
        wal.add(RmgrIds.DATABASE, DatabaseRedo.DROP, 0, RecoveryTest.ints(5, 1, 1663));
        redo(database, wal.writer.lastRecord());
        assertFalse(Files.exists(dir.resolve("base/5")));
        assertEquals(List.of(wal.writer.nextRecordLsn()), flushed);
    }

    @Test
    void theRelationMapIsWrittenWholeWithItsChecksum() throws IOException {
        byte[] map = new byte[512];
        UnsafeBuffer view = new UnsafeBuffer(map);
        view.putInt(0, 0x592717);
        view.putInt(4, 1);
        view.putInt(8, 1259);
        view.putInt(12, 16400);
        view.putInt(504, Crc32c.of(view, 0, 504));
        ByteBuffer record =
                ByteBuffer.allocate(12 + 512).put(RecoveryTest.ints(5, 1663, 512)).put(map);
        redo(new RelMapRedo(), wal.add(RmgrIds.RELMAP, RelMapRedo.UPDATE, 0, record.array()));
        assertArrayEquals(map, Files.readAllBytes(dir.resolve("base/5/pg_filenode.map")));
    }

    @Test
    void aRelationMapOfAnotherSizeOrCountIsDamage() {
        ByteBuffer record = ByteBuffer.allocate(12 + 512).put(RecoveryTest.ints(5, 1663, 500));
        long wrongSize = wal.add(RmgrIds.RELMAP, RelMapRedo.UPDATE, 0, record.array());
        assertThrows(DamagedDataException.class, () -> redo(new RelMapRedo(), wrongSize));
        ByteBuffer many =
                ByteBuffer.allocate(12 + 512).put(RecoveryTest.ints(5, 1663, 512, 0x592717, 63));
        long tooMany = wal.add(RmgrIds.RELMAP, RelMapRedo.UPDATE, 0, many.array());
        assertThrows(DamagedDataException.class, () -> redo(new RelMapRedo(), tooMany));
        assertFalse(Files.exists(dir.resolve("base/5/pg_filenode.map")));
    }
}
