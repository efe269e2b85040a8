package org.pgkernel.fsm;

import java.util.ArrayList;
import java.util.List;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.HintImageLog;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/** A primary's pool and WAL over a simulated disk, with one relation and any number of backends. */
final class PrimaryFixture implements AutoCloseable {
    static final int SPC = RelFileLocator.DEFAULT_TABLESPACE;
    static final int DB = 5;
    static final int REL = 7;

    private static final int SEGMENT = 1 << 20;
    private static final long START = SEGMENT + 40;
    private static final String WAL = "/data/pg_wal";

    final SimulatedDisk disk;
    final BufferPool pool;
    final SmgrRelation relation;
    final WalInserter wal;
    final RecordInsert insert;
    final BackendBuffers backend;

    private final StorageManager smgr;
    private final List<BackendBuffers> backends = new ArrayList<>();
    private final List<String> leaks = new ArrayList<>();
    private final UnsafeBuffer block =
            new UnsafeBuffer(BufferUtil.allocateDirectAligned(Page.SIZE, Page.SIZE));

    PrimaryFixture(boolean checksums) {
        this(checksums, SizePolicy.SHARED, new SimulatedDisk(1));
    }

    PrimaryFixture(boolean checksums, SizePolicy sizes, SimulatedDisk disk) {
        this.disk = disk.directories("/data/base/" + DB, WAL);
        smgr =
                new StorageManager(
                        disk,
                        "/data",
                        StorageManager.SEGMENT_BLOCKS,
                        sizes,
                        new SyncRequests(disk, "/data"));
        wal = new WalInserter(disk, WAL, 1, SEGMENT, 1, START, 0, 0, START, 1 << 16);
        insert = new RecordInsert(wal);
        pool = BufferPool.open(128, smgr, wal::flush, checksums, DropStrategy.ADAPTIVE);
        pool.hintImageLog(new Images());
        relation = smgr.open(SPC, DB, REL);
        if (!relation.exists(ForkNumber.MAIN)) {
            relation.create(ForkNumber.MAIN, false);
        }
        backend = backend("one");
    }

    BackendBuffers backend(String name) {
        BackendBuffers one = pool.backend(name, leaks::add);
        backends.add(one);
        return one;
    }

    /** Another relation; its file is made. */
    SmgrRelation relation(int rel) {
        SmgrRelation other = smgr.open(SPC, DB, rel);
        if (!other.exists(ForkNumber.MAIN)) {
            other.create(ForkNumber.MAIN, false);
        }
        return other;
    }

    /** The heap gets so many blocks; what is between is a hole. */
    void heapBlocks(int blocks) {
        heapBlocks(relation, blocks);
    }

    void heapBlocks(SmgrRelation relation, int blocks) {
        int now = relation.nblocks(ForkNumber.MAIN);
        if (blocks < now) {
            pool.dropRelationForks(
                    relation, new ForkNumber[] {ForkNumber.MAIN}, new int[] {blocks}, 1);
            relation.truncate(ForkNumber.MAIN, blocks);
        } else if (blocks > now) {
            block.setMemory(0, Page.SIZE, (byte) 0);
            relation.extend(ForkNumber.MAIN, blocks - 1, block.addressOffset(), false);
        }
    }

    /** Writes bytes over a map page behind everybody's back, once the pool has forgotten it. */
    void damage(ForkNumber fork, int mapBlock, int offset, byte[] bytes) {
        pool.flushAll();
        pool.dropRelationForks(relation, new ForkNumber[] {fork}, new int[] {0}, 1);
        relation.read(fork, mapBlock, block.addressOffset());
        block.putBytes(offset, bytes);
        relation.write(fork, mapBlock, block.addressOffset(), false);
    }

    /** A copy of a page as the pool has it. */
    UnsafeBuffer page(ForkNumber fork, int pageBlock) {
        int buffer = pool.read(relation, fork, pageBlock, ReadMode.NORMAL);
        UnsafeBuffer view = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, view);
        UnsafeBuffer copy = new UnsafeBuffer(new byte[Page.SIZE]);
        copy.putBytes(0, view, 0, Page.SIZE);
        pool.release(buffer);
        return copy;
    }

    /** What the log holds, one line a record: rmgr, info, blocks and which have images. */
    List<String> records() {
        wal.flush(wal.insertLsn());
        List<String> lines = new ArrayList<>();
        try (WalReader reader = new WalReader(disk, WAL, TimelineHistory.of(1), SEGMENT, 1)) {
            reader.begin(START);
            WalRecord record;
            while ((record = reader.next()) != null) {
                StringBuilder line = new StringBuilder();
                line.append(record.rmid()).append('/').append(record.type());
                for (int id = 0; id <= record.maxBlockId(); id++) {
                    line.append(' ').append(record.blockFork(id)).append(record.blockNumber(id));
                    line.append(record.applyImage(id) ? "!" : "");
                }
                lines.add(line.toString());
            }
        }
        return lines;
    }

    int read(PageBuffers buffers, ForkNumber fork, int pageBlock) {
        return buffers.read(relation, fork, pageBlock, ReadMode.NORMAL);
    }

    @Override
    public void close() {
        backends.forEach(BackendBuffers::close);
        int pinned = pool.pinnedBuffers();
        pool.close();
        wal.close();
        smgr.close();
        if (pinned != 0 || !leaks.isEmpty()) {
            throw new AssertionError(pinned + " buffers stay pinned " + leaks);
        }
    }

    /** Logs hints' images as a primary does; no checkpoint runs here. */
    private final class Images implements HintImageLog {
        private final RecordInsert images = new RecordInsert(wal);

        @Override
        public void delayCheckpoint() {}

        @Override
        public void allowCheckpoint() {}

        @Override
        public long redoPointer() {
            return wal.redoLsn();
        }

        @Override
        public synchronized long logImage(
                int spc,
                int db,
                int rel,
                ForkNumber fork,
                int pageBlock,
                DirectBuffer page,
                boolean standard) {
            int flags = RecordInsert.FORCE_IMAGE | (standard ? RecordInsert.STANDARD : 0);
            return images.begin(0, 0xA0, 0)
                    .page(0, spc, db, rel, fork, pageBlock, page, flags)
                    .insert();
        }
    }
}
