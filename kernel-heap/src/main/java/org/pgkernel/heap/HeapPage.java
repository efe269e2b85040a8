package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_HOT_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_KEYS_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_MOVED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_BITS;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_LOCK_ONLY;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;

/**
 * What the heap's records do to a page, all but the LSN. The caller holds the page's exclusive
 * lock, for {@link #prune} a cleanup lock, and stamps the page when the call returns.
 *
 * <p>HEAP-1: a call either makes its change or throws {@link DamagedDataException} (without the
 * place) and leaves all bytes outside the hole as they were, so that a page never carries half a
 * record. Line pointers and lengths of page and record are checked before anything is written;
 * where a late failure is possible the header and line pointers are saved first.
 *
 * <p>Owns scratch memory: one thread. Allocates nothing but in the constructor.
 */
final class HeapPage {
    private final PageItems items = new PageItems();
    private final UnsafeBuffer saved = new UnsafeBuffer(new byte[Page.SIZE]);
    private final UnsafeBuffer tuple = new UnsafeBuffer(new byte[Page.SIZE]);

    /** (PostgreSQL: heap_xlog_insert.) */
    void insert(
            MutableDirectBuffer page,
            DirectBuffer main,
            DirectBuffer data,
            int length,
            int xid,
            int block) {
        int offnum = offsetNumber(main, HeapRecords.INSERT_OFFNUM);
        checkNewOffset(page, offnum);
        int bodyLength = length - HeapRecords.HEADER_SIZE;
        checkTupleLength(bodyLength, 0);
        tuple.setMemory(0, HeapTupleHeader.SIZE, (byte) 0);
        tuple.putBytes(HeapTupleHeader.SIZE, data, HeapRecords.HEADER_SIZE, bodyLength);
        headerFrom(data, 0);
        finishNewTuple(xid, block, offnum);
        addTuple(page, HeapTupleHeader.SIZE + bodyLength, offnum);
        insertFlags(page, main.getByte(HeapRecords.INSERT_FLAGS));
    }

    /**
     * @param init line pointers run from 1 and the record does not list them. (PostgreSQL:
     *     heap_xlog_multi_insert.)
     */
    void multiInsert(
            MutableDirectBuffer page,
            DirectBuffer main,
            int mainLength,
            DirectBuffer data,
            int length,
            int xid,
            int block,
            boolean init) {
        int count = main.getShort(HeapRecords.MULTI_INSERT_NTUPLES) & 0xFFFF;
        if (!init && mainLength < HeapRecords.MULTI_INSERT_OFFSETS + 2 * count) {
            throw new DamagedDataException(
                    "multi-insert record of "
                            + mainLength
                            + " bytes cannot list "
                            + count
                            + " line pointers");
        }
        save(page);
        try {
            int at = 0;
            for (int i = 0; i < count; i++) {
                int offnum =
                        init ? i + 1 : offsetNumber(main, HeapRecords.MULTI_INSERT_OFFSETS + 2 * i);
                at = multiInsertOne(page, data, at + 1 & ~1, length, offnum, xid, block);
            }
            if (at != length) {
                throw new DamagedDataException(
                        "total tuple length mismatch: " + at + " of " + length);
            }
        } catch (DamagedDataException e) {
            restore(page);
            throw e;
        }
        insertFlags(page, main.getByte(HeapRecords.MULTI_INSERT_FLAGS));
    }

    private int multiInsertOne(
            MutableDirectBuffer page,
            DirectBuffer data,
            int at,
            int length,
            int offnum,
            int xid,
            int block) {
        checkNewOffset(page, offnum);
        if (length - at < HeapRecords.MULTI_TUPLE_SIZE) {
            throw new DamagedDataException("multi-insert record ends in a tuple's header");
        }
        int bodyLength = data.getShort(at + HeapRecords.MULTI_TUPLE_DATALEN) & 0xFFFF;
        int body = at + HeapRecords.MULTI_TUPLE_SIZE;
        checkTupleLength(bodyLength, 0);
        if (length - body < bodyLength) {
            throw new DamagedDataException("multi-insert record ends in a tuple");
        }
        tuple.setMemory(0, HeapTupleHeader.SIZE, (byte) 0);
        tuple.putBytes(HeapTupleHeader.SIZE, data, body, bodyLength);
        headerFrom(data, at + HeapRecords.MULTI_TUPLE_INFOMASK2);
        finishNewTuple(xid, block, offnum);
        addTuple(page, HeapTupleHeader.SIZE + bodyLength, offnum);
        return body + bodyLength;
    }

