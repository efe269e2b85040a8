package org.pgkernel.xact;

/**
 * Up to where nobody needs old row versions any more; filled by {@link
 * TransactionManager#horizons}, reusable. Each is a normal xid: what was deleted by a committed
 * transaction before it is dead to all. (PostgreSQL: ComputeXidHorizonsResult.)
 */
public final class Horizons {
    int oldestConsideredRunning;
    int sharedOldestNonremovable;
    int dataOldestNonremovable;

    /** No session, vacuuming ones included, asks for the parent of an xid before this one. */
    public int oldestConsideredRunning() {
        return oldestConsideredRunning;
    }

    /** For tables that all databases share. */
    public int sharedOldestNonremovable() {
        return sharedOldestNonremovable;
    }

    /** For tables of the database that was asked for. */
    public int dataOldestNonremovable() {
        return dataOldestNonremovable;
    }
}
