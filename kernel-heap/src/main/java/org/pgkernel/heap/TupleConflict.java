package org.pgkernel.heap;

import org.pgkernel.base.TransactionId;

/**
 * Why a tuple could not be changed or locked, for the last attempt whose outcome was neither OK nor
 * INVISIBLE. Who follows the chain to the newest version checks that its xmin, as stored, is {@link
 * #xmax}; a frozen one counts, too (R01). (PostgreSQL: TM_FailureData.)
 */
public final class TupleConflict {
    private long nextTid = TupleId.INVALID;
    private int xmax;
    private int cmax;

    /** Where the next version is; the tuple's own place if there is none. */
    public long nextTid() {
        return nextTid;
    }

    /** Who changed the tuple, invalid if it is only locked. */
    public int xmax() {
        return xmax;
    }

    /** The own command that changed it, after SELF_MODIFIED; else -1. */
    public int cmax() {
        return cmax;
    }

    void set(LockedTuple tuple, TupleVisibility visibility, TupleOutcome outcome) {
        int infomask = HeapTupleHeader.infomask(tuple.page, tuple.at);
        nextTid = HeapTupleHeader.ctid(tuple.page, tuple.at);
        xmax =
                (infomask & HeapTupleHeader.HEAP_XMAX_INVALID) != 0
                                || HeapTupleHeader.isLockedOnly(infomask)
                        ? TransactionId.INVALID
                        : visibility.updateXid(tuple.page, tuple.at, infomask);
        cmax = outcome == TupleOutcome.SELF_MODIFIED ? visibility.cmax(tuple.page, tuple.at) : -1;
    }
}
