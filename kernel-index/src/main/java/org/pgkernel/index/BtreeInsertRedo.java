package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * Insertion without a page split.
 *
 * <pre>
 *   main data: line pointer 2
 *   block 0: the page; data: the tuple, or for INSERT_POST: position in the posting list 2, the tuple as it was before the swap
 *   block 1: the child whose split ends with this insertion (upper levels)
 *   block 2: the metapage (INSERT_META)
 * </pre>
 *
 * Locks one page at a time. (PostgreSQL: btree_xlog_insert.)
 */
final class BtreeInsertRedo {
    private final UnsafeBuffer newItem = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer scratch = new UnsafeBuffer(new byte[IndexTuple.HEADER_SIZE]);

    void redo(WalRecord record, RedoContext context, boolean leaf, boolean meta, boolean posting) {
        RecordCheck.mainData(record, 2);
        RecordCheck.block(record, 0);
        if (!leaf) {
            BtreeParts.clearIncompleteSplit(record, context, 1);
        }
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            UnsafeBuffer page = buffer.page();
            BtreePage.check(page);
            RecordCheck.blockData(record, 0, IndexTuple.HEADER_SIZE);
            int offsetNumber = record.data().getShort(0) & 0xFFFF;
            DirectBuffer data = record.blockData(0);
            int length = record.blockDataLength(0);
            if (posting) {
                insertIntoPosting(page, offsetNumber, data, length);
            } else {
                BtreeParts.add(page, data, 0, length, offsetNumber);
            }
            BtreeParts.finish(record, buffer);
        }
        buffer.release();
        if (meta) {
            BtreeParts.restoreMeta(record, context, 2);
        }
    }

    /** Everything is checked before the posting list on the page changes. */
    void insertIntoPosting(UnsafeBuffer page, int offsetNumber, DirectBuffer data, int length) {
        int size = length - 2;
        if (size < IndexTuple.HEADER_SIZE
                || size > newItem.capacity()
                || Page.maxAlign(size) + Page.ITEM_ID_SIZE > Page.exactFreeSpace(page)
                || offsetNumber > Page.maxOffsetNumber(page) + 1) {
            throw new DamagedDataException("failed to add posting split new item");
        }
        int at = Page.lpOffset(BtreePage.checkedItemId(page, offsetNumber - 1));
        BtreeTuple.checkPosting(page, at);
        newItem.putBytes(0, data, 2, size);
        BtreeTuple.swapPosting(newItem, 0, page, at, data.getShort(0) & 0xFFFF, scratch);
        BtreeParts.add(page, newItem, 0, size, offsetNumber);
    }
}
