package org.pgkernel.bufmgr;

/** Why a drop was done when it ended. */
public enum DropStopReason {
    /** There was nothing to begin with. */
    NOTHING_TO_DO,
    /** As many pages were thrown away as there were, before everything was looked at. */
    COUNT_REACHED,
    /**
     * Every block was looked up, up to the size (LOOKUP) or to the end of the resident pages
     * (ADAPTIVE).
     */
    RANGE_COVERED,
    /** The list was walked to its end. */
    LIST_ENDED,
    /** Every buffer was scanned. */
    SCAN_COMPLETE
}
