package org.pgkernel.xact;

/**
 * How often one level of a transaction's nesting has taken a lock in one mode. Of the session's
 * thread; used again.
 */
final class LockGrant {
    LockHolder holder;
    LockMode mode;
    int level;

    /** 0 when it was given up before its level ended. */
    int count;

    /** The same lock and mode, taken by a level further out. */
    LockGrant outer;
}
