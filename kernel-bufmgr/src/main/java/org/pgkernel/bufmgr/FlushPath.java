package org.pgkernel.bufmgr;

/** How a flush found its dirty buffers. */
public enum FlushPath {
    /** Nothing in the pool was dirty, or no page of the victims was in it. */
    NOTHING_TO_DO,
    /** All dirty buffers of the pool were looked at. */
    DIRTY_BITMAP,
    /** The mapping table was asked for each block below the victims' resident ends. */
    LOOKUP,
    /** The fingerprints of all buffers in use were scanned. */
    FINGERPRINT_SCAN
}
