package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * Deletion of whole pages in two steps, and new roots.
 *
 * <pre>
 *   MARK_PAGE_HALFDEAD: parent's line pointer 2, pad 2, leaf 4, its left sibling 4, right sibling 4, top parent 4
 *     block 0: the leaf; block 1: the parent of the subtree
 *   UNLINK_PAGE: left sibling 4, right sibling 4, level 4, pad 4, safe xid 8, leaf's left 4 and right 4, leaf's top parent 4
 *     block 0: the page; 1: left sibling, if any; 2: right sibling; 3: the leaf, if it is another page; 4: metapage (UNLINK_PAGE_META)
 *   NEWROOT: block 4, level 4
 *     block 0: the root; data: its tuples; 1: left child (level above 0); 2: metapage
 * </pre>
 *
 * (PostgreSQL: btree_xlog_mark_page_halfdead, btree_xlog_unlink_page, btree_xlog_newroot.)
 */
final class BtreePageRedo {
    private static final int HALFDEAD_SIZE = 20;
    private static final int UNLINK_SIZE = 36;
    private static final int NEWROOT_SIZE = 8;

    private final UnsafeBuffer scratch = new UnsafeBuffer(new byte[IndexTuple.HEADER_SIZE]);
    private final int[] starts = new int[PageItems.MAX_LINE_POINTERS];

    /** Locks one page at a time: the subtree is empty, nobody minds arriving there. */
    void redoMarkHalfDead(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, HALFDEAD_SIZE);
        RecordCheck.block(record, 0);
        RecordCheck.block(record, 1);
        DirectBuffer main = record.data();
        RedoBuffer parent = context.buffer(1);
        if (context.read(record, 1, parent) == RedoAction.NEEDS_REDO) {
            BtreePage.check(parent.page());
            removeDownlink(parent.page(), main.getShort(0) & 0xFFFF);
            BtreeParts.finish(record, parent);
        }
        parent.release();

        RedoBuffer leaf = context.buffer(0);
        context.init(record, 0, leaf);
        BtreeParts.formHalfDead(
                leaf.page(), main.getInt(8), main.getInt(12), main.getInt(16), scratch);
        BtreeParts.finish(record, leaf);
        leaf.release();
    }

    /**
     * The item keeps its key and takes the next item's downlink, which goes: the key space moves to
     * the right sibling.
     */
    static void removeDownlink(UnsafeBuffer page, int offsetNumber) {
        int next = Page.lpOffset(BtreePage.checkedItemId(page, offsetNumber + 1));
        int at = Page.lpOffset(BtreePage.checkedItemId(page, offsetNumber));
        IndexTuple.setTidBlock(page, at, IndexTuple.tidBlock(page, next));
        PageItems.indexTupleDelete(page, offsetNumber + 1);
    }

    /**
     * Locks left sibling, page, right sibling in this order; the siblings are released once the
     * page is marked deleted.
     */
    void redoUnlink(WalRecord record, RedoContext context, boolean meta) {
        RecordCheck.mainData(record, UNLINK_SIZE);
        RecordCheck.block(record, 0);
        RecordCheck.block(record, 2);
        RecordCheck.distinct(record, 0, 1);
        RecordCheck.distinct(record, 0, 2);
        RecordCheck.distinct(record, 1, 2);
        DirectBuffer main = record.data();
        int leftBlock = main.getInt(0);
        int rightBlock = main.getInt(4);
        int level = main.getInt(8);

        RedoBuffer left = context.buffer(1);
        if (leftBlock != BtreePage.NONE) {
            RecordCheck.block(record, 1);
            if (context.read(record, 1, left) == RedoAction.NEEDS_REDO) {
                BtreePage.check(left.page());
                BtreePage.setNext(left.page(), rightBlock);
                BtreeParts.finish(record, left);
            }
        }
        RedoBuffer target = context.buffer(0);
        context.init(record, 0, target);
        UnsafeBuffer page = target.page();
        BtreePage.init(page);
        BtreePage.setPrev(page, leftBlock);
        BtreePage.setNext(page, rightBlock);
        BtreePage.setLevel(page, level);
        BtreePage.setDeleted(page, main.getLong(16));
        if (level == 0) {
            BtreePage.setFlags(page, BtreePage.flags(page) | BtreePage.LEAF);
        }
        BtreeParts.finish(record, target);

        RedoBuffer right = context.buffer(2);
        if (context.read(record, 2, right) == RedoAction.NEEDS_REDO) {
            BtreePage.check(right.page());
            BtreePage.setPrev(right.page(), leftBlock);
            BtreeParts.finish(record, right);
        }
        left.release();
        right.release();
        target.release();

        if (record.maxBlockId() >= 3 && record.hasBlock(3)) {
            RedoBuffer leaf = context.buffer(3);
            context.init(record, 3, leaf);
            BtreeParts.formHalfDead(
                    leaf.page(), main.getInt(24), main.getInt(28), main.getInt(32), scratch);
            BtreeParts.finish(record, leaf);
            leaf.release();
        }
        if (meta) {
            BtreeParts.restoreMeta(record, context, 4);
        }
    }

    void redoNewRoot(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, NEWROOT_SIZE);
        RecordCheck.block(record, 0);
        RecordCheck.distinct(record, 0, 1);
        int level = record.data().getInt(4);
        RedoBuffer root = context.buffer(0);
        context.init(record, 0, root);
        UnsafeBuffer page = root.page();
        BtreePage.init(page);
        BtreePage.setLevel(page, level);
        BtreePage.setFlags(page, BtreePage.ROOT | (level == 0 ? BtreePage.LEAF : 0));
        if (level != 0) {
            int length = record.hasBlockData(0) ? record.blockDataLength(0) : 0;
            if (length > 0) {
                BtreeParts.restorePage(page, record.blockData(0), length, starts);
            }
            BtreeParts.clearIncompleteSplit(record, context, 1);
        }
        BtreeParts.finish(record, root);
        root.release();
        BtreeParts.restoreMeta(record, context, 2);
    }
}
