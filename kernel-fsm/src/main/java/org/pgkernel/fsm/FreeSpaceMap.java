package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * The free space map of relations: for each heap block a category of free space, in a tree of pages
 * of the FSM fork.
 *
 * <p>The map is a hint and not WAL-logged of its own: redo of heap records keeps it roughly true,
 * damaged pages are taken as empty, and most changes mark the page dirty as a hint only. Instances
 * own views of pages: one thread each. Nothing allocates but the constructor. (PostgreSQL:
 * freespace.c.)
 */
public final class FreeSpaceMap implements FreeSpace {
    /** Bytes of free space a category stands for. (PostgreSQL: FSM_CAT_STEP.) */
    public static final int CATEGORY_STEP = Page.SIZE / 256;

    /**
     * Free space from which on a page is in the top category, bytes: the largest heap tuple.
     * (PostgreSQL: MaxFSMRequestSize.)
     */
    public static final int MAX_REQUEST =
            Page.SIZE - Page.maxAlign(Page.HEADER_SIZE + Page.ITEM_ID_SIZE);

    /**
     * So often a search starts anew after it set the upper levels right. (PostgreSQL: fsm_search.)
     */
    private static final int MOST_RESTARTS = 10_000;

    private final MapPages pages = new MapPages(ForkNumber.FSM);
    private final int redoThreshold;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final UnsafeBuffer[] levelPages = new UnsafeBuffer[FsmAddress.TREE_DEPTH];
    private boolean endOfMap;

    /** What {@link #searchPage} saw. */
    private int foundAtMost;

    public FreeSpaceMap() {
        this(0);
    }