    /** (PostgreSQL: heap_xlog_delete.) */
    static void delete(MutableDirectBuffer page, DirectBuffer main, int xid, int block) {
        int offnum = offsetNumber(main, HeapRecords.DELETE_OFFNUM);
        int flags = main.getByte(HeapRecords.DELETE_FLAGS);
        int at = tupleAt(page, offnum);
        clearXmaxBits(page, at);
        HeapTupleHeader.setInfomask2(
                page, at, HeapTupleHeader.infomask2(page, at) & ~HEAP_HOT_UPDATED);
        setInfobits(page, at, main.getByte(HeapRecords.DELETE_INFOBITS));
        if ((flags & HeapRecords.DELETE_IS_SUPER) == 0) {
            HeapTupleHeader.setXmax(page, at, main.getInt(HeapRecords.DELETE_XMAX));
        } else {
            HeapTupleHeader.setXmin(page, at, TransactionId.INVALID);
        }
        HeapTupleHeader.setFirstCommand(page, at);
        setPrunable(page, xid);
        if ((flags & HeapRecords.DELETE_ALL_VISIBLE_CLEARED) != 0) {
            Page.clearAllVisible(page);
        }
        if ((flags & HeapRecords.DELETE_IS_PARTITION_MOVE) != 0) {
            HeapTupleHeader.setCtid(
                    page, at, BlockNumber.INVALID, HeapTupleHeader.MOVED_PARTITIONS_OFFSET_NUMBER);
        } else {
            HeapTupleHeader.setCtid(page, at, block, offnum);
        }
    }

    /**
     * The old version of an updated tuple. Call after {@link #updateNew} when both are on one page,
     * so that a new version that does not fit leaves the old one alone. (PostgreSQL:
     * heap_xlog_update.)
     */
    static void updateOld(
            MutableDirectBuffer page, DirectBuffer main, int xid, int newBlock, boolean hot) {
        int at = tupleAt(page, offsetNumber(main, HeapRecords.UPDATE_OLD_OFFNUM));
        clearXmaxBits(page, at);
        int infomask2 = HeapTupleHeader.infomask2(page, at);
        HeapTupleHeader.setInfomask2(
                page, at, hot ? infomask2 | HEAP_HOT_UPDATED : infomask2 & ~HEAP_HOT_UPDATED);
        setInfobits(page, at, main.getByte(HeapRecords.UPDATE_OLD_INFOBITS));
        HeapTupleHeader.setXmax(page, at, main.getInt(HeapRecords.UPDATE_OLD_XMAX));
        HeapTupleHeader.setFirstCommand(page, at);
        HeapTupleHeader.setCtid(
                page, at, newBlock, offsetNumber(main, HeapRecords.UPDATE_NEW_OFFNUM));
        setPrunable(page, xid);
        if ((main.getByte(HeapRecords.UPDATE_FLAGS) & HeapRecords.UPDATE_OLD_ALL_VISIBLE_CLEARED)
                != 0) {
            Page.clearAllVisible(page);
        }
    }

    /** Throws unless the old version is where the record says. */
    static void checkOld(DirectBuffer page, DirectBuffer main) {
        tupleAt(page, offsetNumber(main, HeapRecords.UPDATE_OLD_OFFNUM));
    }

