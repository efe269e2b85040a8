package org.pgkernel.heap;

/** What to do when another transaction has locked a row. (PostgreSQL: LockWaitPolicy.) */
public enum LockWait {
    /** Wait until it ends. */
    WAIT,

    /** Throw {@link org.pgkernel.base.error.LockNotAvailableException}. */
    NOWAIT,

    /** Answer {@link TupleOutcome#WOULD_BLOCK}. */
    SKIP_LOCKED
}
