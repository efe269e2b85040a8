package org.pgkernel.bufmgr;

/** How a page is brought into the pool. (PostgreSQL: ReadBufferMode, bufmgr.h.) */
public enum ReadMode {
    /** Read from disk; a damaged page is an error. */
    NORMAL,
    /**
     * Not read: a page that is not in the pool yet becomes zeros; returned exclusively locked. A
     * page that is there stays as it is.
     */
    ZERO_AND_LOCK,
    /** The same with a cleanup lock. */
    ZERO_AND_CLEANUP_LOCK,
    /** A damaged page becomes zeros. */
    ZERO_ON_ERROR,
    /** In redo: a missing page is not remembered. Otherwise like NORMAL. */
    NORMAL_NO_LOG
}
