package org.pgkernel.fsm;

/** Which relations have a free space map on disk, and what the others have. */
public enum FsmPolicy {
    /** Every one: what PostgreSQL 15 does. */
    ALWAYS,

    /**
     * Those of more than a few blocks. Of a small one each backend tries every other page, whenever
     * it has to look. (PostgreSQL: commit b0eaa4c51bb of 2019, reverted before it was released.)
     */
    SMALL_TABLES_LOCAL,

    /**
     * Those of more than a few blocks. Of a small one all backends share what they saw of its
     * pages, in memory.
     */
    SMALL_TABLES_SHARED
}