    /**
     * The new version of an updated tuple.
     *
     * @param samePage the old version is on this page too and may lend its first and last bytes.
     *     (PostgreSQL: heap_xlog_update.)
     */
    void updateNew(
            MutableDirectBuffer page,
            DirectBuffer main,
            DirectBuffer data,
            int length,
            int xid,
            int block,
            boolean samePage) {
        int offnum = offsetNumber(main, HeapRecords.UPDATE_NEW_OFFNUM);
        int flags = main.getByte(HeapRecords.UPDATE_FLAGS);
        checkNewOffset(page, offnum);
        int tupleLength = assembleNew(page, main, data, length, flags, samePage);
        finishNewTuple(xid, block, offnum);
        HeapTupleHeader.setXmax(tuple, 0, main.getInt(HeapRecords.UPDATE_NEW_XMAX));
        addTuple(page, tupleLength, offnum);
        if ((flags & HeapRecords.UPDATE_NEW_ALL_VISIBLE_CLEARED) != 0) {
            Page.clearAllVisible(page);
        }
    }

    /**
     * Puts the new version together in {@link #tuple}: bitmap, prefix of the old, data, suffix of
     * the old. @return its length
     */
    private int assembleNew(
            DirectBuffer page,
            DirectBuffer main,
            DirectBuffer data,
            int length,
            int flags,
            boolean samePage) {
        boolean hasPrefix = (flags & HeapRecords.UPDATE_PREFIX_FROM_OLD) != 0;
        boolean hasSuffix = (flags & HeapRecords.UPDATE_SUFFIX_FROM_OLD) != 0;
        int header = (hasPrefix ? 2 : 0) + (hasSuffix ? 2 : 0);
        int from = header + HeapRecords.HEADER_SIZE;
        int bodyLength = length - from;
        checkTupleLength(bodyLength, 0);
        int prefix = hasPrefix ? data.getShort(0) & 0xFFFF : 0;
        int suffix = hasSuffix ? data.getShort(header - 2) & 0xFFFF : 0;
        checkTupleLength(bodyLength, prefix + suffix);
        int old = 0;
        int oldLength = 0;
        if (hasPrefix || hasSuffix) {
            int oldOffnum = offsetNumber(main, HeapRecords.UPDATE_OLD_OFFNUM);
            if (!samePage) {
                throw new DamagedDataException(
                        "update record takes bytes from a tuple of another page");
            }
            old = tupleAt(page, oldOffnum);
            oldLength = Page.lpLength(Page.itemId(page, oldOffnum));
        }
        tuple.setMemory(0, HeapTupleHeader.SIZE, (byte) 0);
        headerFrom(data, header);
        int to = HeapTupleHeader.SIZE;
        if (prefix > 0) {
            int bitmap = HeapTupleHeader.hoff(tuple, 0) - HeapTupleHeader.SIZE;
            int oldData = HeapTupleHeader.hoff(page, old);
            if (bitmap < 0 || bitmap > bodyLength || oldData + prefix > oldLength) {
                throw new DamagedDataException(
                        "update record takes " + prefix + " bytes from a tuple of " + oldLength);
            }
            tuple.putBytes(to, data, from, bitmap);
            tuple.putBytes(to + bitmap, page, old + oldData, prefix);
            tuple.putBytes(to + bitmap + prefix, data, from + bitmap, bodyLength - bitmap);
        } else {
            tuple.putBytes(to, data, from, bodyLength);
        }
        to += bodyLength + prefix;
        if (suffix > oldLength) {
            throw new DamagedDataException(
                    "update record takes " + suffix + " bytes from a tuple of " + oldLength);
        }
        if (suffix > 0) {
            tuple.putBytes(to, page, old + oldLength - suffix, suffix);
        }
        return to + suffix;
    }

    /** A speculative insertion that came true. (PostgreSQL: heap_xlog_confirm.) */
    static void confirm(MutableDirectBuffer page, DirectBuffer main, int block) {
        int offnum = offsetNumber(main, HeapRecords.CONFIRM_OFFNUM);
        HeapTupleHeader.setCtid(page, tupleAt(page, offnum), block, offnum);
    }

