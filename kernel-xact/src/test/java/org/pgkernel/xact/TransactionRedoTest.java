package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/** Commit and abort records from real WAL, applied over real files. */
class TransactionRedoTest {
    private static final int SEGMENT = 1 << 20;
    private static final long START = SEGMENT + 40;
    private static final int XID = 700;
    private static final int REL = 16384;

    @TempDir Path dir;

    private final PosixDisk disk = new PosixDisk();
    private final List<Long> flushed = new ArrayList<>();
    private XactModule module;
    private TransactionResourceManager manager;
    private StorageManager smgr;
    private BufferPool pool;
    private RedoContext context;

    @BeforeEach
    void open() throws IOException {
        for (String name : List.of("base/5", "pg_wal", "pg_xact")) {
            Files.createDirectories(dir.resolve(name));
        }
        String path = dir.toString();
        smgr =
                new StorageManager(
                        disk,
                        path,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.RECOVERY_ONLY,
                        new SyncRequests(disk, path));
        smgr.inRecovery(true);
        pool = BufferPool.open(16, smgr, lsn -> {}, false, DropStrategy.LOOKUP);
        module = new XactModule(disk, path);
        manager = (TransactionResourceManager) module.resourceManagers().get(0);
        context = RedoContext.standalone(pool, module.counters(), this::flushTo);
    }

    @AfterEach
    void close() {
        pool.close();
        smgr.close();
    }

    private void flushTo(long lsn) {
        assertTrue(Files.exists(file()), "a file went before the minimum recovery point moved");
        flushed.add(lsn);
    }

    private Path file() {
        return dir.resolve("base/5/" + REL);
    }

    private static byte[] bytes(long time, int... rest) {
        ByteBuffer out = ByteBuffer.allocate(8 + 4 * rest.length).order(ByteOrder.LITTLE_ENDIAN);
        out.putLong(time);
        Arrays.stream(rest).forEach(out::putInt);
        return out.array();
    }

    /** Logs one record and hands back the reader that stands before it. */
    private WalReader log(int info, int origin, byte[] data) {
        WalRecordBuilder builder = new WalRecordBuilder();
        builder.begin(RmgrIds.TRANSACTION, info, XID)
                .origin(origin)
                .data(new UnsafeBuffer(data), 0, data.length);
        try (WalWriter writer = new WalWriter(disk, dir + "/pg_wal", 1, SEGMENT, 1, START, 0, 0)) {
            writer.append(builder);
            writer.flush();
        }
        WalReader reader = new WalReader(disk, dir + "/pg_wal", TimelineHistory.of(1), SEGMENT, 1);
        reader.begin(START);
        return reader;
    }

    @ParameterizedTest
    @ValueSource(ints = {TransactionResourceManager.COMMIT, TransactionResourceManager.ABORT})
    @DisplayName("C30: the minimum recovery point covers commit and abort before their files go")
    void theMinimumRecoveryPointIsMovedBeforeFilesGo(int type) {
        SmgrRelation relation = smgr.open(1663, 5, REL);
        relation.create(ForkNumber.MAIN, true);
        pool.release(pool.extend(relation, ForkNumber.MAIN, false));
        byte[] data = bytes(1, XactRecord.HAS_RELFILENODES, 1, 1663, 5, REL);
        try (WalReader reader = log(type | XactRecord.HAS_INFO, 0, data)) {
            WalRecord record = reader.next();
            manager.redo(record, context);
            assertEquals(List.of(record.endLsn()), flushed);
        }
        assertFalse(Files.exists(file()));
        assertEquals(0, pool.flushAll());
        assertEquals(
                type == TransactionResourceManager.COMMIT ? CommitLog.COMMITTED : CommitLog.ABORTED,
                module.commitLog().status(XID));
    }

    @Test
    void aTransactionThatDropsNothingMovesNoMinimumRecoveryPoint() {
        try (WalReader reader = log(TransactionResourceManager.COMMIT, 0, bytes(1))) {
            manager.redo(reader.next(), context);
        }
        assertEquals(List.of(), flushed);
        assertEquals(CommitLog.COMMITTED, module.commitLog().status(XID));
        assertEquals(XID + 1, module.counters().nextFullXid());
    }

    @Test
    void aCountThatIsNotThereIsDamageAndNothingChanges() {
        byte[] data = bytes(1, XactRecord.HAS_RELFILENODES, Integer.MAX_VALUE, 1663, 5, REL);
        try (WalReader reader = log(XactRecord.HAS_INFO, 0, data)) {
            WalRecord record = reader.next();
            String message =
                    assertThrows(DamagedDataException.class, () -> manager.redo(record, context))
                            .getMessage();
            assertTrue(message.startsWith("a Transaction/COMMIT record is damaged"), message);
        }
        assertEquals(CommitLog.IN_PROGRESS, module.commitLog().status(XID));
    }

    @Test
    void aCommitThatMovesAReplicationOriginIsNotCovered() {
        byte[] data = bytes(1, XactRecord.HAS_ORIGIN, 0x1000, 0, 99, 0);
        try (WalReader reader = log(XactRecord.HAS_INFO, 3, data)) {
            assertFalse(manager.covers(reader.next()));
        }
        // Only marked as not to be sent back: there is no origin whose progress could be lost.
        try (WalReader reader = log(XactRecord.HAS_INFO, 0xFFFF, data)) {
            assertTrue(manager.covers(reader.next()));
        }
        try (WalReader reader = log(TransactionResourceManager.COMMIT, 0, bytes(1))) {
            assertTrue(manager.covers(reader.next()));
        }
        try (WalReader reader = log(TransactionResourceManager.PREPARE, 0, bytes(1))) {
            assertFalse(manager.covers(reader.next()));
        }
    }
}
