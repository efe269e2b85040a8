package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * Page splits, and deduplication, which rebuilds a page the same way: in a copy, item by item in
 * key order, so that tuples lie as they would after the original operation; then the whole copy
 * replaces the page, bytes between line pointers and items included.
 *
 * <pre>
 *   split, main data: level 4, first line pointer that moves right 2, new item's line pointer 2, position in a posting list or 0  2
 *   block 0: the page; data: new item if it goes left or a posting list is split, then the new high key
 *   block 1: the new right sibling; data: all its tuples
 *   block 2: the page right of both, if any
 *   block 3: the child whose split ends with this one (upper levels)
 *
 *   dedup, main data: number of intervals 2; block 0: the page; data: the intervals
 * </pre>
 *
 * Pages 1, 0 and 2 are locked in this order and released together, so that no reader sees half a
 * split. (PostgreSQL: btree_xlog_split, btree_xlog_dedup.)
 */
final class BtreeSplitRedo {
    private static final int MAIN_SIZE = 10;

    private final UnsafeBuffer copy = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer newItem = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer newPosting = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer scratch = new UnsafeBuffer(new byte[IndexTuple.HEADER_SIZE]);
    private final int[] starts = new int[PageItems.MAX_LINE_POINTERS];
    private final BtreeDedup dedup = new BtreeDedup();

    void redo(WalRecord record, RedoContext context, boolean newItemOnLeft) {
        RecordCheck.mainData(record, MAIN_SIZE);
        RecordCheck.block(record, 0);
        RecordCheck.block(record, 1);
        RecordCheck.distinct(record, 0, 1);
        RecordCheck.distinct(record, 0, 2);
        RecordCheck.distinct(record, 1, 2);
        DirectBuffer main = record.data();
        int level = main.getInt(0);
        int leftBlock = record.blockNumber(0);
        int rightBlock = record.blockNumber(1);
        boolean hasNext = record.maxBlockId() >= 2 && record.hasBlock(2);
        int nextBlock = hasNext ? record.blockNumber(2) : BtreePage.NONE;
        if (level != 0) {
            BtreeParts.clearIncompleteSplit(record, context, 3);
        }
        RedoBuffer right = context.buffer(1);
        context.init(record, 1, right);
        UnsafeBuffer rightPage = right.page();
        BtreePage.init(rightPage);
        BtreePage.setPrev(rightPage, leftBlock);
        BtreePage.setNext(rightPage, nextBlock);
        BtreePage.setLevel(rightPage, level);
        BtreePage.setFlags(rightPage, level == 0 ? BtreePage.LEAF : 0);
        int length = record.hasBlockData(1) ? record.blockDataLength(1) : 0;
        if (length > 0) {
            BtreeParts.restorePage(rightPage, record.blockData(1), length, starts);
        }
        BtreeParts.finish(record, right);

        RedoBuffer left = context.buffer(0);
        if (context.read(record, 0, left) == RedoAction.NEEDS_REDO) {
            UnsafeBuffer page = left.page();
            BtreePage.check(page);
            RecordCheck.blockData(record, 0, IndexTuple.HEADER_SIZE);
            rebuildLeft(page, main, record.blockData(0), record.blockDataLength(0), newItemOnLeft);
            page.putBytes(0, copy, 0, Page.SIZE);
            BtreePage.setFlags(
                    page, BtreePage.INCOMPLETE_SPLIT | (level == 0 ? BtreePage.LEAF : 0));
            BtreePage.setNext(page, rightBlock);
            BtreePage.setCycleId(page, 0);
            BtreeParts.finish(record, left);
        }
        if (nextBlock != BtreePage.NONE) {
            relinkNext(record, context, rightBlock);
        }
        right.release();
        left.release();
    }

    private void relinkNext(WalRecord record, RedoContext context, int rightBlock) {
        RedoBuffer next = context.buffer(2);
        if (context.read(record, 2, next) == RedoAction.NEEDS_REDO) {
            BtreePage.check(next.page());
            BtreePage.setPrev(next.page(), rightBlock);
            BtreeParts.finish(record, next);
        }
        next.release();
    }

