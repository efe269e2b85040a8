package org.pgkernel.fsm;

import org.pgkernel.base.BlockNumber;

/**
 * Where a page of the free space map lies in its fork. Three levels of pages; a page's logical
 * number counts the pages of its level from the left; the fork holds them depth first:
 *
 * <pre>
 *   block 0  root            level 2, page 0
 *   block 1  first middle    level 1, page 0
 *   block 2  first leaf      level 0, page 0     heap blocks 0 to 4068
 *   block 3  second leaf     level 0, page 1
 *   …
 *   block 4071  second middle, block 4072 its first leaf
 * </pre>
 *
 * (PostgreSQL: FSMAddress and its functions, freespace.c.)
 */
final class FsmAddress {
    static final int TREE_DEPTH = 3;
    static final int ROOT_LEVEL = TREE_DEPTH - 1;
    static final int BOTTOM_LEVEL = 0;

    private FsmAddress() {}

    /** The leaf page of a heap block. */
    static int leafOf(int heapBlock) {
        return (int) (BlockNumber.toLong(heapBlock) / FsmPage.SLOTS);
    }

    /** The slot of a heap block in its leaf page. */
    static int slotOf(int heapBlock) {
        return (int) (BlockNumber.toLong(heapBlock) % FsmPage.SLOTS);
    }

    /** The heap block of a slot of a leaf page. (PostgreSQL: fsm_get_heap_blk.) */
    static int heapBlock(int leaf, int slot) {
        return leaf * FsmPage.SLOTS + slot;
    }

    /** Block number in the fork. (PostgreSQL: fsm_logical_to_physical.) */
    static int block(int level, int logicalPage) {
        int leaf = logicalPage;
        for (int l = BOTTOM_LEVEL; l < level; l++) {
            leaf *= FsmPage.SLOTS;
        }
        int pages = 0;
        for (int l = BOTTOM_LEVEL; l < TREE_DEPTH; l++) {
            pages += leaf + 1;
            leaf /= FsmPage.SLOTS;
        }
        return pages - level - 1;
    }

    static int parentPage(int logicalPage) {
        return logicalPage / FsmPage.SLOTS;
    }

    static int parentSlot(int logicalPage) {
        return logicalPage % FsmPage.SLOTS;
    }

    static int childPage(int logicalPage, int slot) {
        return logicalPage * FsmPage.SLOTS + slot;
    }
}
