package org.pgkernel.bufmgr;

import org.pgkernel.base.error.RefusedException;

/**
 * How a pool is opened. Immutable; start from {@link #of}.
 *
 * @param nbuffers buffers of 8 KiB, from {@link BufferPool#MIN_BUFFERS} to {@link
 *     BufferPool#MAX_BUFFERS}
 * @param checksums verify on read, set on write (data_checksum_version is not 0)
 * @param strategy how a dropped relation's buffers are found
 * @param lookupDivisor LOOKUP probes when fewer blocks are to be dropped than {@code nbuffers}
 *     divided by this; at least 1
 * @param replacement which page makes room when no buffer is free
 * @param lookupStyle how a page that is in the pool is found and pinned
 */
public record BufferPoolOptions(
        int nbuffers,
        boolean checksums,
        DropStrategy strategy,
        int lookupDivisor,
        Replacement replacement,
        LookupStyle lookupStyle) {
    /** PostgreSQL's. (BUF_DROP_FULL_SCAN_THRESHOLD.) */
    public static final int DEFAULT_LOOKUP_DIVISOR = 32;

    public static final DropStrategy DEFAULT_STRATEGY = DropStrategy.ADAPTIVE;

    public static final Replacement DEFAULT_REPLACEMENT = Replacement.CLOCK_SWEEP;

    public static final LookupStyle DEFAULT_LOOKUP_STYLE = LookupStyle.OPTIMISTIC;

    /**
     * @throws RefusedException when a number is out of range
     */
    public BufferPoolOptions {
        if (nbuffers < BufferPool.MIN_BUFFERS || nbuffers > BufferPool.MAX_BUFFERS) {
            throw new RefusedException(
                    "a buffer pool has from "
                            + BufferPool.MIN_BUFFERS
                            + " to "
                            + BufferPool.MAX_BUFFERS
                            + " buffers of 8 KiB (128 KiB to 512 GiB) shared_buffers="
                            + nbuffers);
        }
        if (lookupDivisor < 1) {
            throw new RefusedException(
                    "the lookup divisor is at least 1 lookup_divisor=" + lookupDivisor);
        }
    }

    /** With checksums, the default strategy and PostgreSQL's replacement. */
    public static BufferPoolOptions of(int nbuffers) {
        return new BufferPoolOptions(
                nbuffers,
                true,
                DEFAULT_STRATEGY,
                DEFAULT_LOOKUP_DIVISOR,
                DEFAULT_REPLACEMENT,
                DEFAULT_LOOKUP_STYLE);
    }

    public BufferPoolOptions withChecksums(boolean on) {
        return new BufferPoolOptions(
                nbuffers, on, strategy, lookupDivisor, replacement, lookupStyle);
    }

    public BufferPoolOptions withStrategy(DropStrategy other) {
        return new BufferPoolOptions(
                nbuffers, checksums, other, lookupDivisor, replacement, lookupStyle);
    }

    public BufferPoolOptions withLookupDivisor(int divisor) {
        return new BufferPoolOptions(
                nbuffers, checksums, strategy, divisor, replacement, lookupStyle);
    }

    public BufferPoolOptions withReplacement(Replacement other) {
        return new BufferPoolOptions(
                nbuffers, checksums, strategy, lookupDivisor, other, lookupStyle);
    }

    public BufferPoolOptions withLookupStyle(LookupStyle other) {
        return new BufferPoolOptions(
                nbuffers, checksums, strategy, lookupDivisor, replacement, other);
    }
}
