package org.pgkernel.bufmgr;

/** How a drop found its buffers; the most expensive thing it did. */
public enum DropPath {
    /** No page of the relations was in the pool; nothing was looked at. */
    NOTHING_RESIDENT,
    /** Probes of the mapping table, one a block. */
    LOOKUP,
    /** Two bytes of every buffer in use, perhaps after some lookups. */
    FINGERPRINT_SCAN,
    /** The list of the fork's buffers. */
    LIST_WALK,
    /** Every buffer's tag. */
    FULL_SCAN
}
