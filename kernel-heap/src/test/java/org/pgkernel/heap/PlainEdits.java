package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.wal.RecordInsert;

/**
 * Deletes and HOT updates as tests of vacuum need them: of rows that nobody else touches. The page
 * is changed by what redo does with the record, so both are equal.
 */
final class PlainEdits {
    private final HeapBackend backend;
    private final HeapPage pages = new HeapPage();
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final UnsafeBuffer main = new UnsafeBuffer(new byte[64]);
    private final UnsafeBuffer data = new UnsafeBuffer(new byte[Page.SIZE]);

    PlainEdits(HeapBackend backend) {
        this.backend = backend;
    }

    void delete(HeapRelation table, long tid) {
        int block = TupleId.block(tid);
        int xid = backend.session.xid();
        int map = backend.visibilityMap.pin(backend.buffers, table.storage(), block, -1);
        int buffer = lock(table, block);
        boolean cleared = clear(block, map);
        main.setMemory(0, HeapRecords.DELETE_SIZE, (byte) 0);
        main.putInt(HeapRecords.DELETE_XMAX, xid);
        main.putShort(HeapRecords.DELETE_OFFNUM, (short) TupleId.offset(tid));
        main.putByte(
                HeapRecords.DELETE_FLAGS,
                (byte) (cleared ? HeapRecords.DELETE_ALL_VISIBLE_CLEARED : 0));
        HeapPage.delete(page, main, xid, block);
        log(table, buffer, block, HeapRecords.DELETE, xid, HeapRecords.DELETE_SIZE, 0);
        done(buffer, map);
    }

    /**
     * @return the new version's place, on the same page; 0 when there is no room
     */
    long update(HeapRelation table, long tid, RowValues row) {
        int block = TupleId.block(tid);
        int xid = backend.session.xid();
        int map = backend.visibilityMap.pin(backend.buffers, table.storage(), block, -1);
        int buffer = lock(table, block);
        int length = HeapTuples.form(row, backend.tuple, 0);
        if (PageItems.heapFreeSpace(page) < Page.maxAlign(length)) {
            done(buffer, map);
            return 0;
        }
        boolean cleared = clear(block, map);
        HeapTuples.prepareInsert(backend.tuple, 0, xid, 0);
        HeapTupleHeader.setInfomask2(
                backend.tuple,
                0,
                HeapTupleHeader.infomask2(backend.tuple, 0) | HeapTupleHeader.HEAP_ONLY_TUPLE);
        HeapTupleHeader.setInfomask(
                backend.tuple,
                0,
                HeapTupleHeader.infomask(backend.tuple, 0) | HeapTupleHeader.HEAP_UPDATED);
        int offset = freeOffset();
        main.setMemory(0, HeapRecords.UPDATE_SIZE, (byte) 0);
        main.putInt(HeapRecords.UPDATE_OLD_XMAX, xid);
        main.putShort(HeapRecords.UPDATE_OLD_OFFNUM, (short) TupleId.offset(tid));
        main.putByte(
                HeapRecords.UPDATE_FLAGS,
                (byte) (cleared ? HeapRecords.UPDATE_OLD_ALL_VISIBLE_CLEARED : 0));
        main.putShort(HeapRecords.UPDATE_NEW_OFFNUM, (short) offset);
        HeapInserter.putHeader(data, 0, backend.tuple, 0);
        int body = length - HeapTupleHeader.SIZE;
        data.putBytes(HeapRecords.HEADER_SIZE, backend.tuple, HeapTupleHeader.SIZE, body);
        int dataLength = HeapRecords.HEADER_SIZE + body;
        pages.updateNew(page, main, data, dataLength, xid, block, true);
        HeapPage.updateOld(page, main, xid, block, true);
        log(table, buffer, block, HeapRecords.HOT_UPDATE, xid, HeapRecords.UPDATE_SIZE, dataLength);
        done(buffer, map);
        return TupleId.of(block, offset);
    }

    private int freeOffset() {
        int last = Page.maxOffsetNumber(page);
        for (int i = 1; i <= last; i++) {
            if (!Page.lpIsUsed(Page.itemId(page, i))) {
                return i;
            }
        }
        return last + 1;
    }

    private int lock(HeapRelation table, int block) {
        int buffer = backend.buffers.read(table.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
        backend.buffers.lockExclusive(buffer);
        backend.pool.wrap(buffer, page);
        return buffer;
    }

    private boolean clear(int block, int map) {
        boolean visible = Page.isAllVisible(page);
        if (visible) {
            Page.clearAllVisible(page);
            backend.visibilityMap.clear(backend.buffers, block, map, VisibilityMap.VALID_BITS);
        }
        return visible;
    }

    private void log(
            HeapRelation table,
            int buffer,
            int block,
            int info,
            int xid,
            int mainLength,
            int dataLength) {
        backend.buffers.markDirty(buffer);
        if (!table.isLogged()) {
            return;
        }
        backend.record
                .begin(HeapRecords.HEAP_RMID, info, xid)
                .data(main, 0, mainLength)
                .page(
                        0,
                        table.storage().spcOid(),
                        table.storage().dbOid(),
                        table.storage().relNumber(),
                        ForkNumber.MAIN,
                        block,
                        page,
                        RecordInsert.STANDARD);
        if (dataLength > 0) {
            backend.record.pageData(0, data, 0, dataLength);
        }
        Page.setLsn(page, backend.record.insert());
    }

    private void done(int buffer, int map) {
        backend.buffers.unlock(buffer);
        backend.buffers.release(buffer);
        VisibilityMap.release(backend.buffers, map);
    }
}
