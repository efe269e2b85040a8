package org.pgkernel.heap;

import org.pgkernel.base.BlockNumber;

/**
 * Where a tuple is, as a primitive: the block's number, unsigned, above 16 bits of the line
 * pointer's number, which counts from 1. Ascending order is the order in the file. (PostgreSQL:
 * ItemPointerData.)
 */
public final class TupleId {
    /** No tuple's. */
    public static final long INVALID = (long) BlockNumber.INVALID << 16 & 0xFFFF_FFFF_FFFFL;

    private TupleId() {}

    public static long of(int block, int offset) {
        return BlockNumber.toLong(block) << 16 | offset;
    }

    public static int block(long tid) {
        return (int) (tid >>> 16);
    }

    /** The line pointer's number. */
    public static int offset(long tid) {
        return (int) tid & 0xFFFF;
    }

    public static boolean isValid(long tid) {
        return offset(tid) != 0 && block(tid) != BlockNumber.INVALID;
    }

    /** As PostgreSQL prints it: {@code (12,3)}. */
    public static String format(long tid) {
        return "(" + BlockNumber.toString(block(tid)) + "," + offset(tid) + ")";
    }
}
