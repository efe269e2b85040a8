package org.pgkernel.bufmgr;

/** How a page that is in the pool is found and pinned. The outcome is the same. */
public enum LookupStyle {
    /**
     * Without a lock: the chain is walked and the tag read as they are, and one compare-and-set of
     * the state word pins the buffer, if it still has that tag. The default.
     */
    OPTIMISTIC,

    /**
     * Under the shared lock of the block's partition of the mapping table, as PostgreSQL does it:
     * the reference that the other is compared with.
     */
    PARTITION_LOCK
}
