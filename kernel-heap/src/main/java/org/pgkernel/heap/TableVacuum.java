package org.pgkernel.heap;

import org.pgkernel.fsm.RelationTruncation;
import org.pgkernel.recovery.CheckpointDelay;
import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.LockParking;
import org.pgkernel.xact.SessionLocks;
import org.pgkernel.xact.TransactionSession;

/**
 * Vacuums a table and then its TOAST table, each in a transaction of its own, which holds nobody's
 * horizon back. The table stays locked in between: against another vacuum and against changes of
 * what it is, not against readers and writers.
 *
 * <p>Who uses a TOAST table has locked the table that it belongs to, and that alone. So the TOAST
 * table is cut under the lock of its table. One backend's; called outside of transactions.
 * (PostgreSQL: vacuum_rel, vacuum.c.)
 */
public final class TableVacuum {
    /** What is known of relations, and where it is kept; called outside of transactions. */
    public interface Catalogue {
        RelationHistory history(HeapRelation relation);

        /** The relation was vacuumed: its entry is brought up to date. */
        void vacuumed(HeapRelation relation, VacuumResult result);
    }

    private final HeapBackend backend;
    private final SessionLocks locks;
    private final LockParking parking;
    private final HeapVacuum vacuum;

    /** The table whose lock stands for the relation that is vacuumed. */
    private HeapRelation table;

    /**
     * @param checkpoints held back while files are cut
     * @param parking the lock table's
     */
    public TableVacuum(HeapBackend backend, CheckpointDelay checkpoints, LockParking parking) {
        this.backend = backend;
        this.parking = parking;
        locks = backend.session.locks();
        vacuum =
                new HeapVacuum(
                        backend,
                        new HeapTruncation(
                                backend,
                                new RelationTruncation(backend.wal, checkpoints),
                                relation -> lock()));
    }

    private TruncationLock lock() {
        return new SessionTruncationLock(locks, parking, backend.database, table.oid());
    }

    /**
     * Vacuums the table, which has no indexes. Waits for a lock that others hold.
     *
     * @return what was done to the table itself
     */
    public VacuumResult vacuum(
            HeapRelation table,
            VacuumOptions options,
            Catalogue catalogue,
            VacuumListener listener) {
        int database = backend.database;
        locks.lockRelationForSession(database, table.oid(), LockMode.SHARE_UPDATE_EXCLUSIVE);
        this.table = table;
        try {
            VacuumResult result = vacuumOne(table, options, catalogue, listener);
            if (table.toast() != null) {
                vacuumOne(table.toast(), options, catalogue, listener);
            }
            return result;
        } finally {
            locks.unlockRelationForSession(database, table.oid(), LockMode.SHARE_UPDATE_EXCLUSIVE);
            this.table = null;
        }
    }

    private VacuumResult vacuumOne(
            HeapRelation relation,
            VacuumOptions options,
            Catalogue catalogue,
            VacuumListener listener) {
        RelationHistory history = catalogue.history(relation);
        TransactionSession session = backend.session;
        VacuumResult result;
        session.begin();
        boolean done = false;
        try {
            session.vacuums();
            result = vacuum.vacuum(relation, history, options, null, listener);
            session.commit(false);
            done = true;
        } finally {
            if (!done && session.inTransaction()) {
                session.rollback();
            }
            backend.endTransaction();
        }
        catalogue.vacuumed(relation, result);
        return result;
    }
}
