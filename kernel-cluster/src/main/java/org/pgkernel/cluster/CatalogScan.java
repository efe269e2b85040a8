package org.pgkernel.cluster;

import org.pgkernel.heap.HeapFetch;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.HeapScan;
import org.pgkernel.heap.HeapSnapshot;
import org.pgkernel.heap.MvccSnapshot;
import org.pgkernel.heap.RowValues;
import org.pgkernel.xact.LockMode;

/**
 * Reads a table of the catalogue as of now, the transaction's own changes included; holds a lock on
 * it while it is open. One at a time of a backend and table. (PostgreSQL: systable_beginscan,
 * GetCatalogSnapshot.)
 */
final class CatalogScan implements AutoCloseable {
    private final Backend backend;
    private final HeapRelation relation;
    private final MvccSnapshot snapshot;
    private final HeapSnapshot seen;
    private final HeapScan scan;
    private final HeapFetch fetch;
    private final RowValues row;
    private boolean begun;
    private long tid;

    CatalogScan(Backend backend, HeapRelation relation) {
        this.backend = backend;
        this.relation = relation;
        backend.locks().lockRelation(backend.database(), relation.oid(), LockMode.ACCESS_SHARE);
        snapshot = backend.heap().newSnapshot();
        backend.heap().snapshot(snapshot);
        // What earlier commands of this transaction did is part of now.
        snapshot.xact().curcid(backend.session().commandId(false));
        seen = HeapSnapshot.mvcc(snapshot);
        scan = new HeapScan(backend.heap());
        fetch = new HeapFetch(backend.heap());
        row = new RowValues(relation.descriptor());
    }

    RowValues row() {
        return row;
    }

    long tid() {
        return tid;
    }

    /** Goes to the next row and reads it. */
    boolean next() {
        if (!begun) {
            begun = true;
            scan.begin(relation, seen);
        }
        if (!scan.next()) {
            return false;
        }
        tid = scan.tuple().tid();
        row.clear();
        scan.tuple().read(row);
        return true;
    }

    /** Reads the row at a place, if there is one that is seen. */
    boolean fetch(long at) {
        if (!fetch.fetch(relation, at, seen)) {
            return false;
        }
        tid = at;
        row.clear();
        fetch.tuple().read(row);
        return true;
    }

    @Override
    public void close() {
        scan.close();
        fetch.close();
        backend.locks().unlockRelation(backend.database(), relation.oid(), LockMode.ACCESS_SHARE);
    }
}
