package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The bytes of an index tuple, little-endian; every accessor takes the buffer and where the tuple
 * begins in it.
 *
 * <pre>
 *   0 t_tid: block upper half 2, block lower half 2, offset number 2
 *   6 t_info 2: size in bytes 13 bits, access method's bit 0x2000, variable width 0x4000, nulls 0x8000
 *   8 null bitmap if any, then the key, padded to 8
 * </pre>
 *
 * (PostgreSQL: itup.h, itemptr.h.)
 */
final class IndexTuple {
    static final int HEADER_SIZE = 8;
    static final int TID_SIZE = 6;

    static final int SIZE_MASK = 0x1FFF;

    /**
     * In a B-tree: t_tid is not a heap tid but describes a pivot or posting list tuple.
     * (PostgreSQL: INDEX_ALT_TID_MASK.)
     */
    static final int ALT_TID = 0x2000;

    private static final int TID_BLOCK_HIGH = 0;
    private static final int TID_BLOCK_LOW = 2;
    private static final int TID_OFFSET = 4;
    private static final int INFO = 6;

    private IndexTuple() {}

    static int info(DirectBuffer buffer, int at) {
        return buffer.getShort(at + INFO) & 0xFFFF;
    }

    static void setInfo(MutableDirectBuffer buffer, int at, int info) {
        buffer.putShort(at + INFO, (short) info);
    }

    /** Bytes of the tuple, header included. */
    static int size(DirectBuffer buffer, int at) {
        return info(buffer, at) & SIZE_MASK;
    }

    static int tidBlock(DirectBuffer buffer, int at) {
        return buffer.getShort(at + TID_BLOCK_HIGH) << 16
                | buffer.getShort(at + TID_BLOCK_LOW) & 0xFFFF;
    }

    static void setTidBlock(MutableDirectBuffer buffer, int at, int block) {
        buffer.putShort(at + TID_BLOCK_HIGH, (short) (block >>> 16));
        buffer.putShort(at + TID_BLOCK_LOW, (short) block);
    }

    static int tidOffset(DirectBuffer buffer, int at) {
        return buffer.getShort(at + TID_OFFSET) & 0xFFFF;
    }

    static void setTidOffset(MutableDirectBuffer buffer, int at, int offset) {
        buffer.putShort(at + TID_OFFSET, (short) offset);
    }

    static void copyTid(MutableDirectBuffer to, int toAt, DirectBuffer from, int fromAt) {
        to.putBytes(toAt, from, fromAt, TID_SIZE);
    }
}