    /** (PostgreSQL: heap_xlog_lock.) */
    static void lock(MutableDirectBuffer page, DirectBuffer main, int block) {
        int offnum = offsetNumber(main, HeapRecords.LOCK_OFFNUM);
        int at = tupleAt(page, offnum);
        clearXmaxBits(page, at);
        setInfobits(page, at, main.getByte(HeapRecords.LOCK_INFOBITS));
        if (HeapTupleHeader.isLockedOnly(HeapTupleHeader.infomask(page, at))) {
            HeapTupleHeader.setInfomask2(
                    page, at, HeapTupleHeader.infomask2(page, at) & ~HEAP_HOT_UPDATED);
            HeapTupleHeader.setCtid(page, at, block, offnum);
        }
        HeapTupleHeader.setXmax(page, at, main.getInt(HeapRecords.LOCK_XMAX));
        HeapTupleHeader.setFirstCommand(page, at);
    }

    /** (PostgreSQL: heap_xlog_lock_updated.) */
    static void lockUpdated(MutableDirectBuffer page, DirectBuffer main) {
        int at = tupleAt(page, offsetNumber(main, HeapRecords.LOCK_OFFNUM));
        clearXmaxBits(page, at);
        setInfobits(page, at, main.getByte(HeapRecords.LOCK_INFOBITS));
        HeapTupleHeader.setXmax(page, at, main.getInt(HeapRecords.LOCK_XMAX));
    }

    /** (PostgreSQL: heap_xlog_inplace.) */
    static void inplace(
            MutableDirectBuffer page, DirectBuffer main, DirectBuffer data, int length) {
        int offnum = offsetNumber(main, HeapRecords.INPLACE_OFFNUM);
        int at = tupleAt(page, offnum);
        int hoff = HeapTupleHeader.hoff(page, at);
        int oldLength = Page.lpLength(Page.itemId(page, offnum)) - hoff;
        if (oldLength != length) {
            throw new DamagedDataException(
                    "wrong tuple length: " + length + " in place of " + oldLength);
        }
        page.putBytes(at + hoff, data, 0, length);
    }

    /** (PostgreSQL: heap_xlog_freeze_page, heap_execute_freeze_tuple.) */
    static void freeze(MutableDirectBuffer page, DirectBuffer main, DirectBuffer data, int length) {
        int count = main.getShort(HeapRecords.FREEZE_NTUPLES) & 0xFFFF;
        if (length < count * HeapRecords.FREEZE_PLAN_SIZE) {
            throw new DamagedDataException(
                    "freeze record of " + length + " bytes cannot hold " + count + " plans");
        }
        for (int i = 0; i < count; i++) {
            int plan = i * HeapRecords.FREEZE_PLAN_SIZE;
            tupleAt(page, offsetNumber(data, plan + HeapRecords.FREEZE_PLAN_OFFSET));
        }
        for (int i = 0; i < count; i++) {
            int plan = i * HeapRecords.FREEZE_PLAN_SIZE;
            int at = tupleAt(page, offsetNumber(data, plan + HeapRecords.FREEZE_PLAN_OFFSET));
            int flags = data.getByte(plan + HeapRecords.FREEZE_PLAN_FLAGS);
            HeapTupleHeader.setXmax(page, at, data.getInt(plan + HeapRecords.FREEZE_PLAN_XMAX));
            if ((flags & HeapRecords.FREEZE_XVAC) != 0) {
                HeapTupleHeader.setXvac(page, at, TransactionId.FROZEN);
            }
            if ((flags & HeapRecords.INVALID_XVAC) != 0) {
                HeapTupleHeader.setXvac(page, at, TransactionId.INVALID);
            }
            HeapTupleHeader.setInfomask(
                    page, at, data.getShort(plan + HeapRecords.FREEZE_PLAN_INFOMASK));
            HeapTupleHeader.setInfomask2(
                    page, at, data.getShort(plan + HeapRecords.FREEZE_PLAN_INFOMASK2));
        }
    }

