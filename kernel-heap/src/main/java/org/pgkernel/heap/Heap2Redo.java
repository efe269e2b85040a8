package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * Redo of pruning, vacuum, freezing, the visibility map and bulk inserts. (PostgreSQL: heap2_redo,
 * heapam.c.)
 */
final class Heap2Redo extends AbstractHeapRedo {
    Heap2Redo(int fsmThreshold) {
        super(
                fsmThreshold,
                HeapRecords.HEAP2_RMID,
                "REWRITE",
                "PRUNE",
                "VACUUM",
                "FREEZE_PAGE",
                "VISIBLE",
                "MULTI_INSERT",
                "LOCK_UPDATED",
                "NEW_CID",
                null,
                null,
                null,
                null,
                null,
                "MULTI_INSERT+INIT");
    }

    /** All but REWRITE, which writes mapping files for logical decoding. */
    @Override
    public boolean covers(int info) {
        return identify(info) != null && (info & 0xF0) != HeapRecords.REWRITE;
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        switch (record.info() & HeapRecords.OPERATION_MASK) {
            case HeapRecords.PRUNE -> prune(record, context);
            case HeapRecords.VACUUM -> vacuum(record, context);
            case HeapRecords.FREEZE_PAGE -> freeze(record, context);
            case HeapRecords.VISIBLE -> visible(record, context);
            case HeapRecords.MULTI_INSERT -> multiInsert(record, context);
            case HeapRecords.LOCK_UPDATED -> lockUpdated(record, context);
            // For logical decoding only.
            case HeapRecords.NEW_CID -> {}
            default -> throw new AssertionError("REWRITE is not covered");
        }
    }

    private void prune(WalRecord record, RedoContext context) {
        require(record, HeapRecords.PRUNE_SIZE, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, ReadMode.NORMAL, true, buffer) == RedoAction.NEEDS_REDO) {
            pages.prune(
                    buffer.page(), record.data(), record.blockData(0), blockDataLength(record, 2));
            finish(record, buffer);
        }
        releaseAndRecord(record, context, buffer);
    }

    private void vacuum(WalRecord record, RedoContext context) {
        require(record, HeapRecords.VACUUM_SIZE, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.vacuum(
                    buffer.page(), record.data(), record.blockData(0), blockDataLength(record, 2));
            finish(record, buffer);
        }
        releaseAndRecord(record, context, buffer);
    }

    /**
     * The map learns the page's space whether or not the page was changed: it is not in the page.
     */
    private void releaseAndRecord(WalRecord record, RedoContext context, RedoBuffer buffer) {
        if (buffer.isValid()) {
            int free = PageItems.heapFreeSpace(buffer.page());
            buffer.release();
            recordFreeSpace(record, context, 0, free);
        }
    }

    private void freeze(WalRecord record, RedoContext context) {
        require(record, HeapRecords.FREEZE_SIZE, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.freeze(
                    buffer.page(), record.data(), record.blockData(0), blockDataLength(record, 1));
            finish(record, buffer);
        }
        buffer.release();
    }

    /**
     * HEAP-3: never a map bit without the page's flag. The heap page comes first; its LSN moves
     * only when hint changes are logged, for nothing else of the page was read. The map is set even
     * when the heap page has gone or is newer: whatever clears the bit again is replayed after
     * this.
     */
    private void visible(WalRecord record, RedoContext context) {
        require(record, HeapRecords.VISIBLE_SIZE, 0, ForkNumber.VISIBILITY_MAP);
        require(record, HeapRecords.VISIBLE_SIZE, 1);
        int bits = record.data().getByte(HeapRecords.VISIBLE_FLAGS) & 0xFF;
        int block = record.blockNumber(1);
        if ((bits & ~VisibilityMap.VALID_BITS) != 0) {
            // They would run over into the next heap block's.
            throw new DamagedDataException("invalid visibility map bits " + bits);
        }
        place = 1;
        RedoBuffer heap = context.buffer(1);
        if (context.readUnseen(record, 1, heap) == RedoAction.NEEDS_REDO) {
            Page.setAllVisible(heap.page());
            if (context.pool().hintsAreLogged()) {
                Page.setLsn(heap.page(), record.endLsn());
            }
            heap.markDirty();
        }
        if (heap.isValid()) {
            int free = Page.freeSpace(heap.page());
            heap.release();
            if ((bits & VisibilityMap.VALID_BITS) != 0) {
                recordFreeSpace(record, context, 1, free);
            }
        }
        place = 0;
        RedoBuffer map = context.buffer(0);
        if (context.read(record, 0, ReadMode.ZERO_ON_ERROR, false, map) == RedoAction.NEEDS_REDO) {
            setVisible(record, map, block, bits);
        }
        map.release();
    }

    private static void setVisible(WalRecord record, RedoBuffer map, int block, int bits) {
        if (map.block() != VisibilityMap.mapBlock(block)) {
            throw new DamagedDataException(
                    "wrong visibility map block for heap block " + Integer.toUnsignedString(block));
        }
        UnsafeBuffer page = map.page();
        if (Page.isNew(page)) {
            Page.init(page, 0);
        }
        if (VisibilityMap.set(page, block, bits, record.endLsn())) {
            map.markDirty();
        }
    }

    private void multiInsert(WalRecord record, RedoContext context) {
        require(record, HeapRecords.MULTI_INSERT_SIZE, 0);
        DirectBuffer main = record.data();
        int block = record.blockNumber(0);
        if ((main.getByte(HeapRecords.MULTI_INSERT_FLAGS) & HeapRecords.INSERT_ALL_VISIBLE_CLEARED)
                != 0) {
            clearVisibility(record, context, block, VisibilityMap.VALID_BITS);
        }
        RedoBuffer buffer = context.buffer(0);
        RedoAction action = readOrInit(record, context, buffer);
        int free = Page.SIZE;
        if (action == RedoAction.NEEDS_REDO) {
            pages.multiInsert(
                    buffer.page(),
                    main,
                    record.dataLength(),
                    record.blockData(0),
                    blockDataLength(record, HeapRecords.MULTI_TUPLE_SIZE),
                    record.xid(),
                    block,
                    (record.info() & HeapRecords.INIT_PAGE) != 0);
            free = PageItems.heapFreeSpace(buffer.page());
            finish(record, buffer);
        }
        buffer.release();
        recordIfLow(record, context, block, free);
    }

    private void lockUpdated(WalRecord record, RedoContext context) {
        require(record, HeapRecords.LOCK_SIZE, 0);
        clearFrozenIfLocked(record, context);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.lockUpdated(buffer.page(), record.data());
            finish(record, buffer);
        }
        buffer.release();
    }
}
