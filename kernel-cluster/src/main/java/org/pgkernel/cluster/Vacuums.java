package org.pgkernel.cluster;

import java.util.function.Supplier;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.RelationHistory;
import org.pgkernel.heap.TableVacuum;
import org.pgkernel.heap.VacuumListener;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.xact.LockMode;

/** A backend's vacuums, and what the catalogue has to do with them. One thread. */
final class Vacuums implements TableVacuum.Catalogue {
    private final Backend backend;
    private final TableCatalog catalog;
    private final TableVacuum vacuum;

    Vacuums(Backend backend, TableCatalog catalog) {
        this.backend = backend;
        this.catalog = catalog;
        Kernel kernel = backend.kernel();
        vacuum =
                new TableVacuum(
                        backend.heap(),
                        kernel.primary.checkpointDelay(),
                        kernel.options.lockParking());
    }

    /**
     * Vacuums a table and its TOAST table. Its files are looked up under the lock that keeps them
     * from being replaced. No transaction is open.
     *
     * @param skipLocked do not wait for a lock that others hold (VACOPT_SKIP_LOCKED)
     * @return what was done to the table itself; null when there is no such table any more, or it
     *     was skipped
     */
    VacuumResult vacuum(
            int oid, VacuumOptions options, VacuumListener listener, boolean skipLocked) {
        int database = backend.database();
        LockMode mode = LockMode.SHARE_UPDATE_EXCLUSIVE;
        if (!skipLocked) {
            backend.locks().lockRelationForSession(database, oid, mode);
        } else if (!backend.locks().tryLockRelationForSession(database, oid, mode)) {
            return null;
        }
        try {
            TableEntry entry = inTransaction(() -> catalog.read(backend, oid));
            if (entry == null) {
                return null;
            }
            boolean truncate = options.truncate() && target(oid).truncate();
            return vacuum.vacuum(entry.heap(), options.withTruncate(truncate), this, listener);
        } catch (RuntimeException | Error e) {
            throw backend.transaction().failed(e);
        } finally {
            backend.locks().unlockRelationForSession(database, oid, mode);
        }
    }

    private <T> T inTransaction(Supplier<T> work) {
        backend.begin();
        try {
            T result = work.get();
            backend.commit(false);
            return result;
        } finally {
            backend.rollback();
        }
    }

    private TableCatalog.VacuumTarget target(int oid) {
        return inTransaction(() -> catalog.vacuumTarget(backend, oid));
    }

    @Override
    public RelationHistory history(HeapRelation relation) {
        return target(relation.oid()).history();
    }

    @Override
    public void vacuumed(HeapRelation relation, VacuumResult result) {
        inTransaction(
                () -> {
                    TableCatalog.VacuumTarget target =
                            catalog.vacuumTarget(backend, relation.oid());
                    catalog.vacuumed(backend, target, result);
                    return null;
                });
    }
}
