package org.pgkernel.heap;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.recovery.RedoAction;
import org.pgkernel.recovery.RedoBuffer;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.wal.WalRecord;

/**
 * What Heap and Heap2 redo share. One thread; buffers 0 and 1 of the context are theirs during a
 * record.
 */
abstract class AbstractHeapRedo extends AbstractResourceManager {
    /**
     * Free space below which inserts and updates tell the free space map, bytes: a fifth of a page.
     */
    private static final int LOW_SPACE = Page.SIZE / 5;

    final HeapPage pages = new HeapPage();
    final FreeSpaceMap freeSpaceMap;
    final VisibilityMap visibilityMap = new VisibilityMap();

    /** Block id that a complaint is about. */
    int place;

    /**
     * @param fsmThreshold heaps of at most so many blocks get no free space map
     */
    AbstractHeapRedo(int fsmThreshold, int id, String... types) {
        super(id, types);
        freeSpaceMap = new FreeSpaceMap(fsmThreshold);
    }

    /** Applies the record; complaints need no place. Releases its buffers unless it complains. */
    abstract void apply(WalRecord record, RedoContext context);

    /**
     * HEAP-4: when this throws, pages the record was about to change stay held, so that recovery
     * can put back what their files hold: a page formatted for a +INIT record is empty already.
     */
    @Override
    public final void redo(WalRecord record, RedoContext context) {
        place = 0;
        try {
            apply(record, context);
        } catch (DamagedDataException e) {
            throw e.getMessage().contains(" lsn=")
                    ? e
                    : new DamagedDataException(
                            e.getMessage() + " " + context.place(record, place), e);
        }
    }

    /** The reference is to a page of the main fork, or redo could wait for a map page it holds. */
    static void require(WalRecord record, int mainLength, int blockId) {
        require(record, mainLength, blockId, ForkNumber.MAIN);
    }

    static void require(WalRecord record, int mainLength, int blockId, ForkNumber fork) {
        if (record.dataLength() < mainLength) {
            throw new DamagedDataException(
                    "record data of " + record.dataLength() + " bytes is too short");
        }
        if (!record.hasBlock(blockId)) {
            throw new DamagedDataException("record has no block reference " + blockId);
        }
        if (record.blockFork(blockId) != fork) {
            throw new DamagedDataException(
                    "block reference " + blockId + " is not to the fork " + fork);
        }
    }

    /** Length of block 0's data, which must be there. */
    static int blockDataLength(WalRecord record, int least) {
        int length = record.hasBlockData(0) ? record.blockDataLength(0) : 0;
        if (length < least || length == 0) {
            throw new DamagedDataException("block data of " + length + " bytes is too short");
        }
        return length;
    }

    /** Block 0's page, formatted anew for a +INIT record. */
    static RedoAction readOrInit(WalRecord record, RedoContext context, RedoBuffer buffer) {
        if ((record.info() & HeapRecords.INIT_PAGE) == 0) {
            return context.read(record, 0, buffer);
        }
        context.init(record, 0, buffer);
        Page.init(buffer.page(), 0);
        return RedoAction.NEEDS_REDO;
    }

    static void finish(WalRecord record, RedoBuffer buffer) {
        Page.setLsn(buffer.page(), record.endLsn());
        buffer.markDirty();
    }

    /**
     * Before the heap page is looked at: the map may need it even when the page has the change.
     * Holds no lock.
     */
    final void clearVisibility(WalRecord record, RedoContext context, int block, int bits) {
        visibilityMap.clear(
                context.pool(),
                context.relation(record.blockSpc(0), record.blockDb(0), record.blockRel(0)),
                block,
                bits);
    }

    final void clearFrozenIfLocked(WalRecord record, RedoContext context) {
        if ((record.data().getByte(HeapRecords.LOCK_FLAGS) & HeapRecords.LOCK_ALL_FROZEN_CLEARED)
                != 0) {
            clearVisibility(record, context, record.blockNumber(0), VisibilityMap.ALL_FROZEN);
        }
    }

    /** Locks of heap pages are released. */
    final void recordFreeSpace(WalRecord record, RedoContext context, int blockId, int free) {
        freeSpaceMap.recordInRedo(
                context,
                record.blockSpc(blockId),
                record.blockDb(blockId),
                record.blockRel(blockId),
                record.blockNumber(blockId),
                free);
    }

    final void recordIfLow(WalRecord record, RedoContext context, int block, int free) {
        if (free < LOW_SPACE) {
            freeSpaceMap.recordInRedo(
                    context,
                    record.blockSpc(0),
                    record.blockDb(0),
                    record.blockRel(0),
                    block,
                    free);
        }
    }
}
