package org.pgkernel.recovery;

/**
 * What redo has to do with a page that a record refers to. (PostgreSQL: XLogRedoAction,
 * xlogutils.h.)
 */
public enum RedoAction {
    /** The page is older than the record: apply the change. */
    NEEDS_REDO,
    /** The page carries the change already. */
    DONE,
    /** The page was restored from the record's image; nothing more to do. */
    RESTORED,
    /** There is no such page; remembered in the missing-page table. No buffer is held. */
    NOT_FOUND
}
