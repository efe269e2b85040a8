package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.smgr.SmgrRelation;

/**
 * The free space map of relations: for each heap block a category of free space, in a tree of pages
 * of the FSM fork.
 *
 * <p>The map is a hint and not WAL-logged of its own: redo of heap records keeps it roughly true,
 * damaged pages are taken as empty, and most changes mark the page dirty as a hint only. Instances
 * own views of pages: one thread each. Nothing allocates but the constructor. (PostgreSQL:
 * freespace.c.)
 */
public final class FreeSpaceMap {
    /** Bytes of free space a category stands for. (PostgreSQL: FSM_CAT_STEP.) */
    public static final int CATEGORY_STEP = Page.SIZE / 256;

    /**
     * Free space from which on a page is in the top category, bytes: the largest heap tuple.
     * (PostgreSQL: MaxFSMRequestSize.)
     */
    public static final int MAX_REQUEST =
            Page.SIZE - Page.maxAlign(Page.HEADER_SIZE + Page.ITEM_ID_SIZE);

    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final UnsafeBuffer[] levelPages = new UnsafeBuffer[FsmAddress.TREE_DEPTH];
    private boolean endOfMap;

    public FreeSpaceMap() {
        for (int i = 0; i < levelPages.length; i++) {
            levelPages[i] = new UnsafeBuffer(0L, 0);
        }
    }

    /**
     * The category of a page with so many bytes free, rounded down. (PostgreSQL:
     * fsm_space_avail_to_cat.)
     */
    public static int category(int freeBytes) {
        if (freeBytes >= MAX_REQUEST) {
            return 255;
        }
        return Math.min(freeBytes / CATEGORY_STEP, 254);
    }

    /** The least free space of a category, bytes. (PostgreSQL: fsm_space_cat_to_avail.) */
    public static int freeBytes(int category) {
        return category == 255 ? MAX_REQUEST : category * CATEGORY_STEP;
    }

