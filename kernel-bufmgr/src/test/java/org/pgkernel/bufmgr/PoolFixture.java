package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/** A pool over real files in a directory, and small words for using it. */
final class PoolFixture implements AutoCloseable {
    static final int SPC = RelFileLocator.DEFAULT_TABLESPACE;
    static final int DB = 5;
    static final DurabilityGate OPEN_GATE = lsn -> {};

    final Path directory;
    final HookedDisk disk;
    final SyncRequests syncs;
    final StorageManager smgr;
    BufferPool pool;
    private boolean retaining;
    private int partitions = BufferTable.PARTITIONS;
    private LookupStyle lookupStyle = BufferPoolOptions.DEFAULT_LOOKUP_STYLE;

    PoolFixture(Path directory, boolean inRecovery) {
        this(directory, inRecovery, SizePolicy.RECOVERY_ONLY);
    }

    PoolFixture(Path directory, boolean inRecovery, SizePolicy policy) {
        this(directory, inRecovery, policy, StorageManager.SEGMENT_BLOCKS);
    }

    PoolFixture(Path directory, boolean inRecovery, SizePolicy policy, int segmentBlocks) {
        this.directory = directory;
        try {
            Files.createDirectories(directory.resolve("base/" + DB));
            Files.createDirectories(directory.resolve("global"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        disk = new HookedDisk(new PosixDisk());
        syncs = new SyncRequests(disk, directory.toString());
        smgr = new StorageManager(disk, directory.toString(), segmentBlocks, policy, syncs);
        smgr.inRecovery(inRecovery);
    }

    PoolFixture pool(int nbuffers, boolean checksums, DropStrategy strategy) {
        return pool(nbuffers, checksums, strategy, OPEN_GATE);
    }

    PoolFixture pool(BufferPoolOptions options, DropParts parts) {
        pool = BufferPool.open(options, smgr, OPEN_GATE, parts);
        return this;
    }

    PoolFixture pool(int nbuffers, boolean checksums, DropStrategy strategy, DurabilityGate gate) {
        pool =
                BufferPool.open(
                        BufferPoolOptions.of(nbuffers)
                                .withChecksums(checksums)
                                .withStrategy(strategy)
                                .withLookupStyle(lookupStyle),
                        smgr,
                        gate,
                        new RetainingParts(retaining) {
                            @Override
                            int partitions() {
                                return partitions;
                            }
                        });
        return this;
    }

    /** The pools opened from now on meet idle pins everywhere. */
    PoolFixture retaining() {
        retaining = true;
        return this;
    }

    /** The pools opened from now on have a mapping table of so many partitions. */
    PoolFixture partitions(int count) {
        partitions = count;
        return this;
    }

    /** Pins of the buffer that somebody uses. */
    int refcount(int buffer) {
        return pool.retention.used(buffer, BufferState.refcount(pool.descriptors.state(buffer)));
    }

    /** For the pools opened from now on. */
    PoolFixture lookupStyle(LookupStyle style) {
        lookupStyle = style;
        return this;
    }

    SmgrRelation relation(int rel) {
        return smgr.open(SPC, DB, rel);
    }

    /**
     * A relation fork of formatted pages, each stamped with its number, clean in the file; may stay
     * in the pool.
     */
    SmgrRelation create(int rel, ForkNumber fork, int blocks) {
        SmgrRelation relation = relation(rel);
        relation.create(fork, false);
        for (int i = 0; i < blocks; i++) {
            int buffer = pool.extend(relation, fork, true);
            stamp(buffer, rel, i, 0);
            pool.markDirty(buffer);
            pool.flushOne(buffer);
            pool.unlock(buffer);
            pool.release(buffer);
        }
        return relation;
    }

    UnsafeBuffer page(int buffer) {
        UnsafeBuffer view = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, view);
        return view;
    }

    /** Formats the page and writes relation, block and version into it. */
    void stamp(int buffer, int rel, int block, int version) {
        UnsafeBuffer page = page(buffer);
        Page.init(page, 0);
        page.putInt(4096, rel);
        page.putInt(4100, block);
        page.putInt(4104, version);
    }

    int version(int buffer) {
        return page(buffer).getInt(4104);
    }

    /** Reads the page, checks that it is the right one, and returns its version. */
    int readVersion(SmgrRelation relation, ForkNumber fork, int block) {
        int buffer = pool.read(relation, fork, block, ReadMode.NORMAL);
        try {
            pool.lockShared(buffer);
            assertEquals(relation.relNumber(), page(buffer).getInt(4096));
            assertEquals(block, page(buffer).getInt(4100));
            int version = version(buffer);
            pool.unlock(buffer);
            return version;
        } finally {
            pool.release(buffer);
        }
    }

    /** Writes a version into a page and leaves it dirty. */
    void change(SmgrRelation relation, ForkNumber fork, int block, int version) {
        int buffer = pool.read(relation, fork, block, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        page(buffer).putInt(4104, version);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    /** Throws everything out of the pool by filling it with another relation's pages. */
    void evictAll(SmgrRelation other) {
        for (int round = 0; round < 7; round++) {
            for (int i = 0; i < pool.nbuffers(); i++) {
                pool.release(pool.read(other, ForkNumber.MAIN, i, ReadMode.NORMAL));
            }
        }
    }

    Path file(SmgrRelation relation, ForkNumber fork) {
        return directory.resolve(relation.locator().path(fork));
    }

    /** Bytes of a block as they are in the file. */
    byte[] onDisk(SmgrRelation relation, ForkNumber fork, int block) {
        byte[] bytes = new byte[Page.SIZE];
        try (RandomAccessFile f = new RandomAccessFile(file(relation, fork).toFile(), "r")) {
            f.seek((long) block * Page.SIZE);
            f.readFully(bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes;
    }

    /** Overwrites bytes of a block in the file. */
    void poke(SmgrRelation relation, ForkNumber fork, int block, int offset, int... bytes) {
        try (RandomAccessFile f = new RandomAccessFile(file(relation, fork).toFile(), "rw")) {
            f.seek((long) block * Page.SIZE + offset);
            for (int b : bytes) {
                f.write(b);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    int versionOnDisk(SmgrRelation relation, ForkNumber fork, int block) {
        return new UnsafeBuffer(onDisk(relation, fork, block)).getInt(4104);
    }

    @Override
    public void close() {
        if (pool != null) {
            pool.close();
        }
        smgr.close();
    }
}