    /**
     * Builds the left half in {@link #copy} without touching the page.
     *
     * @param main the split's main data
     * @param data block 0's
     */
    void rebuildLeft(
            DirectBuffer page, DirectBuffer main, DirectBuffer data, int length, boolean onLeft) {
        int firstRight = main.getShort(4) & 0xFFFF;
        int newItemOffset = main.getShort(6) & 0xFFFF;
        int position = main.getShort(8) & 0xFFFF;
        int highKeyAt = 0;
        int newItemSize = 0;
        int replaced = PageItems.INVALID_OFFSET_NUMBER;
        if (onLeft || position != 0) {
            newItemSize = tupleAt(data, 0, length);
            highKeyAt = newItemSize;
            newItem.putBytes(0, data, 0, newItemSize);
            if (position != 0) {
                replaced = newItemOffset - 1;
                swapInCopy(page, replaced, position);
            }
        }
        int highKeySize = tupleAt(data, highKeyAt, length);
        int first = BtreePage.firstDataKey(page);
        if (firstRight > Page.maxOffsetNumber(page) + 1 || firstRight < first) {
            throw new DamagedDataException("the page was split at line pointer " + firstRight);
        }
        if (onLeft && (newItemOffset < first || newItemOffset > firstRight)
                || position != 0 && (replaced < first || replaced >= firstRight)) {
            throw new DamagedDataException(
                    "the new item's line pointer "
                            + newItemOffset
                            + " is not in the left half, which ends before "
                            + firstRight);
        }
        BtreePage.initLike(copy, page);
        BtreeParts.add(copy, data, highKeyAt, highKeySize, BtreePage.HIGH_KEY);
        int to = BtreePage.HIGH_KEY + 1;
        for (int offset = first; offset < firstRight; offset++) {
            if (offset == replaced) {
                int size = Page.maxAlign(IndexTuple.size(newPosting, 0));
                BtreeParts.add(copy, newPosting, 0, size, to++);
                continue;
            }
            if (onLeft && offset == newItemOffset) {
                BtreeParts.add(copy, newItem, 0, newItemSize, to++);
            }
            int itemId = BtreePage.checkedItemId(page, offset);
            BtreeParts.add(copy, page, Page.lpOffset(itemId), Page.lpLength(itemId), to++);
        }
        if (onLeft && firstRight == newItemOffset) {
            BtreeParts.add(copy, newItem, 0, newItemSize, to);
        }
    }

    /**
     * The posting list that the new item's tid belongs into, with that tid, in {@link #newPosting};
     * the new item gets its highest tid.
     */
    private void swapInCopy(DirectBuffer page, int offsetNumber, int position) {
        int at = Page.lpOffset(BtreePage.checkedItemId(page, offsetNumber));
        BtreeTuple.checkPosting(page, at);
        int size = IndexTuple.size(page, at);
        newPosting.putBytes(0, page, at, Page.maxAlign(size));
        BtreeTuple.swapPosting(newItem, 0, newPosting, 0, position, scratch);
    }

    /** Bytes of the tuple at this place of the record's data, rounded up to 8. */
    private static int tupleAt(DirectBuffer data, int at, int length) {
        if (length - at < IndexTuple.HEADER_SIZE) {
            throw new DamagedDataException("the split's data ends before its high key");
        }
        int size = Page.maxAlign(IndexTuple.size(data, at));
        if (size < IndexTuple.HEADER_SIZE || size > length - at) {
            throw new DamagedDataException("a tuple runs past the record's data");
        }
        return size;
    }

    /** The rebuilt page of the last {@link #rebuildLeft}. */
    UnsafeBuffer copy() {
        return copy;
    }

    void redoDedup(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, 2);
        RecordCheck.block(record, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            UnsafeBuffer page = buffer.page();
            BtreePage.check(page);
            int intervals = record.data().getShort(0) & 0xFFFF;
            RecordCheck.blockData(record, 0, intervals * 4);
            dedup.rebuild(page, copy, record.blockData(0), intervals);
            page.putBytes(0, copy, 0, Page.SIZE);
            BtreeParts.finish(record, buffer);
        }
        buffer.release();
    }
}
