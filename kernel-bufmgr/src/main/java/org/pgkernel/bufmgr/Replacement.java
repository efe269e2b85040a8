package org.pgkernel.bufmgr;

/**
 * Which page makes room when no buffer is free; chosen when the pool is opened. A hit costs the
 * same under each: a use is counted in the state word, up to five.
 */
public enum Replacement {
    /**
     * A hand goes round over the buffers; each pass takes one use of a page away, and a page that
     * has none left goes. PostgreSQL's. The default.
     */
    CLOCK_SWEEP,
    /**
     * Pages stand in the order in which they came. A hand goes from the oldest to the newest, lets
     * a page that was used stay where it is, takes all its uses away, and takes the first page that
     * was not used. New pages come behind the hand's back, so pages used only once go soon.
     */
    SIEVE,
    /**
     * A page comes into a small queue, a tenth of the pool. At its end a page used twice moves to
     * the main queue; others go, but are remembered: one that comes back soon enters the main queue
     * at once. At the main queue's end a used page goes round again with one use less.
     */
    S3_FIFO
}