    /**
     * For redo, under the policy that its primary has.
     *
     * @param redoThreshold {@link FsmOptions#creationThreshold}: {@link #recordInRedo} makes no
     *     fork for a heap of at most so many blocks
     */
    public FreeSpaceMap(int redoThreshold) {
        this.redoThreshold = redoThreshold;
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

    /**
     * The least category whose pages all have so many bytes free: rounded up. (PostgreSQL:
     * fsm_space_needed_to_cat.)
     */
    static int categoryNeeded(int bytes) {
        if (bytes < 0 || bytes > MAX_REQUEST) {
            throw new RefusedException(
                    "a page cannot have " + bytes + " bytes free, at most " + MAX_REQUEST);
        }
        return bytes == 0 ? 1 : Math.min((bytes + CATEGORY_STEP - 1) / CATEGORY_STEP, 255);
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
        if (Integer.compareUnsigned(heapBlock, redoThreshold) < 0
                && staysWithoutMap(context.relation(spc, db, rel))) {
            return;
        }
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

    /** C16: as on the primary, a fork that exists is kept up to date whatever the heap's size. */
    private boolean staysWithoutMap(SmgrRelation relation) {
        return Integer.compareUnsigned(relation.nblocks(ForkNumber.MAIN), redoThreshold) <= 0
                && !relation.exists(ForkNumber.FSM);
    }

    @Override
    public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
        return search(buffers, relation, categoryNeeded(bytes));
    }

    @Override
    public int recordAndFind(
            PageBuffers buffers, SmgrRelation relation, int oldBlock, int oldFree, int bytes) {
        int wanted = categoryNeeded(bytes);
        int leaf = FsmAddress.leafOf(oldBlock);
        int slot =
                setAndSearch(
                        buffers,
                        relation,
                        FsmAddress.BOTTOM_LEVEL,
                        leaf,
                        FsmAddress.slotOf(oldBlock),
                        category(oldFree),
                        wanted);
        if (slot >= 0) {
            int block = FsmAddress.heapBlock(leaf, slot);
            if (MapPages.hasBlock(relation, ForkNumber.MAIN, block)) {
                return block;
            }
        }
        return search(buffers, relation, wanted);
    }

    @Override
    public void record(PageBuffers buffers, SmgrRelation relation, int heapBlock, int freeBytes) {
        setAndSearch(
                buffers,
                relation,
                FsmAddress.BOTTOM_LEVEL,
                FsmAddress.leafOf(heapBlock),
                FsmAddress.slotOf(heapBlock),
                category(freeBytes),
                0);
    }

    /**
     * Goes down from the root; where a page has less than its parent said, the parent is corrected
     * and the search starts anew. The upper levels may be badly out of date, so that this happens
     * often, but not for ever. (PostgreSQL: fsm_search.)
     */
    private int search(PageBuffers buffers, SmgrRelation relation, int category) {
        int level = FsmAddress.ROOT_LEVEL;
        int logicalPage = 0;
        int restarts = 0;
        while (restarts <= MOST_RESTARTS) {
            int slot = searchPage(buffers, relation, level, logicalPage, category);
            if (slot >= 0 && level > FsmAddress.BOTTOM_LEVEL) {
                level--;
                logicalPage = FsmAddress.childPage(logicalPage, slot);
                continue;
            }
            if (slot >= 0) {
                int block = FsmAddress.heapBlock(logicalPage, slot);
                if (MapPages.hasBlock(relation, ForkNumber.MAIN, block)) {
                    return block;
                }
                forgetPastEnd(buffers, relation, logicalPage);
            } else if (level == FsmAddress.ROOT_LEVEL) {
                return BlockNumber.INVALID;
            } else {
                // Another backend may have changed the page since: the next vacuum puts it right.
                setAndSearch(
                        buffers,
                        relation,
                        level + 1,
                        FsmAddress.parentPage(logicalPage),
                        FsmAddress.parentSlot(logicalPage),
                        foundAtMost,
                        0);
            }
            restarts++;
            level = FsmAddress.ROOT_LEVEL;
            logicalPage = 0;
        }
        return BlockNumber.INVALID;
    }

    /**
     * @return a slot, or {@link FsmPage#NONE}: then {@link #foundAtMost} is the greatest category
     *     that the page has, 0 when there is no such page
     */
    private int searchPage(
            PageBuffers buffers, SmgrRelation relation, int level, int logicalPage, int category) {
        foundAtMost = 0;
        int buffer = read(buffers, relation, level, logicalPage, page);
        if (buffer < 0) {
            return FsmPage.NONE;
        }
        buffers.lockShared(buffer);
        int slot = FsmPage.search(page, category);
        if (slot == FsmPage.TORN) {
            buffers.unlock(buffer);
            buffers.lockExclusive(buffer);
            slot = repairAndSearch(buffers, buffer, category);
        }
        if (slot >= 0) {
            // Two searchers may garble it under their shared locks; it is checked when it is used.
            FsmPage.setNextSlot(page, level == FsmAddress.BOTTOM_LEVEL ? slot + 1 : slot);
        } else {
            foundAtMost = FsmPage.maxAvail(page);
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
        return slot;
    }

    /** The page in {@link #page}, exclusively locked. What is whole stays as it is. */
    private int repairAndSearch(PageBuffers buffers, int buffer, int category) {
        int slot = FsmPage.search(page, category);
        if (slot == FsmPage.TORN) {
            FsmPage.rebuild(page);
            buffers.markDirtyHint(buffer, false);
            slot = FsmPage.search(page, category);
        }
        return slot;
    }

    /**
     * C13: the heap ended before blocks that the map knows: it reached the disk and they did not.
     * All of them that this leaf page has are forgotten. The heap's size is asked under the page's
     * lock, so what a backend recorded of blocks that it has just added stays.
     */
    private void forgetPastEnd(PageBuffers buffers, SmgrRelation relation, int leaf) {
        int buffer = read(buffers, relation, FsmAddress.BOTTOM_LEVEL, leaf, page);
        if (buffer < 0) {
            return;
        }
        buffers.lockExclusive(buffer);
        int blocks = relation.nblocks(ForkNumber.MAIN);
        int endLeaf = FsmAddress.leafOf(blocks);
        int firstSlot = endLeaf < leaf ? 0 : FsmAddress.slotOf(blocks);
        if (endLeaf <= leaf && FsmPage.truncateAvail(page, firstSlot)) {
            buffers.markDirtyHint(buffer, false);
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
    }

    /**
     * Sets a slot, and looks for another one on the same page if {@code wanted} is not 0.
     *
     * @return the slot found or {@link FsmPage#NONE}. (PostgreSQL: fsm_set_and_search.)
     */
    private int setAndSearch(
            PageBuffers buffers,
            SmgrRelation relation,
            int level,
            int logicalPage,
            int slot,
            int category,
            int wanted) {
        int block = FsmAddress.block(level, logicalPage);
        int buffer = pages.readExtended(buffers, relation, block, page);
        buffers.lockExclusive(buffer);
        if (FsmPage.setAvail(page, slot, category)) {
            buffers.markDirtyHint(buffer, false);
        }
        int found = FsmPage.NONE;
        if (wanted != 0) {
            found = repairAndSearch(buffers, buffer, wanted);
            if (found >= 0) {
                FsmPage.setNextSlot(page, level == FsmAddress.BOTTOM_LEVEL ? found + 1 : found);
            }
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
        return found;
    }

    @Override
    public int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        return freeBytes(recordedCategory(buffers, relation, heapBlock));
    }

    /** The recorded category of a heap block, 0 when the map does not reach it. */
    public int recordedCategory(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        int buffer =
                read(
                        buffers,
                        relation,
                        FsmAddress.BOTTOM_LEVEL,
                        FsmAddress.leafOf(heapBlock),
                        page);
        if (buffer < 0) {
            return 0;
        }
        int category = FsmPage.avail(page, FsmAddress.slotOf(heapBlock));
        buffers.release(buffer);
        return category;
    }

    /**
     * Clears the slots of heap blocks from {@code heapBlocks} on in the last leaf page that stays.
     * The page is marked dirty properly, and logged where hints are, though a search would find out
     * that the blocks are gone.
     *
     * @param wal null in redo and for a relation that is not logged
     * @return the fork's new number of blocks, to which the caller truncates it and then calls
     *     {@link #vacuumRange}; {@link BlockNumber#INVALID} when there is nothing to truncate.
     *     (PostgreSQL: FreeSpaceMapPrepareTruncateRel.)
     */
    public int prepareTruncate(
            PageBuffers buffers, RecordInsert wal, SmgrRelation relation, int heapBlocks) {
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
        int buffer = read(buffers, relation, FsmAddress.BOTTOM_LEVEL, leaf, page);
        if (buffer < 0) {
            return BlockNumber.INVALID;
        }
        buffers.lockExclusive(buffer);
        try {
            FsmPage.truncateAvail(page, firstSlot);
            buffers.markDirty(buffer);
            pages.logImage(buffers.pool(), wal, relation, block, page);
        } catch (RuntimeException | Error e) {
            if (wal != null) {
                throw wal.stop(e);
            }
            throw e;
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
        return block + 1;
    }

    /** Brings the upper levels over these heap blocks in line with the leaves. */
    @Override
    public void vacuumRange(PageBuffers buffers, SmgrRelation relation, int start, int end) {
        if (Integer.compareUnsigned(end, start) > 0) {
            vacuumPage(buffers, relation, FsmAddress.ROOT_LEVEL, 0, start, end);
        }
    }

    /**
     * @return the page's greatest category; {@link #endOfMap} tells whether the page exists.
     *     (PostgreSQL: fsm_vacuum_page.)
     */
    private int vacuumPage(
            PageBuffers buffers,
            SmgrRelation relation,
            int level,
            int logicalPage,
            int start,
            int end) {
        UnsafeBuffer view = levelPages[level];
        int buffer = read(buffers, relation, level, logicalPage, view);
        endOfMap = buffer < 0;
        if (endOfMap) {
            return 0;
        }
        if (level > FsmAddress.BOTTOM_LEVEL) {
            vacuumChildren(buffers, relation, level, logicalPage, start, end, buffer);
            endOfMap = false;
        }
        int max = FsmPage.maxAvail(view);
        // Low blocks are to be used first, so that the relation's end may become empty.
        FsmPage.setNextSlot(view, 0);
        buffers.release(buffer);
        return max;
    }

    private void vacuumChildren(
            PageBuffers buffers,
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
                                buffers,
                                relation,
                                level - 1,
                                FsmAddress.childPage(logicalPage, slot),
                                start,
                                end);
                past = endOfMap;
            }
            if (FsmPage.avail(view, slot) != child) {
                buffers.lockExclusive(buffer);
                FsmPage.setAvail(view, slot, child);
                buffers.markDirtyHint(buffer, false);
                buffers.unlock(buffer);
            }
        }
    }

    /**
     * The page, pinned, formatted if it was zeros, in {@code view}; -1 past the end of the fork.
     * (PostgreSQL: fsm_readbuf.)
     */
    private int read(
            PageBuffers buffers,
            SmgrRelation relation,
            int level,
            int logicalPage,
            UnsafeBuffer view) {
        return pages.read(buffers, relation, FsmAddress.block(level, logicalPage), view);
    }
}
