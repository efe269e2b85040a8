package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/** Inserts rows, each as a tuple of the session's transaction and current command. */
public final class HeapInserter {
    private final HeapBackend backend;
    private final TargetPage target;

    public HeapInserter(HeapBackend backend) {
        this.backend = backend;
        target = new TargetPage(backend);
    }

    /**
     * Inserts a row. The caller holds a lock on the relation that allows it.
     *
     * @return where it is, see {@link TupleId} (PostgreSQL: heap_insert)
     */
    public long insert(HeapRelation relation, RowValues row) {
        int xid = backend.session.xid();
        int commandId = backend.session.commandId(true);
        int length = HeapTuples.size(row);
        int buffer = target.find(relation, length, null);
        int block = backend.pool.block(buffer);
        try {
            HeapTuples.form(row, backend.tuple, 0);
            HeapTuples.prepareInsert(backend.tuple, 0, xid, commandId);
            return TupleId.of(block, put(relation, buffer, block, length, xid));
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, block);
        } finally {
            backend.buffers.unlock(buffer);
            backend.buffers.release(buffer);
            target.releaseMaps();
        }
    }

    /** The critical section. @return the line pointer */
    private int put(HeapRelation relation, int buffer, int block, int length, int xid) {
        UnsafeBuffer page = target.page;
        try {
            int offset = putTuple(page, backend.tuple, 0, length, block);
            boolean wasAllVisible = Page.isAllVisible(page);
            if (wasAllVisible) {
                Page.clearAllVisible(page);
                backend.visibilityMap.clear(
                        backend.buffers, block, target.mapBuffer(), VisibilityMap.VALID_BITS);
            }
            backend.buffers.markDirty(buffer);
            if (relation.isLogged()) {
                log(relation, block, offset, length, xid, wasAllVisible);
            }
            return offset;
        } catch (RuntimeException | Error e) {
            throw backend.stop("insertion", relation, block, e);
        }
    }

    /** Adds the tuple, which then knows its place. (PostgreSQL: RelationPutHeapTuple.) */
    static int putTuple(UnsafeBuffer page, UnsafeBuffer tuple, int at, int length, int block) {
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
        SmgrRelation storage = relation.storage();
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
                                storage.spcOid(),
                                storage.dbOid(),
                                storage.relNumber(),
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
    static void putHeader(UnsafeBuffer to, int at, UnsafeBuffer tuple, int from) {
        to.putShort(
                at + HeapRecords.HEADER_INFOMASK2, (short) HeapTupleHeader.infomask2(tuple, from));
        to.putShort(
                at + HeapRecords.HEADER_INFOMASK, (short) HeapTupleHeader.infomask(tuple, from));
        to.putByte(at + HeapRecords.HEADER_HOFF, (byte) HeapTupleHeader.hoff(tuple, from));
    }
}
