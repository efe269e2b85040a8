package org.pgkernel.fsm;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Policy {@link FsmPolicy#SMALL_TABLES_LOCAL}: of a small relation a backend tries every other page
 * from the last one on, and then the relation grows. One page in two is tried so that a relation
 * that fills up does not cost a look at each of its pages for each page it grows by: growth changes
 * which pages are in turn.
 *
 * <pre>
 *   blocks     1   2   3    4
 *   tried      0   1   2 0  3 1
 * </pre>
 *
 * <p>What was tried is remembered for one search in one relation, and forgotten with it: when a
 * page was found or none, when the relation grows, when the transaction is aborted, or another
 * relation is searched (C15). When the relation's size changes during the search the pages are
 * chosen anew, less those that were tried. (PostgreSQL: fsm_local_set, fsm_local_search,
 * FSMClearLocalMap, of commit b0eaa4c51bb.)
 */
class LocalFreeSpace extends SmallTableFreeSpace {
    /** Whose search it is, or null: none is under way. */
    SmgrRelation searched;

    /** Bit i: block i was tried. */
    int tried;

    LocalFreeSpace(int threshold) {
        super(threshold);
    }

    @Override
    public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
        return map.pageWithFreeSpace(buffers, relation, bytes);
    }

    @Override
    int firstOfSmall(SmgrRelation relation, int heapBlocks, int bytes) {
        searched = relation;
        tried = 0;
        return next(heapBlocks);
    }

    @Override
    void tried(SmgrRelation relation, int block, int free, int bytes) {
        if (searched != relation) {
            searched = relation;
            tried = 0;
        }
        if (Integer.compareUnsigned(block, threshold) < 0) {
            tried |= 1 << block;
        }
    }

    @Override
    int nextOfSmall(SmgrRelation relation, int heapBlocks, int bytes) {
        return next(heapBlocks);
    }

    /** The last page in turn that was not tried. */
    private int next(int heapBlocks) {
        for (int block = heapBlocks - 1; block >= 0; block -= step()) {
            if ((tried & 1 << block) == 0) {
                return block;
            }
        }
        forget();
        return BlockNumber.INVALID;
    }

    int step() {
        return 2;
    }

    @Override
    public void forget() {
        searched = null;
        tried = 0;
    }
}
