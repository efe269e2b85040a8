package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/** Redo of inserts, updates, deletes and row locks. (PostgreSQL: heap_redo, heapam.c.) */
final class HeapRedo extends AbstractHeapRedo {
    HeapRedo(int fsmThreshold) {
        super(
                fsmThreshold,
                HeapRecords.HEAP_RMID,
                "INSERT",
                "DELETE",
                "UPDATE",
                "TRUNCATE",
                "HOT_UPDATE",
                "HEAP_CONFIRM",
                "LOCK",
                "INPLACE",
                "INSERT+INIT",
                null,
                "UPDATE+INIT",
                null,
                "HOT_UPDATE+INIT");
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        switch (record.info() & HeapRecords.OPERATION_MASK) {
            case HeapRecords.INSERT -> insert(record, context);
            case HeapRecords.DELETE -> delete(record, context);
            case HeapRecords.UPDATE -> update(record, context, false);
            case HeapRecords.HOT_UPDATE -> update(record, context, true);
            case HeapRecords.CONFIRM -> confirm(record, context);
            case HeapRecords.LOCK -> lock(record, context);
            case HeapRecords.INPLACE -> inplace(record, context);
            // The files are replaced by Storage records; this one is for logical decoding.
            case HeapRecords.TRUNCATE -> {}
            default -> throw new AssertionError("operation mask");
        }
    }

    private void insert(WalRecord record, RedoContext context) {
        require(record, HeapRecords.INSERT_SIZE, 0);
        DirectBuffer main = record.data();
        int block = record.blockNumber(0);
        if ((main.getByte(HeapRecords.INSERT_FLAGS) & HeapRecords.INSERT_ALL_VISIBLE_CLEARED)
                != 0) {
            clearVisibility(record, context, block, VisibilityMap.VALID_BITS);
        }
        RedoBuffer buffer = context.buffer(0);
        RedoAction action = readOrInit(record, context, buffer);
        int free = Page.SIZE;
        if (action == RedoAction.NEEDS_REDO) {
            pages.insert(
                    buffer.page(),
                    main,
                    record.blockData(0),
                    blockDataLength(record, HeapRecords.HEADER_SIZE),
                    record.xid(),
                    block);
            free = PageItems.heapFreeSpace(buffer.page());
            finish(record, buffer);
        }
        buffer.release();
        recordIfLow(record, context, block, free);
    }

    private void delete(WalRecord record, RedoContext context) {
        require(record, HeapRecords.DELETE_SIZE, 0);
        DirectBuffer main = record.data();
        int block = record.blockNumber(0);
        if ((main.getByte(HeapRecords.DELETE_FLAGS) & HeapRecords.DELETE_ALL_VISIBLE_CLEARED)
                != 0) {
            clearVisibility(record, context, block, VisibilityMap.VALID_BITS);
        }
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.delete(buffer.page(), main, record.xid(), block);
            finish(record, buffer);
        }
        buffer.release();
    }

    /**
     * Both pages are read before either is changed and the old one is released last. PostgreSQL
     * changes the old one first; the bytes come out the same, and a record or page found damaged
     * here has changed nothing.
     */
    private void update(WalRecord record, RedoContext context, boolean hot) {
        require(record, HeapRecords.UPDATE_SIZE, 0);
        if (record.hasBlock(1)) {
            require(record, HeapRecords.UPDATE_SIZE, 1);
        }
        DirectBuffer main = record.data();
        int flags = main.getByte(HeapRecords.UPDATE_FLAGS);
        int newBlock = record.blockNumber(0);
        int oldBlock = record.hasBlock(1) ? record.blockNumber(1) : newBlock;
        boolean samePage = oldBlock == newBlock;
        if ((flags & HeapRecords.UPDATE_OLD_ALL_VISIBLE_CLEARED) != 0) {
            clearVisibility(record, context, oldBlock, VisibilityMap.VALID_BITS);
        }
        RedoBuffer oldBuffer = context.buffer(1);
        place = samePage ? 0 : 1;
        RedoAction oldAction = context.read(record, place, oldBuffer);
        if (oldAction == RedoAction.NEEDS_REDO) {
            HeapPage.checkOld(oldBuffer.page(), main);
        }
        place = 0;
        RedoBuffer newBuffer = samePage ? oldBuffer : context.buffer(0);
        RedoAction newAction = samePage ? oldAction : readOrInit(record, context, newBuffer);
        if ((flags & HeapRecords.UPDATE_NEW_ALL_VISIBLE_CLEARED) != 0) {
            clearVisibility(record, context, newBlock, VisibilityMap.VALID_BITS);
        }
        int free = Page.SIZE;
        if (newAction == RedoAction.NEEDS_REDO) {
            pages.updateNew(
                    newBuffer.page(),
                    main,
                    record.blockData(0),
                    blockDataLength(record, HeapRecords.HEADER_SIZE),
                    record.xid(),
                    newBlock,
                    samePage);
            free = PageItems.heapFreeSpace(newBuffer.page());
        }
        if (oldAction == RedoAction.NEEDS_REDO) {
            HeapPage.updateOld(oldBuffer.page(), main, record.xid(), newBlock, hot);
            finish(record, oldBuffer);
        }
        if (newAction == RedoAction.NEEDS_REDO && !samePage) {
            finish(record, newBuffer);
        }
        if (!samePage) {
            newBuffer.release();
        }
        oldBuffer.release();
        // Of the two versions of a HOT update one is dead after a crash: the space will be there
        // again.
        if (!hot) {
            recordIfLow(record, context, newBlock, free);
        }
    }

    private void confirm(WalRecord record, RedoContext context) {
        require(record, HeapRecords.CONFIRM_SIZE, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.confirm(buffer.page(), record.data(), record.blockNumber(0));
            finish(record, buffer);
        }
        buffer.release();
    }

    private void lock(WalRecord record, RedoContext context) {
        require(record, HeapRecords.LOCK_SIZE, 0);
        clearFrozenIfLocked(record, context);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.lock(buffer.page(), record.data(), record.blockNumber(0));
            finish(record, buffer);
        }
        buffer.release();
    }

    private void inplace(WalRecord record, RedoContext context) {
        require(record, HeapRecords.INPLACE_SIZE, 0);
        RedoBuffer buffer = context.buffer(0);
        if (context.read(record, 0, buffer) == RedoAction.NEEDS_REDO) {
            HeapPage.inplace(
                    buffer.page(), record.data(), record.blockData(0), blockDataLength(record, 0));
            finish(record, buffer);
        }
        buffer.release();
    }
}
