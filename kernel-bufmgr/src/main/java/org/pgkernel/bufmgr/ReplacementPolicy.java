package org.pgkernel.bufmgr;

import org.pgkernel.base.error.NoFreeBufferException;

/**
 * Which page makes room for the next when no buffer is free. {@link BufferReplacement} asks; it
 * keeps what all policies have in common: the free list, the buffers never used, the allocations.
 *
 * <p>What every policy obeys:
 *
 * <ul>
 *   <li>a victim had no pin, and is handed out pinned once, by one change of its state word under
 *       the header lock; so two callers never get one buffer, nor a caller one that is in use;
 *   <li>an unpinned buffer is found, whatever the others are; only if all are pinned, {@link
 *       NoFreeBufferException}, after one round;
 *   <li>hits do not call it: they count uses in the state word, and the hand reads them there.
 * </ul>
 *
 * A <em>hand</em> is what walks over the buffers; each move of it is a <em>tick</em>.
 */
sealed interface ReplacementPolicy permits ClockSweep, Sieve, S3Fifo {
    /**
     * A buffer that nobody had pinned, now pinned once by the caller; its old page may still be in
     * it, and dirty.
     *
     * @param hash of the tag that the buffer will get
     * @throws NoFreeBufferException when all were pinned
     */
    int victim(int hash);

    /**
     * A buffer that was free or never used, pinned by the caller, is about to get the tag of this
     * hash.
     */
    void taken(int buffer, int hash);

    /** The uses that a page has when it was just brought in, as bits of the state word. */
    int firstUses();

    /** How often the hand has moved since the pool was opened. */
    long ticks();

    /** The buffer that the hand will look at next. */
    int hand();

    /**
     * The buffer that the hand will look at after this one, if nothing changes meanwhile. May be
     * asked of any buffer, at any time, without a lock; always a buffer's number.
     */
    int after(int buffer);

    /**
     * Checks what it keeps, at rest. For the inspection.
     *
     * @param used how many buffers were ever taken
     * @return what is wrong, or null
     */
    String fault(int used);
}
