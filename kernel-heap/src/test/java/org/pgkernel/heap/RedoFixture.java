package org.pgkernel.heap;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/** Records written to real WAL, read back and applied to a pool over real files. */
final class RedoFixture implements AutoCloseable {
    static final int SPC = RelFileLocator.DEFAULT_TABLESPACE;
    static final int DB = 5;
    static final int REL = 7;

    private static final int SEGMENT = 1 << 20;
    private static final long START = SEGMENT + 40;

    final BufferPool pool;
    final RedoContext context;
    final SmgrRelation relation;
    final WalRecordBuilder builder = new WalRecordBuilder();
    WalRecord record;

    private final Path directory;
    private final StorageManager smgr;
    private final WalWriter writer;
    private final WalReader reader;
    private final UnsafeBuffer view = new UnsafeBuffer(0L, 0);

    RedoFixture(Path directory, boolean checksums) {
        this.directory = directory;
        try {
            Files.createDirectories(directory.resolve("base/" + DB));
            Files.createDirectories(directory.resolve("pg_wal"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        PosixDisk disk = new PosixDisk();
        String path = directory.toString();
        smgr =
                new StorageManager(
                        disk,
                        path,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.RECOVERY_ONLY,
                        new SyncRequests(disk, path));
        smgr.inRecovery(true);
        pool = BufferPool.open(128, smgr, lsn -> {}, checksums, DropStrategy.LOOKUP);
        context = RedoContext.standalone(pool, null);
        relation = smgr.open(SPC, DB, REL);
        writer = new WalWriter(disk, path + "/pg_wal", 1, SEGMENT, 1, START, 0, 0);
        reader = new WalReader(disk, path + "/pg_wal", TimelineHistory.of(1), SEGMENT, 1);
        reader.begin(START);
    }

    /** Little-endian bytes of Byte, Short, Integer and byte[] fields. */
    static UnsafeBuffer part(Object... fields) {
        ByteBuffer b = ByteBuffer.allocate(9000).order(ByteOrder.LITTLE_ENDIAN);
        for (Object field : fields) {
            switch (field) {
                case Byte v -> b.put(v);
                case Short v -> b.putShort(v);
                case Integer v -> b.putInt(v);
                case byte[] v -> b.put(v);
                default -> throw new IllegalArgumentException();
            }
        }
        return new UnsafeBuffer(Arrays.copyOf(b.array(), b.position()));
    }

    RedoFixture begin(int rmid, int info, int xid, UnsafeBuffer main) {
        builder.begin(rmid, info, xid).data(main, 0, main.capacity());
        return this;
    }

    RedoFixture block(int id, ForkNumber fork, int block, boolean willInit) {
        builder.block(id, SPC, DB, REL, fork, block, willInit ? 0x40 : 0);
        return this;
    }

    RedoFixture data(UnsafeBuffer data) {
        builder.blockData(0, data, 0, data.capacity());
        return this;
    }

    /**
     * Logs the record as it stands and applies it; after a failure pages go back as in recovery.
     */
    RedoFixture apply(ResourceManager manager) {
        writer.append(builder);
        writer.flush();
        record = reader.next();
        if (record == null) {
            // The reader had the page in memory already; asked again, it reads it again.
            record = reader.next();
        }
        if (record == null) {
            throw new AssertionError(reader.end().toString());
        }
        try {
            manager.redo(record, context);
        } catch (RuntimeException e) {
            context.abandonHeldBuffers();
            throw e;
        }
        return this;
    }

    /** A copy of the page as the pool has it. */
    UnsafeBuffer page(ForkNumber fork, int block) {
        int buffer = pool.read(relation, fork, block, ReadMode.NORMAL);
        byte[] copy = new byte[Page.SIZE];
        pool.wrap(buffer, view);
        view.getBytes(0, copy);
        pool.release(buffer);
        return new UnsafeBuffer(copy);
    }

    /** Changes a page under its lock. */
    void change(ForkNumber fork, int block, java.util.function.Consumer<UnsafeBuffer> change) {
        int buffer = pool.read(relation, fork, block, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, view);
        change.accept(view);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    byte[] file(String suffix) {
        pool.flushAll();
        try {
            return Files.readAllBytes(directory.resolve("base/" + DB + "/" + REL + suffix));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        int pinned = pool.pinnedBuffers();
        reader.close();
        writer.close();
        pool.close();
        smgr.close();
        if (pinned != 0) {
            throw new AssertionError(pinned + " buffers stay pinned");
        }
    }
}
