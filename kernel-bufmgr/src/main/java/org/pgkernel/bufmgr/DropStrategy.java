package org.pgkernel.bufmgr;

/** How a relation's buffers are found when it is dropped or truncated; chosen when the pool is opened. (DESIGN: drop strategies.) */
public enum DropStrategy {
    /** Compares every buffer's tag. PostgreSQL up to 13. The reference. */
    FULL_SCAN,
    /** Probes the mapping table block by block if every size is accurate and the total below NBuffers/32; else scans. PostgreSQL 14 and later. */
    LOOKUP
}
