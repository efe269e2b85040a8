package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_KEYS_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_LOCK_MASK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;

import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Locks rows: SELECT ... FOR UPDATE and its weaker forms. The lock is the transaction's xid in the
 * tuple's xmax, or a multixact of all who hold one; it ends with the transaction, and nobody takes
 * it off the page.
 *
 * <p><b>Waiting.</b> The page's lock is given up, a place in the row's queue is taken (a lock on
 * the tuple in the lock table), and then the holders' ends are waited for: so whoever came first is
 * the next one. Then the page is locked again, and if xmax is not the one that was waited for all
 * begins anew, in the same place of the queue. Who holds a weaker lock on the row already does not
 * queue: the first in the queue may be waiting for it.
 *
 * <p>Reused; one backend's. (PostgreSQL: heap_lock_tuple, README.tuplock.)
 */
public final class HeapLocker {
    private enum Step {
        /** The tuple has changed while the page was not locked. */
        START_OVER,

        /** The transaction holds such a lock already. */
        HELD,

        GO_ON,
        FAILED,

        /** Somebody must be waited for; the page is not locked. In all others but HELD it is. */
        MUST_WAIT
    }

    private final HeapBackend backend;
    private final LockedTuple tuple;
    private final ChainLocker chain;
    private final RowLockers lockers;
    private final NewXmax xmax;
    private final TupleConflict conflict = new TupleConflict();

    // Of the call under way.
    private RowLock lock;
    private LockWait wait;
    private boolean followUpdates;
    private TupleOutcome failure;
    private boolean hasWeakerLock;

    // What the tuple's header was before the page was given up.
    private int oldXmax;
    private int oldInfomask;
    private int oldInfomask2;
    private int oldUpdater;
    private long oldCtid;

    public HeapLocker(HeapBackend backend) {
        this.backend = backend;
        tuple = new LockedTuple(backend);
        chain = new ChainLocker(backend);
        lockers = new RowLockers(backend);
        xmax = new NewXmax(backend);
    }

    /** What was in the way of the last lock that failed. */
    public TupleConflict conflict() {
        return conflict;
    }

