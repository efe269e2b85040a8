package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.PoolFiller;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.bufmgr.SwitchedBookkeeping;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/**
 * A full pool in which every read replaces a page: pages of {@link #RELATIONS} relations, twice as
 * many as there are buffers, come by turns, so that nothing but the clock sweep knows what comes
 * next.
 */
final class ReplacingPool implements AutoCloseable {
    static final int BUFFERS = 16_384;
    private static final int RELATIONS = 128;
    private static final int BLOCKS = 2 * BUFFERS / RELATIONS;
    private static final int FIRST = 1000;

    private final Scratch scratch;
    private final StorageManager smgr;
    private final BufferPool pool;
    private final PoolFiller filler;
    private final SmgrRelation[] relations = new SmgrRelation[RELATIONS];
    private int next;

    ReplacingPool(DropStrategy strategy) throws IOException {
        this(strategy, null);
    }

    /** Whose pages are replaced by pages of the same relation, as the switch demands. */
    ReplacingPool(SwitchedBookkeeping bookkeeping) throws IOException {
        this(null, bookkeeping);
        bookkeeping.check(true);
        for (int i = 0; i < RELATIONS * BLOCKS; i++) {
            replace();
        }
        bookkeeping.check(false);
    }

    private ReplacingPool(DropStrategy strategy, SwitchedBookkeeping bookkeeping)
            throws IOException {
        scratch = new Scratch();
        String directory = scratch.resolve("data").toString();
        Files.createDirectories(scratch.resolve("data").resolve("base").resolve("1"));
        PosixDisk disk = new PosixDisk();
        smgr =
                new StorageManager(
                        disk,
                        directory,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, directory));
        BufferPoolOptions options = BufferPoolOptions.of(BUFFERS).withChecksums(false);
        pool =
                bookkeeping == null
                        ? BufferPool.open(options.withStrategy(strategy), smgr, lsn -> {})
                        : bookkeeping.open(options, smgr);
        filler = new PoolFiller(pool);
        for (int i = 0; i < RELATIONS; i++) {
            relations[i] = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 1, FIRST + i);
            relations[i].create(ForkNumber.MAIN, false);
            relations[i].zeroExtend(ForkNumber.MAIN, 0, BLOCKS, true);
        }
        for (int i = 0; i < RELATIONS * BLOCKS; i++) {
            replace();
        }
    }

    /**
     * Reads a page that is not there: clock sweep, another page's end, pread of 8 KiB from memory.
     */
    int replace() {
        int page = step();
        SmgrRelation relation = relations[page & RELATIONS - 1];
        int buffer = pool.read(relation, ForkNumber.MAIN, page / RELATIONS, ReadMode.NORMAL);
        pool.release(buffer);
        return buffer;
    }

    /** The same without reading, which is what the bookkeeping's cost can be seen beside. */
    int mapOnly() {
        int page = step();
        return filler.map(
                RelFileLocator.DEFAULT_TABLESPACE,
                1,
                FIRST + (page & RELATIONS - 1),
                0,
                page / RELATIONS);
    }

    private int step() {
        return next = next + 1 & RELATIONS * BLOCKS - 1;
    }

    @Override
    public void close() {
        pool.close();
        smgr.close();
        scratch.close();
    }
}