    /**
     * Records a heap page's free space in its leaf page, which is made if it does not exist. Upper
     * levels stay as they are until the next vacuum. Holds no other lock. (PostgreSQL:
     * XLogRecordPageWithFreeSpace.)
     */
    public void recordInRedo(
            RedoContext context, int spc, int db, int rel, int heapBlock, int freeBytes) {
        BufferPool pool = context.pool();
        int block = FsmAddress.block(FsmAddress.BOTTOM_LEVEL, FsmAddress.leafOf(heapBlock));
        int buffer =
                context.readExtended(spc, db, rel, ForkNumber.FSM, block, ReadMode.ZERO_ON_ERROR);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, page);
        if (Page.isNew(page)) {
            Page.init(page, 0);
        }
        if (FsmPage.setAvail(page, FsmAddress.slotOf(heapBlock), category(freeBytes))) {
            pool.markDirtyHint(buffer, false);
        }
        pool.unlock(buffer);
        pool.release(buffer);
    }

    /**
     * The recorded category of a heap block, 0 when the map does not reach it. (PostgreSQL:
     * GetRecordedFreeSpace, which answers in bytes.)
     */
    public int recordedCategory(BufferPool pool, SmgrRelation relation, int heapBlock) {
        int buffer =
                read(pool, relation, FsmAddress.BOTTOM_LEVEL, FsmAddress.leafOf(heapBlock), page);
        if (buffer < 0) {
            return 0;
        }
        int category = FsmPage.avail(page, FsmAddress.slotOf(heapBlock));
        pool.release(buffer);
        return category;
    }

    /**
     * Clears the slots of heap blocks from {@code heapBlocks} on in the last leaf page that stays.
     *
     * @return the fork's new number of blocks, to which the caller truncates it and then calls
     *     {@link #vacuumRange}; {@link BlockNumber#INVALID} when there is nothing to truncate.
     *     (PostgreSQL: FreeSpaceMapPrepareTruncateRel.)
     */
    public int prepareTruncate(BufferPool pool, SmgrRelation relation, int heapBlocks) {
        if (!relation.exists(ForkNumber.FSM)) {
            return BlockNumber.INVALID;
        }
        int leaf = FsmAddress.leafOf(heapBlocks);
        int firstSlot = FsmAddress.slotOf(heapBlocks);
        int block = FsmAddress.block(FsmAddress.BOTTOM_LEVEL, leaf);
        if (firstSlot == 0) {
            boolean smaller = Integer.compareUnsigned(relation.nblocks(ForkNumber.FSM), block) <= 0;
            return smaller ? BlockNumber.INVALID : block;
        }
        int buffer = read(pool, relation, FsmAddress.BOTTOM_LEVEL, leaf, page);
        if (buffer < 0) {
            return BlockNumber.INVALID;
        }
        pool.lockExclusive(buffer);
        FsmPage.truncateAvail(page, firstSlot);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
        return block + 1;
    }

    /**
     * Brings the upper levels over heap blocks {@code start} to {@code end - 1} in line with the
     * leaves.
     *
     * @param end exclusive; {@link BlockNumber#INVALID} for the rest of the relation. (PostgreSQL:
     *     FreeSpaceMapVacuumRange.)
     */
    public void vacuumRange(BufferPool pool, SmgrRelation relation, int start, int end) {
        if (Integer.compareUnsigned(end, start) > 0) {
            vacuumPage(pool, relation, FsmAddress.ROOT_LEVEL, 0, start, end);
        }
    }

    /**
     * @return the page's greatest category; {@link #endOfMap} tells whether the page exists.
     *     (PostgreSQL: fsm_vacuum_page.)
     */
    private int vacuumPage(
            BufferPool pool,
            SmgrRelation relation,
            int level,
            int logicalPage,
            int start,
            int end) {
        UnsafeBuffer view = levelPages[level];
        int buffer = read(pool, relation, level, logicalPage, view);
        endOfMap = buffer < 0;
        if (endOfMap) {
            return 0;
        }
        if (level > FsmAddress.BOTTOM_LEVEL) {
            vacuumChildren(pool, relation, level, logicalPage, start, end, buffer);
            endOfMap = false;
        }
        int max = FsmPage.maxAvail(view);
        FsmPage.resetNextSlot(view);
        pool.release(buffer);
        return max;
    }

    private void vacuumChildren(
            BufferPool pool,
            SmgrRelation relation,
            int level,
            int logicalPage,
            int start,
            int end,
            int buffer) {
        UnsafeBuffer view = levelPages[level];
        int startPage = FsmAddress.leafOf(start);
        int endPage = FsmAddress.leafOf(end - 1);
        int startSlot = 0;
        int endSlot = 0;
        for (int l = FsmAddress.BOTTOM_LEVEL; l < level; l++) {
            startSlot = FsmAddress.parentSlot(startPage);
            startPage = FsmAddress.parentPage(startPage);
            endSlot = FsmAddress.parentSlot(endPage);
            endPage = FsmAddress.parentPage(endPage);
        }
        int first =
                startPage == logicalPage ? startSlot : startPage > logicalPage ? FsmPage.SLOTS : 0;
        int last =
                endPage == logicalPage ? endSlot : endPage > logicalPage ? FsmPage.SLOTS - 1 : -1;
        boolean past = false;
        for (int slot = first; slot <= last; slot++) {
            int child = 0;
            if (!past) {
                child =
                        vacuumPage(
                                pool,
                                relation,
                                level - 1,
                                FsmAddress.childPage(logicalPage, slot),
                                start,
                                end);
                past = endOfMap;
            }
            if (FsmPage.avail(view, slot) != child) {
                pool.lockExclusive(buffer);
                FsmPage.setAvail(view, slot, child);
                pool.markDirtyHint(buffer, false);
                pool.unlock(buffer);
            }
        }
    }

    /**
     * The page, pinned, formatted if it was zeros, in {@code view}; -1 past the end of the fork.
     * (PostgreSQL: fsm_readbuf.)
     */
    private int read(
            BufferPool pool, SmgrRelation relation, int level, int logicalPage, UnsafeBuffer view) {
        int block = FsmAddress.block(level, logicalPage);
        return MapPages.read(pool, relation, ForkNumber.FSM, block, view);
    }
}
