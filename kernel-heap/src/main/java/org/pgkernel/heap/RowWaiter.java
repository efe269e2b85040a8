package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_LOCK_MASK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;

/**
 * Waits until a tuple may be updated or deleted, or it is clear that it may not. Reused; one
 * backend's. (PostgreSQL: what heap_update and heap_delete have in common.)
 */
final class RowWaiter {
    private final HeapBackend backend;
    private final RowLockers lockers;
    private boolean lockersAreGone;

    RowWaiter(HeapBackend backend) {
        this.backend = backend;
        lockers = new RowLockers(backend);
    }

    /** Nobody is known to hold a lock on the tuple still; after OK only. */
    boolean lockersAreGone() {
        return lockersAreGone;
    }

    /**
     * @param lock that the change takes
     * @param wait false to answer BEING_MODIFIED instead of waiting
     * @param conflict filled in unless the outcome is OK or INVISIBLE
     * @return OK: the page is locked, has its visibility map's page pinned if it is all-visible,
     *     and the tuple may be changed
     */
    TupleOutcome await(
            LockedTuple tuple, RowLock lock, boolean wait, int commandId, TupleConflict conflict) {
        for (; ; ) {
            lockersAreGone = false;
            TupleOutcome outcome = tuple.status(commandId);
            boolean again = false;
            if (outcome == TupleOutcome.BEING_MODIFIED) {
                outcome = holdersEnd(tuple, lock, wait);
                again = outcome == null;
            }
            if (again) {
                continue;
            }
            if (outcome != TupleOutcome.OK) {
                if (outcome != TupleOutcome.INVISIBLE) {
                    conflict.set(tuple, backend.visibility, outcome);
                }
                return outcome;
            }
            if (!tuple.pinMap()) {
                return outcome;
            }
        }
    }

    /** Null to begin anew. */
    private TupleOutcome holdersEnd(LockedTuple tuple, RowLock lock, boolean wait) {
        int xmax = tuple.rawXmax();
        int infomask = tuple.infomask();
        boolean isMulti = (infomask & HEAP_XMAX_IS_MULTI) != 0;
        boolean isKeyShared = (infomask & HEAP_LOCK_MASK) == HEAP_XMAX_KEYSHR_LOCK;
        boolean inTheWay =
                isMulti
                        ? lockers.look(xmax, infomask, lock).conflict()
                        : !backend.status.isCurrent(xmax)
                                && !(isKeyShared && lock == RowLock.NO_KEY_UPDATE);
        if (inTheWay && !wait) {
            int remaining = isMulti ? tuple.tryWaitForMembers(lockers, lock.updateStatus) : -1;
            if (remaining < 0) {
                return TupleOutcome.BEING_MODIFIED;
            }
            lockersAreGone = remaining == 0;
        } else if (inTheWay) {
            tuple.unlock();
            if (isMulti) {
                // The own transaction holds a lock: who is first in the queue may wait for it.
                if (!lockers.isMember()) {
                    tuple.queue(lock, LockWait.WAIT);
                }
                lockersAreGone = tuple.waitForMembers(lockers, lock.updateStatus) == 0;
            } else {
                tuple.queue(lock, LockWait.WAIT);
                tuple.waitForTransaction(xmax, LockWait.WAIT);
                lockersAreGone = true;
            }
            tuple.lock();
            if (tuple.xmaxChanged(xmax, infomask)) {
                return null;
            }
            if (!isMulti) {
                backend.visibility.hintXmaxEnded(tuple.page, tuple.at, tuple.hints());
            }
        }
        if (backend.visibility.isOnlyLocked(tuple.page, tuple.at)) {
            return TupleOutcome.OK;
        }
        return tuple.movedOn() ? TupleOutcome.UPDATED : TupleOutcome.DELETED;
    }
}
