package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The header of a heap tuple, at {@code at} in its page or buffer. Little-endian.
 *
 * <pre>
 *   0 t_xmin 4
 *   4 t_xmax 4
 *   8 t_cid 4        command id, or t_xvac
 *  12 t_ctid 6       block upper half 2, block lower half 2, line pointer 2
 *  18 t_infomask2 2  number of attributes, 11 bits, and flags
 *  20 t_infomask 2
 *  22 t_hoff 1       where the data begins
 *  23 null bitmap, padding, data
 * </pre>
 *
 * (PostgreSQL: HeapTupleHeaderData, htup_details.h.)
 */
public final class HeapTupleHeader {
    /** Bytes of the fixed part. (PostgreSQL: SizeofHeapTupleHeader.) */
    public static final int SIZE = 23;

    /** The largest tuple that fits a page, bytes. (PostgreSQL: MaxHeapTupleSize.) */
    public static final int MAX_TUPLE_SIZE = 8160;

    public static final int T_XMIN = 0;
    public static final int T_XMAX = 4;
    public static final int T_CID = 8;
    public static final int T_CTID = 12;
    public static final int T_INFOMASK2 = 18;
    public static final int T_INFOMASK = 20;
    public static final int T_HOFF = 22;

    public static final int HEAP_XMAX_KEYSHR_LOCK = 0x0010;
    public static final int HEAP_COMBOCID = 0x0020;
    public static final int HEAP_XMAX_EXCL_LOCK = 0x0040;
    public static final int HEAP_XMAX_LOCK_ONLY = 0x0080;
    public static final int HEAP_LOCK_MASK = HEAP_XMAX_EXCL_LOCK | HEAP_XMAX_KEYSHR_LOCK;
    public static final int HEAP_XMIN_COMMITTED = 0x0100;
    public static final int HEAP_XMIN_INVALID = 0x0200;
    public static final int HEAP_XMAX_COMMITTED = 0x0400;
    public static final int HEAP_XMAX_INVALID = 0x0800;
    public static final int HEAP_XMAX_IS_MULTI = 0x1000;
    public static final int HEAP_UPDATED = 0x2000;
    public static final int HEAP_MOVED = 0xC000;

    /** To be turned off when xmax changes. */
    public static final int HEAP_XMAX_BITS =
            HEAP_XMAX_COMMITTED
                    | HEAP_XMAX_INVALID
                    | HEAP_XMAX_IS_MULTI
                    | HEAP_LOCK_MASK
                    | HEAP_XMAX_LOCK_ONLY;

    public static final int HEAP_NATTS_MASK = 0x07FF;
    public static final int HEAP_KEYS_UPDATED = 0x2000;
    public static final int HEAP_HOT_UPDATED = 0x4000;
    public static final int HEAP_ONLY_TUPLE = 0x8000;

    /** t_ctid of a tuple that went to another partition: this line pointer and no block. */
    public static final int MOVED_PARTITIONS_OFFSET_NUMBER = 0xFFFD;

    private HeapTupleHeader() {}

    public static int xmin(DirectBuffer in, int at) {
        return in.getInt(at + T_XMIN);
    }

    public static void setXmin(MutableDirectBuffer in, int at, int xid) {
        in.putInt(at + T_XMIN, xid);
    }

    public static int xmax(DirectBuffer in, int at) {
        return in.getInt(at + T_XMAX);
    }

    public static void setXmax(MutableDirectBuffer in, int at, int xid) {
        in.putInt(at + T_XMAX, xid);
    }

    public static int commandId(DirectBuffer in, int at) {
        return in.getInt(at + T_CID);
    }

    public static void setXvac(MutableDirectBuffer in, int at, int xid) {
        in.putInt(at + T_CID, xid);
    }

    /**
     * Command 0, not a combo one: redo knows no other. (PostgreSQL: HeapTupleHeaderSetCmin,
     * HeapTupleHeaderSetCmax.)
     */
    public static void setFirstCommand(MutableDirectBuffer in, int at) {
        in.putInt(at + T_CID, 0);
        setInfomask(in, at, infomask(in, at) & ~HEAP_COMBOCID);
    }

