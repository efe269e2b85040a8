package org.pgkernel.bufmgr;

/**
 * How a relation's buffers are found when it is dropped or truncated; chosen when the pool is
 * opened.
 */
public enum DropStrategy {
    /** Compares every buffer's tag. PostgreSQL up to 13. The reference. */
    FULL_SCAN,
    /**
     * Probes the mapping table block by block if every size is accurate and the total below a part
     * of the pool ({@link BufferPoolOptions#lookupDivisor}); else scans. PostgreSQL 14 and later.
     */
    LOOKUP,
    /**
     * Walks a list of the fork's buffers that is kept at every read and eviction. The thread's
     * first patch; never in PostgreSQL.
     */
    DLIST,
    /**
     * Keeps how many pages of each fork are in the pool, and where they end: looks up that range,
     * or scans two bytes a buffer, whichever is cheaper, until the count is reached. Needs no size.
     * The default.
     */
    ADAPTIVE
}
