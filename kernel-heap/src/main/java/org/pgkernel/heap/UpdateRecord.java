package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.wal.RecordInsert;

/**
 * The WAL record of an update. What the new version has in common with the old one at its beginning
 * and its end is left out if both are on one page; there redo finds it. Reused; one backend's.
 * (PostgreSQL: log_heap_update.)
 */
final class UpdateRecord {
    /** What is saved must be more than the two bytes that say how much it is. */
    private static final int WORTH_IT = 3;

    private final HeapBackend backend;
    private final UnsafeBuffer data;
    private int prefix;
    private int suffix;

    UpdateRecord(HeapBackend backend) {
        this.backend = backend;
        data = backend.recordData;
    }

    /**
     * Both pages carry the change and are locked; they get the record's LSN.
     *
     * @param old the old version
     * @param page the new one's, which may be the same
     * @param at where the new version is in it
     * @param length its bytes
     */
    void insert(
            LockedTuple old,
            UnsafeBuffer page,
            int block,
            int offset,
            int at,
            int length,
            int xid,
            int flags) {
        boolean samePage = block == old.block;
        boolean isHot =
                (HeapTupleHeader.infomask2(page, at) & HeapTupleHeader.HEAP_ONLY_TUPLE) != 0;
        boolean init = offset == 1 && Page.maxOffsetNumber(page) == 1;
        prefix = 0;
        suffix = 0;
        // With an image the tuple is not in the record.
        if (samePage && Page.lsn(page) > backend.wal.imageLsn()) {
            compare(old, page, at, length);
        }
        int info = isHot ? HeapRecords.HOT_UPDATE : HeapRecords.UPDATE;
        RecordInsert record =
                backend.record.begin(
                        HeapRecords.HEAP_RMID, info | (init ? HeapRecords.INIT_PAGE : 0), xid);
        putMain(old, page, at, offset, flags);
        record.data(data, 0, HeapRecords.UPDATE_SIZE);
        HeapRelation relation = old.relation;
        record.page(
                0,
                relation.storage().spcOid(),
                relation.storage().dbOid(),
                relation.storage().relNumber(),
                ForkNumber.MAIN,
                block,
                page,
                RecordInsert.STANDARD | (init ? RecordInsert.WILL_INIT : 0));
        if (!samePage) {
            old.register(1);
        }
        putTuple(record, page, at, length);
        long end = record.insert();
        Page.setLsn(page, end);
        if (!samePage) {
            Page.setLsn(old.page, end);
        }
    }

    private void compare(LockedTuple old, DirectBuffer page, int at, int length) {
        int oldHoff = HeapTupleHeader.hoff(old.page, old.at);
        int hoff = HeapTupleHeader.hoff(page, at);
        int most = Math.min(old.length - oldHoff, length - hoff);
        int oldData = old.at + oldHoff;
        int newData = at + hoff;
        while (prefix < most && page.getByte(newData + prefix) == page.getByte(oldData + prefix)) {
            prefix++;
        }
        prefix = prefix < WORTH_IT ? 0 : prefix;
        int oldEnd = old.at + old.length - 1;
        int newEnd = at + length - 1;
        most -= prefix;
        while (suffix < most && page.getByte(newEnd - suffix) == page.getByte(oldEnd - suffix)) {
            suffix++;
        }
        suffix = suffix < WORTH_IT ? 0 : suffix;
    }

    private void putMain(LockedTuple old, DirectBuffer page, int at, int offset, int flags) {
        data.putInt(HeapRecords.UPDATE_OLD_XMAX, old.rawXmax());
        data.putShort(HeapRecords.UPDATE_OLD_OFFNUM, (short) old.offset);
        data.putByte(
                HeapRecords.UPDATE_OLD_INFOBITS,
                (byte) NewXmax.infobits(old.infomask(), old.infomask2()));
        data.putByte(
                HeapRecords.UPDATE_FLAGS,
                (byte)
                        (flags
                                | (prefix > 0 ? HeapRecords.UPDATE_PREFIX_FROM_OLD : 0)
                                | (suffix > 0 ? HeapRecords.UPDATE_SUFFIX_FROM_OLD : 0)));
        data.putInt(HeapRecords.UPDATE_NEW_XMAX, HeapTupleHeader.xmax(page, at));
        data.putShort(HeapRecords.UPDATE_NEW_OFFNUM, (short) offset);
    }

    private void putTuple(RecordInsert record, DirectBuffer page, int at, int length) {
        int from = HeapRecords.UPDATE_SIZE;
        int to = from;
        if (prefix > 0) {
            data.putShort(to, (short) prefix);
            to += 2;
        }
        if (suffix > 0) {
            data.putShort(to, (short) suffix);
            to += 2;
        }
        HeapInserter.putHeader(data, to, page, at);
        record.pageData(0, data, from, to + HeapRecords.HEADER_SIZE - from);
        int hoff = HeapTupleHeader.hoff(page, at);
        int body = at + HeapTupleHeader.SIZE;
        if (prefix == 0) {
            record.pageData(0, page, body, length - HeapTupleHeader.SIZE - suffix);
            return;
        }
        // The bitmap is not part of what both have in common.
        if (hoff > HeapTupleHeader.SIZE) {
            record.pageData(0, page, body, hoff - HeapTupleHeader.SIZE);
        }
        record.pageData(0, page, at + hoff + prefix, length - hoff - prefix - suffix);
    }
}