    /** A command id, or a combo one. (PostgreSQL: HeapTupleHeaderSetCmax.) */
    static void setCommandId(MutableDirectBuffer in, int at, int commandId, boolean isCombo) {
        in.putInt(at + T_CID, commandId);
        int infomask = infomask(in, at);
        setInfomask(in, at, isCombo ? infomask | HEAP_COMBOCID : infomask & ~HEAP_COMBOCID);
    }

    /** See {@link TupleId}. */
    static long ctid(DirectBuffer in, int at) {
        return TupleId.of(ctidBlock(in, at), ctidOffsetNumber(in, at));
    }

    public static int ctidBlock(DirectBuffer in, int at) {
        return in.getShort(at + T_CTID) << 16 | in.getShort(at + T_CTID + 2) & 0xFFFF;
    }

    public static int ctidOffsetNumber(DirectBuffer in, int at) {
        return in.getShort(at + T_CTID + 4) & 0xFFFF;
    }

    public static void setCtid(MutableDirectBuffer in, int at, int block, int offsetNumber) {
        in.putShort(at + T_CTID, (short) (block >>> 16));
        in.putShort(at + T_CTID + 2, (short) block);
        in.putShort(at + T_CTID + 4, (short) offsetNumber);
    }

    public static int infomask2(DirectBuffer in, int at) {
        return in.getShort(at + T_INFOMASK2) & 0xFFFF;
    }

    public static void setInfomask2(MutableDirectBuffer in, int at, int bits) {
        in.putShort(at + T_INFOMASK2, (short) bits);
    }

    public static int infomask(DirectBuffer in, int at) {
        return in.getShort(at + T_INFOMASK) & 0xFFFF;
    }

    public static void setInfomask(MutableDirectBuffer in, int at, int bits) {
        in.putShort(at + T_INFOMASK, (short) bits);
    }

    public static int hoff(DirectBuffer in, int at) {
        return in.getByte(at + T_HOFF) & 0xFF;
    }

    public static void setHoff(MutableDirectBuffer in, int at, int hoff) {
        in.putByte(at + T_HOFF, (byte) hoff);
    }

    /** The strength of the lock of xmax that is no multixact. (HEAP_XMAX_IS_SHR_LOCKED ...) */
    static RowLock lock(int infomask, int infomask2) {
        boolean keys = (infomask2 & HEAP_KEYS_UPDATED) != 0;
        if (!isLockedOnly(infomask)) {
            return keys ? RowLock.UPDATE : RowLock.NO_KEY_UPDATE;
        }
        return switch (infomask & HEAP_LOCK_MASK) {
            case HEAP_XMAX_KEYSHR_LOCK -> RowLock.KEY_SHARE;
            case HEAP_LOCK_MASK -> RowLock.SHARE;
            case HEAP_XMAX_EXCL_LOCK -> keys ? RowLock.UPDATE : RowLock.NO_KEY_UPDATE;
            // Share-locked in 9.2 or before: the locker is gone.
            default -> RowLock.KEY_SHARE;
        };
    }

    /**
     * A multixact of 9.2 or before that came through pg_upgrade: nobody in it runs. (PostgreSQL:
     * HEAP_LOCKED_UPGRADED.)
     */
    static boolean isLockedUpgraded(int infomask) {
        return (infomask & (HEAP_XMAX_IS_MULTI | HEAP_XMAX_LOCK_ONLY | HEAP_LOCK_MASK))
                == (HEAP_XMAX_IS_MULTI | HEAP_XMAX_LOCK_ONLY);
    }

    /** True if xmax only locks the tuple. (PostgreSQL: HEAP_XMAX_IS_LOCKED_ONLY.) */
    public static boolean isLockedOnly(int infomask) {
        return (infomask & HEAP_XMAX_LOCK_ONLY) != 0
                || (infomask & (HEAP_XMAX_IS_MULTI | HEAP_LOCK_MASK)) == HEAP_XMAX_EXCL_LOCK;
    }
}
