package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/** Steps that several B-tree record types have in common. */
final class BtreeParts {
    private static final int META_DATA_SIZE = 25;

    private BtreeParts() {}

    /** Formats the metapage from the block's data. (PostgreSQL: _bt_restore_meta.) */
    static void restoreMeta(WalRecord record, RedoContext context, int id) {
        RecordCheck.block(record, id);
        RecordCheck.blockData(record, id, META_DATA_SIZE);
        RedoBuffer buffer = context.buffer(id);
        context.init(record, id, buffer);
        BtreePage.formMeta(buffer.page(), record.blockData(id));
        finish(record, buffer);
        buffer.release();
    }

    /** The child's downlink is in the parent now. (PostgreSQL: _bt_clear_incomplete_split.) */
    static void clearIncompleteSplit(WalRecord record, RedoContext context, int id) {
        RecordCheck.block(record, id);
        RedoBuffer buffer = context.buffer(id);
        if (context.read(record, id, buffer) == RedoAction.NEEDS_REDO) {
            BtreePage.check(buffer.page());
            BtreePage.clearFlag(buffer.page(), BtreePage.INCOMPLETE_SPLIT);
            finish(record, buffer);
        }
        buffer.release();
    }

    /**
     * Enters the tuples of a page that was just formatted. They come as they lay on the original
     * page, the highest line pointer first, and are entered from the last to the first.
     * (PostgreSQL: _bt_restore_page.)
     *
     * @param starts scratch for the places of the tuples
     */
    static void restorePage(MutableDirectBuffer page, DirectBuffer data, int length, int[] starts) {
        int count = 0;
        int at = 0;
        while (at < length) {
            if (length - at < IndexTuple.HEADER_SIZE || count == starts.length) {
                throw new DamagedDataException("the page's tuples are cut short or too many");
            }
            int size = Page.maxAlign(IndexTuple.size(data, at));
            if (size < IndexTuple.HEADER_SIZE || size > length - at) {
                throw new DamagedDataException("a tuple runs past the record's data");
            }
            starts[count++] = at;
            at += size;
        }
        int end = length;
        for (int i = count - 1; i >= 0; i--) {
            add(page, data, starts[i], end - starts[i], count - i);
            end = starts[i];
        }
    }

    /** Adds an item that must fit. */
    static void add(
            MutableDirectBuffer page, DirectBuffer item, int at, int length, int offsetNumber) {
        // No line pointer would mean "any free one" to the page.
        if (offsetNumber == PageItems.INVALID_OFFSET_NUMBER
                || PageItems.addItem(page, item, at, length, offsetNumber, false, false)
                        == PageItems.INVALID_OFFSET_NUMBER) {
            throw new DamagedDataException("failed to add item " + offsetNumber + " to the page");
        }
    }

    /** Stamps the page with the record's end and marks it dirty. */
    static void finish(WalRecord record, RedoBuffer buffer) {
        Page.setLsn(buffer.page(), record.endLsn());
        buffer.markDirty();
    }

    /**
     * Formats a page that is nothing but a dummy high key pointing to the top of the subtree being
     * deleted.
     */
    static void formHalfDead(
            UnsafeBuffer page, int prev, int next, int topParent, UnsafeBuffer scratch) {
        BtreePage.init(page);
        BtreePage.setPrev(page, prev);
        BtreePage.setNext(page, next);
        BtreePage.setFlags(page, BtreePage.HALF_DEAD | BtreePage.LEAF);
        BtreeTuple.formTopParent(scratch, 0, topParent);
        add(page, scratch, 0, IndexTuple.HEADER_SIZE, BtreePage.HIGH_KEY);
    }
}
