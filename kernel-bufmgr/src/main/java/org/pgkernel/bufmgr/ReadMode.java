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
    /** A damaged page becomes zeros, with a warning; what cannot be read at all is an error. */
    ZERO_ON_ERROR,
    /**
     * Like NORMAL here. Redo, which asks for the size first, answers "no such page" to it and does
     * not remember that.
     */
    NORMAL_NO_LOG
}
