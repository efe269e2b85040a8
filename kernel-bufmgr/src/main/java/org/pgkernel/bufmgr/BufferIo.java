package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.PageVerify;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/**
 * Reading and writing of blocks. A block has at most one reader or writer at a time, the owner of
 * its IO_IN_PROGRESS flag; others wait for him and then look again. (PostgreSQL: StartBufferIO,
 * TerminateBufferIO, WaitIO, FlushBuffer.)
 */
final class BufferIo {
    private static final System.Logger LOG = System.getLogger("org.pgkernel.bufmgr");

    private final BufferDescriptors descriptors;
    private final WaitTable waits = new WaitTable(64);
    private final StorageManager smgr;
    private final DurabilityGate gate;
    private final boolean checksums;
    private final long blocks;

    final PoolCounters counters;

    BufferIo(
            BufferDescriptors descriptors,
            StorageManager smgr,
            DurabilityGate gate,
            boolean checksums,
            long blocks) {
        this.descriptors = descriptors;
        this.smgr = smgr;
        this.gate = gate;
        this.checksums = checksums;
        this.blocks = blocks;
        counters = new PoolCounters(() -> smgr.syncRequests().syncs());
    }

    long address(int buffer) {
        return blocks + (long) buffer * Page.SIZE;
    }

    /**
     * Becomes the block's reader ({@code input}) or writer, waiting for another. The caller has a
     * pin.
     *
     * @return false when another has done the work: the page is valid, or clean
     */
    boolean start(int buffer, boolean input) {
        LockRank rank = input ? LockRank.READ_IN_PROGRESS : LockRank.WRITE_IN_PROGRESS;
        assert rank.enter();
        for (; ; ) {
            int state = descriptors.lockHeader(buffer);
            if ((state & IO_IN_PROGRESS) == 0) {
                boolean done = input ? (state & VALID) != 0 : (state & DIRTY) == 0;
                descriptors.unlockHeader(buffer, done ? state : state | IO_IN_PROGRESS);
                assert !done || rank.leave();
                return !done;
            }
            descriptors.unlockHeader(buffer, state);
            await(buffer);
        }
    }

    /**
     * Ends what {@link #start} began: clears the dirty flags unless the page changed meanwhile,
     * sets {@code flags}, wakes the waiters.
     */
    void terminate(int buffer, boolean clean, int flags) {
        int state = descriptors.lockHeader(buffer);
        assert (state & IO_IN_PROGRESS) != 0 : "not the owner of the I/O";
        // A page that is written is valid, one that is read is not yet.
        LockRank rank =
                (state & VALID) == 0 ? LockRank.READ_IN_PROGRESS : LockRank.WRITE_IN_PROGRESS;
        assert rank.leave();
        int next = state & ~(IO_IN_PROGRESS | IO_ERROR) | flags;
        if (clean && (state & JUST_DIRTIED) == 0) {
            descriptors.cleanAndUnlockHeader(buffer, next);
        } else {
            descriptors.unlockHeader(buffer, next);
        }
        waits.wake(buffer);
    }

    /** Returns when nobody reads or writes the block. */
    void await(int buffer) {
        waits.enter(buffer);
        try {
            while ((descriptors.state(buffer) & IO_IN_PROGRESS) != 0) {
                waits.await(buffer);
            }
        } finally {
            waits.leave(buffer);
        }
    }

    /**
     * Reads the page and checks it; the caller owns the I/O. A damaged page is zeroed if {@code
     * zeroOnError}, else an error.
     */
    void readPage(
            int buffer, SmgrRelation relation, ForkNumber fork, int block, boolean zeroOnError) {
        try {
            relation.read(fork, block, address(buffer));
        } catch (DiskException e) {
            throw named("could not read a page ", buffer, relation, e);
        }
        checkPage(buffer, block, zeroOnError);
    }

