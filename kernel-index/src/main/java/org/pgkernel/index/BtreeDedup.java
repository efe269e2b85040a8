package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;

/**
 * One deduplication pass over a leaf: runs of tuples with equal keys become posting list tuples.
 * The record says which runs, as pairs of the first line pointer and the number of tuples;
 * everything else is taken from the page. Reused; not thread-safe. (PostgreSQL: btree_xlog_dedup,
 * BTDedupState.)
 */
final class BtreeDedup {
    private final UnsafeBuffer tids = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer tuple = new UnsafeBuffer(new byte[Page.SIZE]);

    private int baseAt;
    private int baseOffset;
    private int baseKeySize;
    private int tidCount;
    private int items;
    private int interval;

    /**
     * Builds the page after the pass.
     *
     * @param page checked with {@link BtreePage#check}; not changed
     * @param copy the result
     * @param intervals {@code count} pairs of 2 + 2 bytes: line pointer, number of tuples
     */
    void rebuild(DirectBuffer page, MutableDirectBuffer copy, DirectBuffer intervals, int count) {
        int first = BtreePage.firstDataKey(page);
        int last = Page.maxOffsetNumber(page);
        if (first > last) {
            throw new DamagedDataException("a page without items cannot be deduplicated");
        }
        BtreePage.initLike(copy, page);
        if (!BtreePage.isRightmost(page)) {
            int itemId = BtreePage.checkedItemId(page, BtreePage.HIGH_KEY);
            add(copy, page, Page.lpOffset(itemId), Page.lpLength(itemId), BtreePage.HIGH_KEY);
        }
        interval = 0;
        for (int offset = first; offset <= last; offset++) {
            int at = Page.lpOffset(BtreePage.checkedItemId(page, offset));
            if (offset == first) {
                startPending(page, at, offset);
            } else if (interval < count
                    && baseOffset == (intervals.getShort(interval * 4) & 0xFFFF)
                    && items < (intervals.getShort(interval * 4 + 2) & 0xFFFF)) {
                append(page, at);
            } else {
                finishPending(page, copy, intervals);
                startPending(page, at, offset);
            }
        }
        finishPending(page, copy, intervals);
        if (interval != count) {
            throw new DamagedDataException("deduplication intervals do not match the page");
        }
        BtreePage.clearFlag(copy, BtreePage.HAS_GARBAGE);
    }

    private void startPending(DirectBuffer page, int at, int offset) {
        baseAt = at;
        baseOffset = offset;
        tidCount = 0;
        items = 1;
        takeTids(page, at);
        baseKeySize = BtreeTuple.keySize(page, at);
    }

    private void append(DirectBuffer page, int at) {
        takeTids(page, at);
        if (Page.maxAlign(baseKeySize + tidCount * IndexTuple.TID_SIZE) > BtreePage.MAX_ITEM_SIZE) {
            throw new DamagedDataException(
                    "deduplication failed to add heap tid to pending posting list");
        }
        items++;
    }

    private void takeTids(DirectBuffer page, int at) {
        if (BtreeTuple.isPosting(page, at)) {
            BtreeTuple.checkPosting(page, at);
            int count = BtreeTuple.postingCount(page, at);
            int bytes = count * IndexTuple.TID_SIZE;
            requireRoom(bytes);
            tids.putBytes(
                    tidCount * IndexTuple.TID_SIZE,
                    page,
                    at + BtreeTuple.postingOffset(page, at),
                    bytes);
            tidCount += count;
        } else {
            requireRoom(IndexTuple.TID_SIZE);
            IndexTuple.copyTid(tids, tidCount * IndexTuple.TID_SIZE, page, at);
            tidCount++;
        }
    }

    private void requireRoom(int bytes) {
        if (tidCount * IndexTuple.TID_SIZE + bytes > tids.capacity()) {
            throw new DamagedDataException("a pending posting list would be too large");
        }
    }

    private void finishPending(
            DirectBuffer page, MutableDirectBuffer copy, DirectBuffer intervals) {
        int offset = Page.maxOffsetNumber(copy) + 1;
        if (items == 1) {
            add(copy, page, baseAt, IndexTuple.size(page, baseAt), offset);
        } else {
            if (items != (intervals.getShort(interval * 4 + 2) & 0xFFFF)) {
                throw new DamagedDataException("deduplication intervals do not match the page");
            }
            int size = BtreeTuple.formPosting(tuple, page, baseAt, tids, tidCount);
            add(copy, tuple, 0, size, offset);
            interval++;
        }
    }

    private static void add(
            MutableDirectBuffer copy, DirectBuffer item, int at, int length, int offset) {
        if (PageItems.addItem(copy, item, at, length, offset, false, false)
                == PageItems.INVALID_OFFSET_NUMBER) {
            throw new DamagedDataException("deduplication failed to add tuple to page");
        }
    }
}
