package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * Removal of items, and of single tids from posting lists.
 *
 * <pre>
 *   VACUUM main data: items to delete 2, items to update 2
 *   DELETE main data: newest xid removed 4, items to delete 2, items to update 2
 *   block 0, data: line pointers to delete 2 each, line pointers to update 2 each,
 *     then for each of the latter: count 2, positions in the posting list to remove 2 each
 * </pre>
 *
 * VACUUM takes a cleanup lock, as the original did: a scan may rest on the page between two items.
 * (PostgreSQL: btree_xlog_vacuum, btree_xlog_delete, btree_xlog_updates.)
 */
final class BtreeDeleteRedo {
    private final PageItems items = new PageItems();
    private final UnsafeBuffer tuple = new UnsafeBuffer(new byte[Page.SIZE]);
    private final int[] deleted = new int[PageItems.MAX_LINE_POINTERS];

    void redoVacuum(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, 4);
        RecordCheck.block(record, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, ReadMode.NORMAL, true, buffer) == RedoAction.NEEDS_REDO) {
            apply(record, buffer, 0);
        }
        buffer.release();
    }

    void redoDelete(WalRecord record, RedoContext context) {
        RecordCheck.mainData(record, 8);
        RecordCheck.block(record, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            apply(record, buffer, 4);
        }
        buffer.release();
    }

    private void apply(WalRecord record, RedoBuffer buffer, int countsAt) {
        int deletedCount = record.data().getShort(countsAt) & 0xFFFF;
        int updatedCount = record.data().getShort(countsAt + 2) & 0xFFFF;
        UnsafeBuffer page = buffer.page();
        BtreePage.check(page);
        int needed = (deletedCount + updatedCount) * 2 + updatedCount * 2;
        if (needed > 0) {
            RecordCheck.blockData(record, 0, needed);
            change(
                    page,
                    record.blockData(0),
                    record.blockDataLength(0),
                    deletedCount,
                    updatedCount);
        }
        BtreePage.clearFlag(page, BtreePage.HAS_GARBAGE);
        BtreeParts.finish(record, buffer);
    }

    void change(
            UnsafeBuffer page, DirectBuffer data, int length, int deletedCount, int updatedCount) {
        if (deletedCount > deleted.length) {
            throw new DamagedDataException("the record deletes more items than a page can have");
        }
        int updatesAt = (deletedCount + updatedCount) * 2;
        for (int i = 0; i < updatedCount; i++) {
            int offsetNumber = data.getShort((deletedCount + i) * 2) & 0xFFFF;
            updatesAt = update(page, offsetNumber, data, length, updatesAt);
        }
        if (deletedCount > 0) {
            for (int i = 0; i < deletedCount; i++) {
                deleted[i] = data.getShort(i * 2) & 0xFFFF;
            }
            items.indexMultiDelete(page, deleted, deletedCount);
        }
    }

    /**
     * @return where the next item's positions begin
     */
    private int update(UnsafeBuffer page, int offsetNumber, DirectBuffer data, int length, int at) {
        int removed = length - at < 2 ? -1 : data.getShort(at) & 0xFFFF;
        if (removed < 0 || removed * 2 > length - at - 2) {
            throw new DamagedDataException("updates of posting lists run past the record's data");
        }
        int tupleAt = Page.lpOffset(BtreePage.checkedItemId(page, offsetNumber));
        BtreeTuple.checkPosting(page, tupleAt);
        int size = BtreeTuple.updatePosting(tuple, page, tupleAt, data, at + 2, removed);
        if (!PageItems.indexTupleOverwrite(page, offsetNumber, tuple, 0, Page.maxAlign(size))) {
            throw new DamagedDataException("failed to update partially dead item");
        }
        return at + 2 + removed * 2;
    }
}
