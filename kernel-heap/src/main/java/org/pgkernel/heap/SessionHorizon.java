package org.pgkernel.heap;

import org.pgkernel.base.TransactionId;
import org.pgkernel.xact.Horizons;
import org.pgkernel.xact.TransactionManager;

/**
 * What nobody can see any more, as far as one backend knows. The horizon is computed when first
 * asked for in a transaction and again when it does not suffice; what was removable stays so.
 * (PostgreSQL: GlobalVisState.)
 */
final class SessionHorizon implements TupleVisibility.VacuumHorizon {
    private final TransactionManager transactions;
    private final int database;
    private final Horizons horizons = new Horizons();

    /** Ids before it are removable; invalid when not computed. */
    private int oldest = TransactionId.INVALID;

    SessionHorizon(TransactionManager transactions, int database) {
        this.transactions = transactions;
        this.database = database;
    }

    @Override
    public boolean isRemovable(int xid) {
        if (TransactionId.isValid(oldest) && TransactionId.precedes(xid, oldest)) {
            return true;
        }
        update();
        return TransactionId.precedes(xid, oldest);
    }

    private void update() {
        transactions.horizons(database, horizons);
        oldest = horizons.dataOldestNonremovable();
    }

    /** At the end of a transaction: an old horizon would mean something else after a wrap. */
    void forget() {
        oldest = TransactionId.INVALID;
    }
}
