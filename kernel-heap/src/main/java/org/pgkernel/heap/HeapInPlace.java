package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * Overwrites numbers of a row where it stands, for all to see at once and whatever becomes of the
 * transaction: for what a vacuum finds out about a table, which needs no xid and is true in any
 * case. One backend's. (PostgreSQL: heap_inplace_update.)
 */
public final class HeapInPlace {
    private final HeapBackend backend;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    public HeapInPlace(HeapBackend backend) {
        this.backend = backend;
    }

    /**
     * Sets columns whose place is the same in every row: numbers, with nothing but columns of fixed
     * length and without nulls before them. The caller holds a lock that keeps others from changing
     * or removing the row.
     *
     * @throws DamagedDataException when there is no row, or it has no such columns
     */
    public void set(HeapRelation relation, long tid, int[] columns, long[] values) {
        SmgrRelation storage = relation.storage();
        int block = TupleId.block(tid);
        int buffer = backend.buffers.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL);
        backend.pool.wrap(buffer, page);
        backend.buffers.lockExclusive(buffer);
        try {
            int body = body(relation, tid, columns);
            try {
                write(relation, tid, buffer, body, columns, values);
            } catch (RuntimeException | Error e) {
                throw backend.stop("in-place update", relation, block, e);
            }
        } finally {
            backend.buffers.unlock(buffer);
            backend.buffers.release(buffer);
        }
    }

    /** Where the row's values begin. */
    private int body(HeapRelation relation, long tid, int[] columns) {
        int offset = TupleId.offset(tid);
        boolean isThere =
                offset >= PageItems.FIRST_OFFSET_NUMBER
                        && offset <= Page.maxOffsetNumber(page)
                        && Page.lpIsNormal(Page.itemId(page, offset));
        if (!isThere) {
            throw new DamagedDataException(
                    "there is no row to be overwritten at "
                            + TupleId.format(tid)
                            + " "
                            + HeapBackend.place(relation, TupleId.block(tid), page));
        }
        int at = HeapPage.tupleAt(page, offset);
        int length = Page.lpLength(Page.itemId(page, offset));
        boolean hasNulls = (HeapTupleHeader.infomask(page, at) & HeapTuples.HEAP_HASNULL) != 0;
        int hoff = HeapTupleHeader.hoff(page, at);
        for (int column : columns) {
            TupleDescriptor descriptor = relation.descriptor();
            assert descriptor.isByValue(column) && descriptor.fixedOffset(column) >= 0;
            int end = hoff + descriptor.fixedOffset(column) + descriptor.length(column);
            if (end > length || hasNulls && hasNullUpTo(at, column)) {
                throw new DamagedDataException(
                        "a row to be overwritten lacks column "
                                + descriptor.attribute(column).name()
                                + " "
                                + HeapBackend.place(relation, TupleId.block(tid), page));
            }
        }
        return at + hoff;
    }

    private boolean hasNullUpTo(int at, int column) {
        for (int i = 0; i <= column; i++) {
            int bits = page.getByte(at + HeapTupleHeader.SIZE + (i >> 3));
            if ((bits & 1 << (i & 7)) == 0) {
                return true;
            }
        }
        return false;
    }

    /** The critical section. */
    private void write(
            HeapRelation relation, long tid, int buffer, int body, int[] columns, long[] values) {
        TupleDescriptor descriptor = relation.descriptor();
        for (int i = 0; i < columns.length; i++) {
            int to = body + descriptor.fixedOffset(columns[i]);
            switch (descriptor.length(columns[i])) {
                case 1 -> page.putByte(to, (byte) values[i]);
                case 2 -> page.putShort(to, (short) values[i]);
                case 4 -> page.putInt(to, (int) values[i]);
                default -> page.putLong(to, values[i]);
            }
        }
        backend.buffers.markDirty(buffer);
        if (!relation.isLogged()) {
            return;
        }
        int itemId = Page.itemId(page, TupleId.offset(tid));
        int end = Page.lpOffset(itemId) + Page.lpLength(itemId);
        backend.recordData.putShort(HeapRecords.INPLACE_OFFNUM, (short) TupleId.offset(tid));
        SmgrRelation storage = relation.storage();
        long lsn =
                backend.record
                        .begin(HeapRecords.HEAP_RMID, HeapRecords.INPLACE, TransactionId.INVALID)
                        .data(backend.recordData, 0, HeapRecords.INPLACE_SIZE)
                        .page(
                                0,
                                storage.spcOid(),
                                storage.dbOid(),
                                storage.relNumber(),
                                ForkNumber.MAIN,
                                TupleId.block(tid),
                                page,
                                RecordInsert.STANDARD)
                        .pageData(0, page, body, end - body)
                        .insert();
        Page.setLsn(page, lsn);
        backend.session.wroteWal(lsn);
    }
}
