package org.pgkernel.bufmgr;

/** Why a drop took its {@link DropPath}. */
public enum DropReason {
    /** The strategy knows no other. */
    ONLY_WAY,
    /** The count said that there is nothing. */
    COUNT_IS_ZERO,
    /** The blocks are few enough for lookups. */
    FEW_BLOCKS,
    /** A fork exists whose size is not accurately known, so lookups could miss a page (LOOKUP). */
    UNKNOWN_SIZE,
    /** Too many blocks for lookups to pay. */
    ABOVE_THRESHOLD,
    /** Lookups were tried and did not find as many pages as were there. */
    COUNT_NOT_REACHED
}
