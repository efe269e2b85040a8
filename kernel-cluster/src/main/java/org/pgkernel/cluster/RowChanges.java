package org.pgkernel.cluster;

import org.pgkernel.base.error.RefusedException;
import org.pgkernel.base.error.SerializationException;
import org.pgkernel.heap.HeapDeleter;
import org.pgkernel.heap.HeapFetch;
import org.pgkernel.heap.HeapLocker;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.HeapSnapshot;
import org.pgkernel.heap.HeapUpdater;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleConflict;
import org.pgkernel.heap.TupleId;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.xact.LockMode;

/**
 * A backend's updates, deletions and row locks, by the rules of its transaction's isolation: who
 * comes after a committed change of another's goes on from there at READ COMMITTED, and fails at
 * REPEATABLE READ. One thread. (PostgreSQL: ExecUpdate, ExecDelete, ExecLockRows.)
 */
final class RowChanges {
    private final Backend backend;
    private final HeapUpdater updater;
    private final HeapDeleter deleter;
    private final HeapLocker locker;
    private final HeapFetch fetch;
    private long newTid = TupleId.INVALID;

    RowChanges(Backend backend) {
        this.backend = backend;
        updater = new HeapUpdater(backend.heap());
        deleter = new HeapDeleter(backend.heap());
        locker = new HeapLocker(backend.heap());
        fetch = new HeapFetch(backend.heap());
    }

    long newTid() {
        return newTid;
    }

    TupleOutcome update(Table table, long tid, RowValues row) {
        HeapRelation heap = table.forWriting();
        TupleOutcome outcome = checked(table, tid, updater.update(heap, tid, row, true));
        newTid = outcome == TupleOutcome.OK ? updater.newTid() : TupleId.INVALID;
        return outcome;
    }

    TupleOutcome delete(Table table, long tid) {
        return checked(table, tid, deleter.delete(table.forWriting(), tid, true));
    }

    TupleOutcome lock(Table table, long tid, RowLock lock, LockWait wait) {
        return checked(table, tid, lockOne(table, tid, lock, wait));
    }

    private TupleOutcome lockOne(Table table, long tid, RowLock lock, LockWait wait) {
        HeapRelation heap = table.lock(LockMode.ROW_SHARE).heap();
        // A newer version of an update that goes on is locked, too, whatever the isolation: a
        // key-share lock must hold when the updater is gone.
        // (TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS)
        return locker.lock(heap, tid, lock, wait, true);
    }

    /**
     * From version to version, each checked to be the one before's: its place may have been used
     * again since (R01).
     */
    TupleOutcome lockLatest(Table table, long tid, RowLock lock, LockWait wait) {
        long at = tid;
        for (; ; ) {
            TupleOutcome outcome = checked(table, at, lockOne(table, at, lock, wait));
            if (outcome != TupleOutcome.UPDATED) {
                newTid = outcome == TupleOutcome.OK ? at : TupleId.INVALID;
                return outcome;
            }
            TupleConflict conflict = locker.conflict();
            long next = conflict.nextTid();
            if (next == at || !isMadeBy(table, next, conflict.xmax())) {
                newTid = TupleId.INVALID;
                return TupleOutcome.DELETED;
            }
            at = next;
        }
    }

    private boolean isMadeBy(Table table, long tid, int xid) {
        try {
            return fetch.fetch(table.forReading(), tid, HeapSnapshot.ANY)
                    && fetch.tuple().xmin() == xid;
        } finally {
            fetch.close();
        }
    }

    private TupleOutcome checked(Table table, long tid, TupleOutcome outcome) {
        boolean otherWasFirst = outcome == TupleOutcome.UPDATED || outcome == TupleOutcome.DELETED;
        if (otherWasFirst && backend.transaction().isRepeatableRead()) {
            throw new SerializationException(
                    "another transaction has "
                            + (outcome == TupleOutcome.UPDATED ? "updated" : "deleted")
                            + " the row since the transaction's snapshot: table="
                            + table.name()
                            + " row="
                            + TupleId.format(tid));
        }
        if (outcome == TupleOutcome.INVISIBLE) {
            throw new RefusedException(
                    "there is no row here that the transaction may see: table="
                            + table.name()
                            + " row="
                            + TupleId.format(tid));
        }
        return outcome;
    }
}
