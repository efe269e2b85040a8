package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.wal.RecordInsert;

/** Inserts rows, each as a tuple of the session's transaction and current command. */
public final class HeapInserter {
    private final HeapBackend backend;
    private final TargetPage target;
    private final TupleBatch batch = new TupleBatch();
    private int batchXid;
    private int batchCommandId;

    public HeapInserter(HeapBackend backend) {
        this.backend = backend;
        target = new TargetPage(backend);
    }

    /**
     * Inserts a row. The caller holds a lock on the relation that allows it. After a failure pins
     * and locks may be left to the innermost buffer scope.
     *
     * @return where it is, see {@link TupleId} (PostgreSQL: heap_insert)
     */
    public long insert(HeapRelation relation, RowValues row) {
        return insert(relation, row, null);
    }

    /**
     * The same, one of many.
     *
     * @param bulk null when it is not
     */
    public long insert(HeapRelation relation, RowValues row, BulkInsert bulk) {
        int xid = backend.session.xid();
        int commandId = backend.session.commandId(true);
        RowValues stored = backend.toast().toStore(relation, row, null);
        int length = HeapTuples.size(stored);
        TargetPage.checkedSize(relation, length);
        HeapTuples.form(stored, backend.tuple, 0);
        HeapTuples.prepareInsert(backend.tuple, 0, xid, commandId);
        int buffer = target.find(relation, length, bulk);
        int block = backend.pool.block(buffer);
        try {
            return TupleId.of(block, put(relation, buffer, block, length, xid));
        } finally {
            letGo(buffer);
        }
    }

    private void letGo(int buffer) {
        backend.buffers.unlock(buffer);
        backend.buffers.release(buffer);
        target.releaseMaps();
    }

    /** The critical section. @return the line pointer */
    private int put(HeapRelation relation, int buffer, int block, int length, int xid) {
        UnsafeBuffer page = target.page;
        try {
            int offset = putTuple(page, backend.tuple, 0, length, block);
            boolean cleared = clearAllVisible(block);
            backend.buffers.markDirty(buffer);
            if (relation.isLogged()) {
                log(relation, block, offset, length, xid, cleared);
            }
            return offset;
        } catch (RuntimeException | Error e) {
            throw backend.stop("insertion", relation, block, e);
        }
    }

    /** Flag and bit go together, with the record that says so. @return false if they were clear */
    private boolean clearAllVisible(int block) {
        if (!Page.isAllVisible(target.page)) {
            return false;
        }
        Page.clearAllVisible(target.page);
        backend.visibilityMap.clear(
                backend.buffers, block, target.mapBuffer(), VisibilityMap.VALID_BITS);
        return true;
    }

    /**
     * Inserts rows, as many to a page as fit with one record. (PostgreSQL: heap_multi_insert.)
     *
     * @param tids gets where the rows are, if not null
     * @param bulk may be null
     */
    public void multiInsert(
            HeapRelation relation, RowValues[] rows, int count, long[] tids, BulkInsert bulk) {
        beginMany();
        for (int done = 0; done < count; ) {
            batch.clear();
            int from = done;
            while (done < count && batch.hasRoom()) {
                form(relation, rows[done]);
                done++;
            }
            putBatch(relation, batchXid, done == count, tids, from, bulk);
        }
    }

    /**
     * Rows come one by one, all of this command and for one relation: {@link #add} keeps them until
     * they are as many as one multi-insert takes, {@link #flush} puts the last ones down.
     * (PostgreSQL: CopyMultiInsertInfo.)
     */
    public void beginMany() {
        batch.clear();
        batchXid = backend.session.xid();
        batchCommandId = backend.session.commandId(true);
    }

    /** The row's values are not needed any more on return. */
    public void add(HeapRelation relation, RowValues row, BulkInsert bulk) {
        if (!batch.hasRoom()) {
            flush(relation, bulk);
        }
        form(relation, row);
    }

    public void flush(HeapRelation relation, BulkInsert bulk) {
        putBatch(relation, batchXid, true, null, 0, bulk);
        batch.clear();
    }

    /** Long values are moved out of line here, before any page is locked. */
    private void form(HeapRelation relation, RowValues row) {
        RowValues stored = backend.toast().toStore(relation, row, null);
        int length = HeapTuples.size(stored);
        TargetPage.checkedSize(relation, length);
        int at = batch.add(length);
        HeapTuples.form(stored, batch.tuples, at);
        HeapTuples.prepareInsert(batch.tuples, at, batchXid, batchCommandId);
    }

    private void putBatch(
            HeapRelation relation,
            int xid,
            boolean isLast,
            long[] tids,
            int firstTid,
            BulkInsert bulk) {
        for (int done = 0; done < batch.count; ) {
            int buffer = target.find(relation, batch.lengths[done], bulk);
            int block = backend.pool.block(buffer);
            try {
                int next = putMany(relation, buffer, block, done, xid, isLast);
                for (int i = done; tids != null && i < next; i++) {
                    tids[firstTid + i] = TupleId.of(block, batch.offsets[i]);
                }
                done = next;
            } finally {
                letGo(buffer);
            }
        }
    }

