package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Reading of map pages: a damaged one counts as empty, since both maps may forget without harm, and
 * one of zeros is formatted, without being marked dirty. (PostgreSQL: fsm_readbuf, vm_readbuf.)
 */
final class MapPages {
    private MapPages() {}

    /** The page, pinned, in {@code view}; -1 when the fork has no such block. */
    static int read(
            BufferPool pool, SmgrRelation relation, ForkNumber fork, int block, UnsafeBuffer view) {
        if (!hasBlock(relation, fork, block)) {
            return -1;
        }
        int buffer = pool.read(relation, fork, block, ReadMode.ZERO_ON_ERROR);
        pool.wrap(buffer, view);
        if (Page.isNew(view)) {
            pool.lockExclusive(buffer);
            if (Page.isNew(view)) {
                Page.init(view, 0);
            }
            pool.unlock(buffer);
        }
        return buffer;
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
