package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.TransactionId;
import org.pgkernel.xact.MultiXactMembers;

/**
 * Locks the newer versions of a row, one after another, along the chain that their updates left. A
 * version belongs to it if its xmin, as stored, is who updated the one before, frozen or not (R01);
 * else the chain's end was removed and its place used again.
 *
 * <p>Reused; one backend's. (PostgreSQL: heap_lock_updated_tuple.)
 */
final class ChainLocker {
    private final HeapBackend backend;
    private final LockedTuple tuple;
    private final RowLockers lockers;
    private final NewXmax xmax;

    /** Who is to be waited for, invalid for nobody. */
    private int inTheWay;

    ChainLocker(HeapBackend backend) {
        this.backend = backend;
        tuple = new LockedTuple(backend);
        lockers = new RowLockers(backend);
        xmax = new NewXmax(backend);
    }

    /**
     * The caller has no page locked.
     *
     * @param tid of the version that the chain begins with, which is the caller's to lock
     * @param next its t_ctid
     * @param updater who replaced it
     * @return OK; UPDATED or DELETED if somebody has committed what the lock conflicts with;
     *     WOULD_BLOCK if somebody who does not wait would have to
     */
    TupleOutcome lock(
            HeapRelation relation, long tid, long next, int updater, RowLock lock, LockWait wait) {
        if (next == tid || TupleId.block(next) == BlockNumber.INVALID) {
            return TupleOutcome.OK;
        }
        int xid = backend.session.xid();
        long at = next;
        int prior = updater;
        // What is not there any more was made by a transaction that aborted.
        while (tuple.open(relation, at)) {
            try {
                TupleOutcome outcome = lockOne(prior, xid, lock, wait);
                if (outcome != TupleOutcome.OK || isLast(prior)) {
                    return outcome;
                }
                prior = backend.visibility.updateXid(tuple.page, tuple.at, tuple.infomask());
                at = HeapTupleHeader.ctid(tuple.page, tuple.at);
            } finally {
                tuple.close();
            }
        }
        return TupleOutcome.OK;
    }

    private boolean isLast(int prior) {
        return !belongs(prior)
                || !tuple.movedOn()
                || HeapTupleHeader.ctidBlock(tuple.page, tuple.at) == BlockNumber.INVALID
                || backend.visibility.isOnlyLocked(tuple.page, tuple.at);
    }

    /** Locks one version unless the chain does not reach it. */
    private TupleOutcome lockOne(int prior, int xid, RowLock lock, LockWait wait) {
        for (; ; ) {
            while (tuple.pinMap()) {
                // Pinned now, and the page locked again.
            }
            if (!belongs(prior)) {
                return TupleOutcome.OK;
            }
            inTheWay = TransactionId.INVALID;
            TupleOutcome outcome = look(lock);
            if (TransactionId.isValid(inTheWay)) {
                tuple.unlock();
                if (!tuple.waitForTransaction(inTheWay, wait)) {
                    return TupleOutcome.WOULD_BLOCK;
                }
                tuple.lock();
                continue;
            }
            if (outcome == TupleOutcome.SELF_MODIFIED) {
                return TupleOutcome.OK;
            }
            if (outcome == TupleOutcome.OK) {
                xmax.add(tuple, xid, lock, false);
                tuple.markLocked(xmax, xid, true);
            }
            return outcome;
        }
    }

    private boolean belongs(int prior) {
        int xmin = HeapTupleHeader.xmin(tuple.page, tuple.at);
        if (xmin != prior) {
            return false;
        }
        int infomask = tuple.infomask();
        return TupleVisibility.isXminCommitted(infomask)
                || !TupleVisibility.isXminInvalid(infomask)
                        && (backend.status.isCurrent(xmin)
                                || backend.status.isInProgress(xmin)
                                || backend.status.didCommit(xmin));
    }

    /**
     * @return OK, SELF_MODIFIED if the own transaction has locked it before, UPDATED, DELETED
     */
    private TupleOutcome look(RowLock lock) {
        int infomask = tuple.infomask();
        if ((infomask & HEAP_XMAX_INVALID) != 0) {
            return TupleOutcome.OK;
        }
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0) {
            RowLock held = HeapTupleHeader.lock(infomask, tuple.infomask2());
            boolean isUpdate = !HeapTupleHeader.isLockedOnly(infomask);
            return look(tuple.rawXmax(), held, isUpdate, lock);
        }
        lockers.read(tuple.rawXmax(), infomask);
        MultiXactMembers members = lockers.members();
        for (int i = 0; i < members.count(); i++) {
            int status = members.status(i);
            TupleOutcome outcome =
                    look(
                            members.xid(i),
                            RowLock.ofStatus(status),
                            MultiXactMembers.isUpdate(status),
                            lock);
            if (outcome != TupleOutcome.OK || TransactionId.isValid(inTheWay)) {
                return outcome;
            }
        }
        return TupleOutcome.OK;
    }

    /** (PostgreSQL: test_lockmode_for_conflict.) */
    private TupleOutcome look(int xid, RowLock held, boolean isUpdate, RowLock lock) {
        if (backend.status.isCurrent(xid)) {
            return TupleOutcome.SELF_MODIFIED;
        }
        if (!held.conflictsWith(lock)) {
            return TupleOutcome.OK;
        }
        if (backend.status.isInProgress(xid)) {
            inTheWay = xid;
            return TupleOutcome.OK;
        }
        if (isUpdate && backend.status.didCommit(xid)) {
            return tuple.movedOn() ? TupleOutcome.UPDATED : TupleOutcome.DELETED;
        }
        return TupleOutcome.OK;
    }
}
