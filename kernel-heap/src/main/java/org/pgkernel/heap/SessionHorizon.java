package org.pgkernel.heap;

import org.pgkernel.base.TransactionId;
import org.pgkernel.xact.Horizons;
import org.pgkernel.xact.TransactionManager;

/**
 * What nobody can see any more, as far as one backend knows. The horizon is computed when one is
 * asked for that does not suffice, and at most once for each snapshot that the backend takes: a
 * scan that comes by many pages with versions that somebody else still needs does not look through
 * all sessions for each. What was removable stays so. (PostgreSQL: GlobalVisState,
 * GlobalVisTestShouldUpdate.)
 */
final class SessionHorizon implements TupleVisibility.VacuumHorizon {
    private final TransactionManager transactions;
    private final int database;
    private final Horizons horizons = new Horizons();

    /** Ids before it are removable; invalid when not computed. */
    private int oldest = TransactionId.INVALID;

    /** Computed since the last snapshot. */
    private boolean fresh;

    SessionHorizon(TransactionManager transactions, int database) {
        this.transactions = transactions;
        this.database = database;
    }

    @Override
    public boolean isRemovable(int xid) {
        if (TransactionId.isValid(oldest) && TransactionId.precedes(xid, oldest)) {
            return true;
        }
        if (fresh) {
            return false;
        }
        transactions.horizons(database, horizons);
        oldest = horizons.dataOldestNonremovable();
        fresh = true;
        return TransactionId.precedes(xid, oldest);
    }

    /** The backend took a snapshot: others may have ended. */
    void snapshotTaken() {
        fresh = false;
    }

    /** At the end of a transaction: an old horizon would mean something else after a wrap. */
    void forget() {
        oldest = TransactionId.INVALID;
        fresh = false;
    }
}
