package org.pgkernel.cluster;

import org.pgkernel.heap.RelationHistory;
import org.pgkernel.heap.VacuumResult;

/**
 * Where tables are described: our own catalogue, or that of a PostgreSQL cluster. Read as of now,
 * not as of the transaction's snapshot: that one could name files that are gone. (PostgreSQL:
 * GetCatalogSnapshot.)
 */
interface TableCatalog {
    /**
     * What vacuum has to know of a table.
     *
     * @param tid of its row
     * @param truncate its empty tail may be cut off
     */
    record VacuumTarget(long tid, RelationHistory history, boolean truncate) {}

    /**
     * The oid of the table with this name, 0 for none. Without a lock on the table the answer may
     * be old when the caller gets it.
     *
     * @throws org.pgkernel.base.error.RefusedException when there is one that cannot be opened
     */
    int find(Backend backend, String name);

    /** The table, under a lock on it; null when there is none any more. */
    TableEntry read(Backend backend, int oid);

    /** Under the lock that vacuums take, which stays until {@link #vacuumed}. */
    VacuumTarget vacuumTarget(Backend backend, int oid);

    /** Puts down what a vacuum found out, in place. */
    void vacuumed(Backend backend, VacuumTarget target, VacuumResult result);
}
