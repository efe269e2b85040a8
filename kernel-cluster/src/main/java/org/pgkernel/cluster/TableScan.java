package org.pgkernel.cluster;

import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.HeapScan;
import org.pgkernel.heap.HeapSnapshot;
import org.pgkernel.heap.MvccSnapshot;
import org.pgkernel.heap.RowValues;

/**
 * A table's rows in the order of the file, as one snapshot sees them: that of the statement in
 * which the scan began. Ends with its transaction, or its savepoint when that is rolled back. One
 * backend's.
 */
public final class TableScan implements AutoCloseable {
    private final BackendTransaction transaction;
    private final HeapScan scan;
    private final int level;
    private boolean over;

    TableScan(Backend backend, HeapRelation heap) {
        transaction = backend.transaction();
        MvccSnapshot snapshot = backend.heap().newSnapshot();
        transaction.copySnapshot(snapshot);
        scan = new HeapScan(backend.heap());
        level = transaction.level();
        transaction.opened(this);
        scan.begin(heap, HeapSnapshot.mvcc(snapshot));
    }

    int level() {
        return level;
    }

    /**
     * Goes to the next row.
     *
     * @return false at the end
     */
    public boolean next() {
        if (over) {
            throw new IllegalStateException("the scan is over");
        }
        transaction.requireActive();
        try {
            return scan.next();
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /** Where the row is, see {@link org.pgkernel.heap.TupleId}. */
    public long tid() {
        return scan.tuple().tid();
    }

    /** Reads the row; values that are not numbers are good until the next call of {@link #next}. */
    public void read(RowValues row) {
        row.clear();
        scan.tuple().read(row);
    }

    /** With its transaction or savepoint. */
    void end() {
        close();
    }

    @Override
    public void close() {
        if (!over) {
            over = true;
            scan.close();
            transaction.closed(this);
        }
    }
}
