package org.pgkernel.base;

/**
 * Block numbers: unsigned 32-bit, carried as {@code int}; widen with {@link #toLong} before
 * arithmetic. (PostgreSQL: block.h.)
 */
public final class BlockNumber {
    /** No block; also "size unknown". (PostgreSQL: InvalidBlockNumber, 0xFFFFFFFF.) */
    public static final int INVALID = -1;

    /** Bytes of a page. */
    public static final int PAGE_SIZE = 8192;

    private BlockNumber() {}

    public static long toLong(int block) {
        return Integer.toUnsignedLong(block);
    }

    public static String toString(int block) {
        return Integer.toUnsignedString(block);
    }
}