    /** The critical section. @return the first tuple of the batch that is not on this page */
    private int putMany(
            HeapRelation relation, int buffer, int block, int from, int xid, boolean isLast) {
        UnsafeBuffer page = target.page;
        boolean wasEmpty = Page.maxOffsetNumber(page) == 0;
        try {
            int next = from;
            do {
                batch.offsets[next] =
                        putTuple(
                                page, batch.tuples, batch.starts[next], batch.lengths[next], block);
                next++;
            } while (next < batch.count
                    && Page.maxAlign(batch.lengths[next]) + relation.reservedSpace()
                            <= PageItems.heapFreeSpace(page));
            boolean cleared = clearAllVisible(block);
            backend.buffers.markDirty(buffer);
            if (relation.isLogged()) {
                int flags = cleared ? HeapRecords.INSERT_ALL_VISIBLE_CLEARED : 0;
                if (isLast && next == batch.count) {
                    flags |= HeapRecords.INSERT_LAST_IN_MULTI;
                }
                logMany(relation, block, from, next, xid, wasEmpty, flags);
            }
            return next;
        } catch (RuntimeException | Error e) {
            throw backend.stop("insertion", relation, block, e);
        }
    }

    private void logMany(
            HeapRelation relation,
            int block,
            int from,
            int next,
            int xid,
            boolean init,
            int flags) {
        UnsafeBuffer data = backend.recordData;
        data.putShort(HeapRecords.MULTI_INSERT_FLAGS, (short) flags);
        data.putShort(HeapRecords.MULTI_INSERT_NTUPLES, (short) (next - from));
        int mainLength = HeapRecords.MULTI_INSERT_SIZE;
        for (int i = from; !init && i < next; i++) {
            data.putShort(mainLength, (short) batch.offsets[i]);
            mainLength += 2;
        }
        RecordInsert record =
                backend.record
                        .begin(
                                HeapRecords.HEAP2_RMID,
                                HeapRecords.MULTI_INSERT | (init ? HeapRecords.INIT_PAGE : 0),
                                xid)
                        .data(data, 0, mainLength)
                        .page(
                                0,
                                relation.storage().spcOid(),
                                relation.storage().dbOid(),
                                relation.storage().relNumber(),
                                ForkNumber.MAIN,
                                block,
                                target.page,
                                RecordInsert.STANDARD | (init ? RecordInsert.WILL_INIT : 0));
        int written = 0;
        data.putByte(HeapRecords.MULTI_TUPLE_SIZE, (byte) 0);
        for (int i = from; i < next; i++) {
            if ((written & 1) != 0) {
                record.pageData(0, data, HeapRecords.MULTI_TUPLE_SIZE, 1);
                written++;
            }
            int body = batch.lengths[i] - HeapTupleHeader.SIZE;
            data.putShort(HeapRecords.MULTI_TUPLE_DATALEN, (short) body);
            putHeader(data, HeapRecords.MULTI_TUPLE_INFOMASK2, batch.tuples, batch.starts[i]);
            record.pageData(0, data, 0, HeapRecords.MULTI_TUPLE_SIZE);
            record.pageData(0, batch.tuples, batch.starts[i] + HeapTupleHeader.SIZE, body);
            written += HeapRecords.MULTI_TUPLE_SIZE + body;
        }
        Page.setLsn(target.page, record.insert());
    }

    /** Adds the tuple, which then knows its place. (PostgreSQL: RelationPutHeapTuple.) */
    static int putTuple(UnsafeBuffer page, DirectBuffer tuple, int at, int length, int block) {
        int offset =
                PageItems.addItem(
                        page, tuple, at, length, PageItems.INVALID_OFFSET_NUMBER, false, true);
        if (offset == PageItems.INVALID_OFFSET_NUMBER) {
            throw new IllegalStateException("failed to add a tuple to its page");
        }
        HeapTupleHeader.setCtid(page, Page.lpOffset(Page.itemId(page, offset)), block, offset);
        return offset;
    }

    private void log(
            HeapRelation relation,
            int block,
            int offset,
            int length,
            int xid,
            boolean allVisibleCleared) {
        UnsafeBuffer page = target.page;
        UnsafeBuffer tuple = backend.tuple;
        UnsafeBuffer data = backend.recordData;
        // The page's only tuple: redo makes the page anew, no image is needed.
        boolean init = offset == 1 && Page.maxOffsetNumber(page) == 1;
        data.putShort(HeapRecords.INSERT_OFFNUM, (short) offset);
        data.putByte(
                HeapRecords.INSERT_FLAGS,
                (byte) (allVisibleCleared ? HeapRecords.INSERT_ALL_VISIBLE_CLEARED : 0));
        int header = HeapRecords.INSERT_SIZE;
        putHeader(data, header, tuple, 0);
        int info = HeapRecords.INSERT | (init ? HeapRecords.INIT_PAGE : 0);
        long end =
                backend.record
                        .begin(HeapRecords.HEAP_RMID, info, xid)
                        .data(data, 0, HeapRecords.INSERT_SIZE)
                        .page(
                                0,
                                relation.storage().spcOid(),
                                relation.storage().dbOid(),
                                relation.storage().relNumber(),
                                ForkNumber.MAIN,
                                block,
                                page,
                                RecordInsert.STANDARD | (init ? RecordInsert.WILL_INIT : 0))
                        .pageData(0, data, header, HeapRecords.HEADER_SIZE)
                        .pageData(0, tuple, HeapTupleHeader.SIZE, length - HeapTupleHeader.SIZE)
                        .insert();
        Page.setLsn(page, end);
    }

    /** What records keep of a tuple's header. */
    static void putHeader(UnsafeBuffer to, int at, DirectBuffer tuple, int from) {
        to.putShort(
                at + HeapRecords.HEADER_INFOMASK2, (short) HeapTupleHeader.infomask2(tuple, from));
        to.putShort(
                at + HeapRecords.HEADER_INFOMASK, (short) HeapTupleHeader.infomask(tuple, from));
        to.putByte(at + HeapRecords.HEADER_HOFF, (byte) HeapTupleHeader.hoff(tuple, from));
    }
}