    /**
     * Locks a version of a row that the current command sees. The caller holds a lock on the
     * relation that allows it.
     *
     * @param followUpdates newer versions are locked, too, if the lock does not conflict with who
     *     made them
     * @return OK, INVISIBLE, SELF_MODIFIED, UPDATED, DELETED or, with SKIP_LOCKED, WOULD_BLOCK; see
     *     {@link #conflict}
     * @throws org.pgkernel.base.error.LockNotAvailableException with NOWAIT, or when waiting took
     *     too long
     * @throws org.pgkernel.base.error.DeadlockException when waiting would not end
     */
    public TupleOutcome lock(
            HeapRelation relation, long tid, RowLock lock, LockWait wait, boolean followUpdates) {
        this.lock = lock;
        this.wait = wait;
        this.followUpdates = followUpdates;
        hasWeakerLock = false;
        int commandId = backend.session.commandId(true);
        backend.setOldestMultiMember();
        try {
            return tuple.open(relation, tid) ? lock(commandId) : TupleOutcome.INVISIBLE;
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, TupleId.block(tid));
        } finally {
            tuple.close();
        }
    }

    private TupleOutcome lock(int commandId) {
        boolean first = true;
        for (; ; ) {
            TupleOutcome seen = tuple.status(commandId);
            if (seen == TupleOutcome.INVISIBLE) {
                return seen;
            }
            Step step = seen == TupleOutcome.OK ? Step.GO_ON : settle(seen, first);
            switch (step) {
                case HELD -> {
                    return TupleOutcome.OK;
                }
                case FAILED -> {
                    conflict.set(tuple, backend.visibility, failure);
                    return failure;
                }
                case GO_ON -> {
                    if (!tuple.pinMap()) {
                        mark();
                        return TupleOutcome.OK;
                    }
                }
                case START_OVER, MUST_WAIT -> {}
            }
            first = first && seen == TupleOutcome.OK;
        }
    }

    private void mark() {
        int xid = backend.session.xid();
        xmax.add(tuple, xid, lock, false);
        tuple.markLocked(xmax, xid, false);
    }

    private Step fail(TupleOutcome outcome) {
        failure = outcome;
        return Step.FAILED;
    }

    /** Deals with who has changed or locked the tuple. */
    private Step settle(TupleOutcome seen, boolean first) {
        if (seen == TupleOutcome.SELF_MODIFIED) {
            return fail(seen);
        }
        oldXmax = tuple.rawXmax();
        oldInfomask = tuple.infomask();
        oldInfomask2 = tuple.infomask2();
        oldCtid = HeapTupleHeader.ctid(tuple.page, tuple.at);
        oldUpdater =
                isLockedOnly()
                        ? TransactionId.INVALID
                        : backend.visibility.updateXid(tuple.page, tuple.at, oldInfomask);
        tuple.unlock();
        if (first && isHeld()) {
            return Step.HELD;
        }
        Step step = withoutWaiting();
        if (step != Step.MUST_WAIT) {
            return step;
        }
        if (seen != TupleOutcome.BEING_MODIFIED) {
            // What has committed is not undone by waiting.
            tuple.lock();
            return fail(seen);
        }
        return waitForHolders();
    }

    private boolean isLockedOnly() {
        return HeapTupleHeader.isLockedOnly(oldInfomask);
    }

    private boolean isMulti() {
        return (oldInfomask & HEAP_XMAX_IS_MULTI) != 0;
    }

    private boolean isHeld() {
        RowLock own = null;
        if (isMulti()) {
            own = lockers.look(oldXmax, oldInfomask, lock).own();
            hasWeakerLock = own != null;
        } else if (backend.status.isCurrent(oldXmax)) {
            own = HeapTupleHeader.lock(oldInfomask, oldInfomask2);
        }
        return own != null && own.compareTo(lock) >= 0;
    }

    /** Locks the page again if nobody who holds the row is in the way. */
    private Step withoutWaiting() {
        boolean isKeyShared = (oldInfomask & HEAP_LOCK_MASK) == HEAP_XMAX_KEYSHR_LOCK;
        switch (lock) {
            case KEY_SHARE -> {
                if ((oldInfomask2 & HEAP_KEYS_UPDATED) == 0) {
                    return keyShare();
                }
            }
            case SHARE -> {
                if (isLockedOnly() && !isExclusive(oldInfomask)) {
                    tuple.lock();
                    int infomask = tuple.infomask();
                    return HeapTupleHeader.isLockedOnly(infomask) && !isExclusive(infomask)
                            ? Step.GO_ON
                            : Step.START_OVER;
                }
            }
            case NO_KEY_UPDATE -> {
                if (isMulti()
                        ? !lockers.look(oldXmax, oldInfomask, lock).conflict()
                        : isKeyShared) {
                    return lockUnchanged();
                }
            }
            case UPDATE -> {}
        }
        // The only one, with a weaker lock. Among others it is looked for later.
        return !isMulti() && backend.status.isCurrent(oldXmax) ? lockUnchanged() : Step.MUST_WAIT;
    }

    private static boolean isExclusive(int infomask) {
        return (infomask & HEAP_LOCK_MASK) == HEAP_XMAX_EXCL_LOCK;
    }

    private Step lockUnchanged() {
        tuple.lock();
        return tuple.xmaxChanged(oldXmax, oldInfomask) ? Step.START_OVER : Step.GO_ON;
    }

    /**
     * Nobody has changed the key, so newer versions are the same row to whoever needs the key: they
     * are locked first, for which the page must not be locked.
     */
    private Step keyShare() {
        boolean updated = !isLockedOnly();
        TupleOutcome newer =
                updated && followUpdates
                        ? chain.lock(tuple.relation, tuple.tid, oldCtid, oldUpdater, lock, wait)
                        : TupleOutcome.OK;
        tuple.lock();
        if (newer != TupleOutcome.OK) {
            return fail(newer);
        }
        boolean isOnlyLocked = backend.visibility.isOnlyLocked(tuple.page, tuple.at);
        boolean keysUpdated = (tuple.infomask2() & HEAP_KEYS_UPDATED) != 0;
        // Others may have locked it meanwhile. Was it updated, there is something to follow.
        return !isOnlyLocked && (keysUpdated || !updated) ? Step.START_OVER : Step.GO_ON;
    }

    /**
     * Newer versions are not followed here: either nothing comes of them, or the lock conflicts
     * with who made them and the caller is told.
     */
    private Step waitForHolders() {
        boolean ended =
                (hasWeakerLock || tuple.queue(lock, wait))
                        && (isMulti() ? membersEnd() : tuple.waitForTransaction(oldXmax, wait));
        tuple.lock();
        if (!ended) {
            return fail(TupleOutcome.WOULD_BLOCK);
        }
        if (tuple.xmaxChanged(oldXmax, oldInfomask)) {
            return Step.START_OVER;
        }
        if (!isMulti()) {
            backend.visibility.hintXmaxEnded(tuple.page, tuple.at, tuple.hints());
        }
        if (backend.visibility.isOnlyLocked(tuple.page, tuple.at)) {
            return Step.GO_ON;
        }
        return fail(tuple.movedOn() ? TupleOutcome.UPDATED : TupleOutcome.DELETED);
    }

    private boolean membersEnd() {
        lockers.read(oldXmax, oldInfomask);
        if (wait == LockWait.WAIT) {
            tuple.waitForMembers(lockers, lock.lockStatus);
            return true;
        }
        return tuple.tryWaitForMembers(lockers, lock.lockStatus) >= 0 || tuple.refuse(wait);
    }
}