    /** Under a cleanup lock. (PostgreSQL: heap_xlog_prune, heap_page_prune_execute.) */
    void prune(MutableDirectBuffer page, DirectBuffer main, DirectBuffer data, int length) {
        int redirected = main.getShort(HeapRecords.PRUNE_NREDIRECTED) & 0xFFFF;
        int dead = main.getShort(HeapRecords.PRUNE_NDEAD) & 0xFFFF;
        int numbers = length / 2;
        int unusedFrom = 2 * redirected + dead;
        if (unusedFrom > numbers) {
            throw new DamagedDataException(
                    "prune record of "
                            + length
                            + " bytes cannot hold "
                            + unusedFrom
                            + " line pointers");
        }
        checkLinePointers(page, data, numbers);
        save(page);
        for (int i = 0; i < redirected; i++) {
            int target = offsetNumber(data, 4 * i + 2);
            Page.setItemId(
                    page, offsetNumber(data, 4 * i), Page.packItemId(target, Page.LP_REDIRECT, 0));
        }
        for (int i = 2 * redirected; i < unusedFrom; i++) {
            Page.setItemId(page, offsetNumber(data, 2 * i), Page.packItemId(0, Page.LP_DEAD, 0));
        }
        for (int i = unusedFrom; i < numbers; i++) {
            Page.setItemId(page, offsetNumber(data, 2 * i), 0);
        }
        try {
            items.repairFragmentation(page);
        } catch (DamagedDataException e) {
            restore(page);
            throw e;
        }
    }

    /** Dead line pointers that no index points to any more. (PostgreSQL: heap_xlog_vacuum.) */
    static void vacuum(MutableDirectBuffer page, DirectBuffer main, DirectBuffer data, int length) {
        int count = main.getShort(HeapRecords.VACUUM_NUNUSED) & 0xFFFF;
        if (length < 2 * count) {
            throw new DamagedDataException(
                    "vacuum record of "
                            + length
                            + " bytes cannot hold "
                            + count
                            + " line pointers");
        }
        checkLinePointers(page, data, count);
        for (int i = 0; i < count; i++) {
            Page.setItemId(page, offsetNumber(data, 2 * i), 0);
        }
        PageItems.truncateLinePointerArray(page);
    }

    private static int offsetNumber(DirectBuffer in, int at) {
        return in.getShort(at) & 0xFFFF;
    }

    /** Where a used tuple begins; its header lies within the page. */
    static int tupleAt(DirectBuffer page, int offnum) {
        PageItems.checkPointers(page, false);
        if (offnum >= PageItems.FIRST_OFFSET_NUMBER && offnum <= Page.maxOffsetNumber(page)) {
            int itemId = Page.itemId(page, offnum);
            int offset = Page.lpOffset(itemId);
            int length = Page.lpLength(itemId);
            if (Page.lpIsNormal(itemId)
                    && length >= HeapTupleHeader.SIZE
                    && offset >= Page.lower(page)
                    && offset + length <= Page.SIZE) {
                return offset;
            }
        }
        throw new DamagedDataException("invalid lp " + offnum);
    }

    private static void checkLinePointers(DirectBuffer page, DirectBuffer data, int count) {
        PageItems.checkPointers(page, false);
        int last = Page.maxOffsetNumber(page);
        for (int i = 0; i < count; i++) {
            int offnum = offsetNumber(data, 2 * i);
            if (offnum < PageItems.FIRST_OFFSET_NUMBER || offnum > last) {
                throw new DamagedDataException("invalid lp " + offnum + " of " + last);
            }
        }
    }

    private static void checkNewOffset(DirectBuffer page, int offnum) {
        PageItems.checkPointers(page, false);
        if (offnum < PageItems.FIRST_OFFSET_NUMBER || offnum > Page.maxOffsetNumber(page) + 1) {
            throw new DamagedDataException(
                    "invalid max offset number: "
                            + offnum
                            + " after "
                            + Page.maxOffsetNumber(page));
        }
    }

    private static void checkTupleLength(int bodyLength, int more) {
        if (bodyLength < 0
                || bodyLength + more > HeapTupleHeader.MAX_TUPLE_SIZE - HeapTupleHeader.SIZE) {
            throw new DamagedDataException(
                    "impossible tuple length " + (HeapTupleHeader.SIZE + bodyLength + more));
        }
    }

