package org.pgkernel.fsm;

import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.ExtensionLock;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * Reading and adding pages of a map's fork. A damaged page counts as empty, since both maps may
 * forget without harm; one of zeros is formatted, without being marked dirty. Of one thread.
 */
final class MapPages {
    /** Info of the record of a page's image. */
    private static final int XLOG_FPI = 0xB0;

    private final ForkNumber fork;
    private final UnsafeBuffer emptyPage =
            new UnsafeBuffer(BufferUtil.allocateDirectAligned(Page.SIZE, Page.SIZE));

    MapPages(ForkNumber fork) {
        this.fork = fork;
    }

    /**
     * The page, pinned, in {@code view}; -1 when the fork has no such block. The look for zeros is
     * without a lock: who finds the page formatted may yet see the rest of its header as zeros, so
     * nobody here reads one without the content lock. (PostgreSQL: fsm_readbuf, vm_readbuf.)
     */
    int read(PageBuffers buffers, SmgrRelation relation, int block, UnsafeBuffer view) {
        if (!hasBlock(relation, fork, block)) {
            return -1;
        }
        int buffer = buffers.read(relation, fork, block, ReadMode.ZERO_ON_ERROR);
        buffers.pool().wrap(buffer, view);
        if (Page.isNew(view)) {
            buffers.lockExclusive(buffer);
            if (Page.isNew(view)) {
                Page.init(view, 0);
            }
            buffers.unlock(buffer);
        }
        return buffer;
    }

    /** The same; the fork is made, and extended through the block, as needed. */
    int readExtended(PageBuffers buffers, SmgrRelation relation, int block, UnsafeBuffer view) {
        if (!hasBlock(relation, fork, block)) {
            extend(buffers.pool(), relation, block);
        }
        int buffer = read(buffers, relation, block, view);
        assert buffer >= 0 : fork + " fork of " + relation + " not extended";
        return buffer;
    }

    /**
     * Adds formatted, empty pages through {@code block}, straight to the file, under the lock that
     * also keeps others from adding pages to the heap. Who waited for it may find the work done.
     * (PostgreSQL: fsm_extend, vm_extend.)
     */
    private void extend(BufferPool pool, SmgrRelation relation, int block) {
        try (ExtensionLock held = pool.lockForExtension(relation)) {
            if (!relation.exists(fork)) {
                relation.create(fork, true);
            }
            int next = relation.nblocks(fork);
            while (Integer.compareUnsigned(next, block) <= 0) {
                Page.init(emptyPage, 0);
                if (pool.checksums()) {
                    Page.setChecksum(emptyPage, PageChecksum.compute(emptyPage, next));
                }
                relation.extend(fork, next, emptyPage.addressOffset(), false);
                next++;
            }
        }
    }

    /**
     * Logs a map page's image where hints are logged, and sets its LSN. The caller has changed the
     * page under its exclusive lock and stops the kernel when this fails. (PostgreSQL:
     * log_newpage_buffer.)
     *
     * @param wal null in redo and for a relation that is not logged: then nothing is done
     */
    void logImage(
            BufferPool pool,
            RecordInsert wal,
            SmgrRelation relation,
            int block,
            UnsafeBuffer page) {
        if (wal != null && pool.hintsAreLogged()) {
            wal.begin(RmgrIds.XLOG, XLOG_FPI, TransactionId.INVALID);
            wal.page(
                    0,
                    relation.spcOid(),
                    relation.dbOid(),
                    relation.relNumber(),
                    fork,
                    block,
                    page,
                    RecordInsert.FORCE_IMAGE);
            Page.setLsn(page, wal.insert());
        }
    }

    /** Asks the file only when the remembered size does not reach the block. */
    static boolean hasBlock(SmgrRelation relation, ForkNumber fork, int block) {
        long remembered = relation.rememberedSize(fork);
        if (ForkSize.isKnown(remembered)
                && Integer.compareUnsigned(block, ForkSize.blocks(remembered)) < 0) {
            return true;
        }
        return relation.exists(fork) && Integer.compareUnsigned(block, relation.nblocks(fork)) < 0;
    }
}
