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
     * Where an insert that has no target begins. If nothing is known of the relation that is its
     * last page: without this a new or small one would get a page for each row.
     *
     * @param heapBlocks the heap's size
     * @return {@link BlockNumber#INVALID} when no page is worth a try
     */
    default int firstPage(PageBuffers buffers, SmgrRelation relation, int heapBlocks, int bytes) {
        int found = pageWithFreeSpace(buffers, relation, bytes);
        return found == BlockNumber.INVALID && heapBlocks != 0 ? heapBlocks - 1 : found;
    }

    /**
     * A heap block with at least so much room, as far as it was recorded.
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

    /**
     * What a search remembers is forgotten: it is over, since a page took the row, the relation
     * grew or was cut, or the transaction was aborted. (PostgreSQL: FSMClearLocalMap, of commit
     * b0eaa4c51bb.)
     */
    default void forget() {}
}
