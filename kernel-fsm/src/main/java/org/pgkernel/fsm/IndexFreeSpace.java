package org.pgkernel.fsm;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/**
 * The free space map of an index, where a page is free as a whole or used: the map says half a page
 * and more, or nothing. An index has its fork from the first free page on, whatever {@link
 * FsmPolicy} says: most of its pages are never free. One thread's. (PostgreSQL: indexfsm.c.)
 */
public final class IndexFreeSpace {
    private final FreeSpaceMap map = new FreeSpaceMap();

    /**
     * A page that is free, or was; it is used from here on. The caller looks, and takes another one
     * if it is in use.
     *
     * @return {@link BlockNumber#INVALID} when none is known. (PostgreSQL: GetFreeIndexPage.)
     */
    public int takeFreePage(PageBuffers buffers, SmgrRelation index) {
        int block = map.pageWithFreeSpace(buffers, index, Page.SIZE / 2);
        if (block != BlockNumber.INVALID) {
            recordUsed(buffers, index, block);
        }
        return block;
    }

    /** (PostgreSQL: RecordFreeIndexPage.) */
    public void recordFree(PageBuffers buffers, SmgrRelation index, int block) {
        map.record(buffers, index, block, Page.SIZE - 1);
    }

    /** (PostgreSQL: RecordUsedIndexPage.) */
    public void recordUsed(PageBuffers buffers, SmgrRelation index, int block) {
        map.record(buffers, index, block, 0);
    }

    /** Free pages that were recorded are found from here on. (IndexFreeSpaceMapVacuum) */
    public void vacuum(PageBuffers buffers, SmgrRelation index) {
        map.vacuumRange(buffers, index, 0, BlockNumber.INVALID);
    }
}
