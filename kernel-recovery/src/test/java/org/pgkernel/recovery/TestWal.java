package org.pgkernel.recovery;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/** WAL made by hand: one timeline, 1 MB segments. */
final class TestWal implements AutoCloseable {
    static final int SEGMENT = 1 << 20;
    static final long SYSTEM = 7;
    static final long START = 3L * SEGMENT + 0x28;
    static final int SPC = 1663;
    static final int DB = 5;
    static final int BKPBLOCK_WILL_INIT = 0x40;

    final Disk disk;
    final String directory;
    final WalWriter writer;
    final WalRecordBuilder builder = new WalRecordBuilder();

    TestWal(Disk disk, Path dataDirectory) throws IOException {
        this.disk = disk;
        directory = Files.createDirectories(dataDirectory.resolve("pg_wal")).toString();
        writer = new WalWriter(disk, directory, 1, SEGMENT, SYSTEM, START, START - 0x100, 0);
    }

    /** A record whose main data is {@code data}. @return where it begins */
    long add(int rmid, int info, int xid, byte[] data) {
        builder.begin(rmid, info, xid).data(new UnsafeBuffer(data), 0, data.length);
        return append();
    }

    /** A TinyHeap record on blocks of one relation. */
    long heap(int info, int rel, int... blocks) {
        builder.begin(RmgrIds.HEAP, info, 0);
        for (int i = 0; i < blocks.length; i++) {
            builder.block(
                    i,
                    SPC,
                    DB,
                    rel,
                    ForkNumber.MAIN,
                    blocks[i],
                    info == TinyHeap.INIT ? BKPBLOCK_WILL_INIT : 0);
        }
        return append();
    }

    long image(int info, int rel, ForkNumber fork, int block, UnsafeBuffer page) {
        builder.begin(RmgrIds.XLOG, info, 0).image(0, SPC, DB, rel, fork, block, page, false);
        return append();
    }

    long checkpoint(int info, long redo, long nextXid, int nextOid) {
        UnsafeBuffer body = new UnsafeBuffer(new byte[CheckPointRecord.SIZE]);
        CheckPointRecord.setRedo(body, 0, redo);
        CheckPointRecord.setThisTimeLineId(body, 0, 1);
        CheckPointRecord.setPrevTimeLineId(body, 0, 1);
        CheckPointRecord.setFullPageWrites(body, 0, true);
        CheckPointRecord.setNextXid(body, 0, nextXid);
        CheckPointRecord.setNextOid(body, 0, nextOid);
        CheckPointRecord.setNextMulti(body, 0, 1);
        CheckPointRecord.setOldestXid(body, 0, 3);
        CheckPointRecord.setOldestXidDb(body, 0, 1);
        CheckPointRecord.setOldestMulti(body, 0, 1);
        CheckPointRecord.setOldestMultiDb(body, 0, 1);
        builder.begin(RmgrIds.XLOG, info, 0).data(body, 0, CheckPointRecord.SIZE);
        return append();
    }

    long append() {
        writer.append(builder);
        return writer.lastRecord();
    }

    /** Reads from {@code lsn} on; what was added is flushed first. */
    WalReader reader(long lsn) {
        writer.flush();
        WalReader reader = new WalReader(disk, directory, TimelineHistory.of(1), SEGMENT, SYSTEM);
        reader.begin(lsn);
        return reader;
    }

    @Override
    public void close() {
        writer.close();
    }
}
