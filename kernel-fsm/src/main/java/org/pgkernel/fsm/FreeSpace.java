package org.pgkernel.fsm;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Who finds a heap page with room. An answer is a guess: the caller locks the page, looks, and if
 * it is too full reports what he saw with {@link #recordAndFind}. But the block exists (C13).
 *
 * <p>One instance a backend. The caller holds no content lock of a map's page; he may hold the heap
 * page's pin, better not its lock, since a map page may have to be read. Sizes are bytes as {@code
 * PageGetHeapFreeSpace} gives them, less than a page.
 */
public interface FreeSpace {
    /**
     * A heap block with at least so much room.
     *
     * @param bytes wanted, at most {@link FreeSpaceMap#MAX_REQUEST}
     * @return {@link BlockNumber#INVALID} when none is known: the relation is to be extended.
     *     (PostgreSQL: GetPageWithFreeSpace.)
     */
    int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes);

    /**
     * Notes a page's free space and looks for another page, near it if there is one. (PostgreSQL:
     * RecordAndGetPageWithFreeSpace.)
     */
    int recordAndFind(
            PageBuffers buffers, SmgrRelation relation, int oldBlock, int oldFree, int bytes);

    /**
     * Notes a page's free space. More than before may stay unseen until the next {@link
     * #vacuumRange}. (PostgreSQL: RecordPageWithFreeSpace.)
     */
    void record(PageBuffers buffers, SmgrRelation relation, int heapBlock, int freeBytes);

    /**
     * The room that was noted of a page, bytes, rounded down to its category; 0 when nothing was.
     * (PostgreSQL: GetRecordedFreeSpace.)
     */
    int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock);

    /**
     * What was noted of heap blocks {@code start} to {@code end - 1} can be found from here on.
     *
     * @param end exclusive; {@link BlockNumber#INVALID} for the rest of the relation. (PostgreSQL:
     *     FreeSpaceMapVacuumRange; FreeSpaceMapVacuum from 0 on.)
     */
    void vacuumRange(PageBuffers buffers, SmgrRelation relation, int start, int end);
}
