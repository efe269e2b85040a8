package org.pgkernel.smgr;

import org.pgkernel.base.BlockNumber;

/**
 * A fork's size and whether it is accurate, packed in a {@code long}: blocks in the low 32 bits
 * (unsigned), the flag in bit 32.
 */
public final class ForkSize {
    /** Nothing is known. */
    public static final long UNKNOWN = 0xFFFFFFFFL;

    private static final long ACCURATE = 1L << 32;

    private ForkSize() {}

    public static long accurate(int blocks) {
        return BlockNumber.toLong(blocks) | ACCURATE;
    }

    public static long hint(int blocks) {
        return BlockNumber.toLong(blocks);
    }

    public static boolean isKnown(long size) {
        return (int) size != BlockNumber.INVALID;
    }

    public static boolean isAccurate(long size) {
        return (size & ACCURATE) != 0;
    }

    /** Number of blocks, unsigned; {@link BlockNumber#INVALID} when unknown. */
    public static int blocks(long size) {
        return (int) size;
    }
}