    /** The check of {@link #readPage} for a page whose bytes are there already. */
    void checkPage(int buffer, int block, boolean zeroOnError) {
        counters.read();
        UnsafeBuffer page = BackendScratch.mine().view;
        page.wrap(address(buffer), Page.SIZE);
        if (!PageVerify.isValid(page, block, checksums)) {
            if (!zeroOnError) {
                throw new DamagedDataException(
                        PageVerify.whyInvalid(page, block, checksums)
                                + " "
                                + descriptors.place(buffer));
            }
            LOG.log(
                    System.Logger.Level.WARNING,
                    PageVerify.whyInvalid(page, block, checksums)
                            + "; zeroing it out "
                            + descriptors.place(buffer));
            page.setMemory(0, Page.SIZE, (byte) 0);
        }
    }

    void zeroPage(int buffer) {
        UnsafeBuffer page = BackendScratch.mine().view;
        page.wrap(address(buffer), Page.SIZE);
        page.setMemory(0, Page.SIZE, (byte) 0);
    }

    boolean isZeroPage(int buffer) {
        UnsafeBuffer page = BackendScratch.mine().view;
        page.wrap(address(buffer), Page.SIZE);
        return PageVerify.isAllZero(page);
    }

    /**
     * True if writing the page would have to wait for WAL now. The caller has a pin and the content
     * lock.
     */
    boolean wouldFlushWal(int buffer) {
        UnsafeBuffer page = BackendScratch.mine().view;
        page.wrap(address(buffer), Page.SIZE);
        int state = descriptors.lockHeader(buffer); // a hint's logging may move the LSN
        long lsn = Page.lsn(page);
        descriptors.unlockHeader(buffer, state);
        return gate.wouldFlush(lsn);
    }

    /**
     * Writes the page if it is dirty. The caller has a pin and the content lock, shared at least;
     * so only hint bits can change meanwhile, and the JUST_DIRTIED flag tells. When the write fails
     * the page stays dirty.
     *
     * @return false when it was clean, or another has written it
     */
    boolean flush(int buffer, WriteOrigin origin) {
        if (!start(buffer, false)) {
            return false;
        }
        boolean written = false;
        try {
            write(buffer);
            written = true;
        } finally {
            terminate(buffer, written, written ? 0 : IO_ERROR);
        }
        counters.written(origin);
        return true;
    }

    private void write(int buffer) {
        BackendScratch scratch = BackendScratch.mine();
        UnsafeBuffer page = scratch.view;
        page.wrap(address(buffer), Page.SIZE);
        int block = descriptors.block(buffer);

        // Under the header lock, as whoever sets a hint under a shared lock may log it and move the
        // LSN.
        int state = descriptors.lockHeader(buffer);
        long lsn = Page.lsn(page);
        descriptors.unlockHeader(buffer, state & ~JUST_DIRTIED);

        if ((state & PERMANENT) != 0) {
            gate.beforeWrite(lsn);
        }
        // The gate may have run code of any kind on this thread: point the view again.
        page.wrap(address(buffer), Page.SIZE);
        long from = address(buffer);
        if (checksums && !Page.isNew(page)) {
            // A private copy: a hint bit set between computing and writing would make the checksum
            // wrong.
            scratch.copy.putBytes(0, page, 0, Page.SIZE);
            Page.setChecksum(scratch.copy, PageChecksum.compute(scratch.copy, block));
            from = scratch.copyAddress();
        }
        SmgrRelation relation =
                smgr.open(descriptors.spc(buffer), descriptors.db(buffer), descriptors.rel(buffer));
        try {
            relation.write(ForkNumber.of(descriptors.fork(buffer)), block, from, false);
        } catch (DiskException e) {
            throw named("could not write a dirty page ", buffer, relation, e);
        }
    }

    /**
     * The same failure with the page's place, as the file alone does not tell the block.
     * (PostgreSQL: shared_buffer_write_error_callback.)
     */
    private DiskException named(String what, int buffer, SmgrRelation relation, DiskException e) {
        String file = relation.locator().path(ForkNumber.of(descriptors.fork(buffer)));
        DiskException named = new DiskException(what + descriptors.place(buffer), file, e.errno());
        named.addSuppressed(e);
        return named;
    }
}
