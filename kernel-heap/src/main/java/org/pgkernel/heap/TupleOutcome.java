package org.pgkernel.heap;

/** What became of an attempt to update, delete or lock a tuple. (PostgreSQL: TM_Result.) */
public enum TupleOutcome {
    /** Done. */
    OK,

    /** There is no such tuple, or the asking command cannot see it. */
    INVISIBLE,

    /** This command changed it already, or a later one of the own transaction. */
    SELF_MODIFIED,

    /** Another transaction has updated it; {@link TupleConflict} tells where to. */
    UPDATED,

    /** Another transaction has deleted it. */
    DELETED,

    /** Another transaction that runs has changed or locked it, and the caller did not wait. */
    BEING_MODIFIED,

    /** Another transaction has locked it, and the caller skips what is locked. */
    WOULD_BLOCK
}