    /** Infomasks and hoff as records carry them. */
    private void headerFrom(DirectBuffer data, int at) {
        HeapTupleHeader.setInfomask2(tuple, 0, data.getShort(at + HeapRecords.HEADER_INFOMASK2));
        HeapTupleHeader.setInfomask(tuple, 0, data.getShort(at + HeapRecords.HEADER_INFOMASK));
        HeapTupleHeader.setHoff(tuple, 0, data.getByte(at + HeapRecords.HEADER_HOFF));
    }

    private void finishNewTuple(int xid, int block, int offnum) {
        HeapTupleHeader.setXmin(tuple, 0, xid);
        HeapTupleHeader.setFirstCommand(tuple, 0);
        HeapTupleHeader.setCtid(tuple, 0, block, offnum);
    }

    private void addTuple(MutableDirectBuffer page, int length, int offnum) {
        if (PageItems.addItem(page, tuple, 0, length, offnum, true, true)
                == PageItems.INVALID_OFFSET_NUMBER) {
            throw new DamagedDataException(
                    "failed to add tuple of " + length + " bytes at line pointer " + offnum);
        }
    }

    private static void insertFlags(MutableDirectBuffer page, int flags) {
        if ((flags & HeapRecords.INSERT_ALL_VISIBLE_CLEARED) != 0) {
            Page.clearAllVisible(page);
        }
        if ((flags & HeapRecords.INSERT_ALL_FROZEN_SET) != 0) {
            Page.setAllVisible(page);
        }
    }

    private static void clearXmaxBits(MutableDirectBuffer page, int at) {
        HeapTupleHeader.setInfomask(
                page, at, HeapTupleHeader.infomask(page, at) & ~(HEAP_XMAX_BITS | HEAP_MOVED));
        HeapTupleHeader.setInfomask2(
                page, at, HeapTupleHeader.infomask2(page, at) & ~HEAP_KEYS_UPDATED);
    }

    /** (PostgreSQL: fix_infomask_from_infobits; a share lock is both lock bits.) */
    private static void setInfobits(MutableDirectBuffer page, int at, int infobits) {
        int infomask =
                HeapTupleHeader.infomask(page, at)
                        & ~(HEAP_XMAX_IS_MULTI
                                | HEAP_XMAX_LOCK_ONLY
                                | HEAP_XMAX_KEYSHR_LOCK
                                | HEAP_XMAX_EXCL_LOCK);
        int infomask2 = HeapTupleHeader.infomask2(page, at) & ~HEAP_KEYS_UPDATED;
        infomask |= (infobits & HeapRecords.XMAX_IS_MULTI) != 0 ? HEAP_XMAX_IS_MULTI : 0;
        infomask |= (infobits & HeapRecords.XMAX_LOCK_ONLY) != 0 ? HEAP_XMAX_LOCK_ONLY : 0;
        infomask |= (infobits & HeapRecords.XMAX_EXCL_LOCK) != 0 ? HEAP_XMAX_EXCL_LOCK : 0;
        infomask |= (infobits & HeapRecords.XMAX_KEYSHR_LOCK) != 0 ? HEAP_XMAX_KEYSHR_LOCK : 0;
        infomask2 |= (infobits & HeapRecords.KEYS_UPDATED) != 0 ? HEAP_KEYS_UPDATED : 0;
        HeapTupleHeader.setInfomask(page, at, infomask);
        HeapTupleHeader.setInfomask2(page, at, infomask2);
    }

    /**
     * Remembers the oldest transaction that may have left something to prune. (PostgreSQL:
     * PageSetPrunable.)
     */
    static void setPrunable(MutableDirectBuffer page, int xid) {
        int old = Page.pruneXid(page);
        if (!TransactionId.isValid(old) || TransactionId.precedes(xid, old)) {
            Page.setPruneXid(page, xid);
        }
    }

    private void save(DirectBuffer page) {
        PageItems.checkPointers(page, false);
        saved.putBytes(0, page, 0, Page.lower(page));
    }

    private void restore(MutableDirectBuffer page) {
        page.putBytes(0, saved, 0, Page.lower(saved));
    }
}
