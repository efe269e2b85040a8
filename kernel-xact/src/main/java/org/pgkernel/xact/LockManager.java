package org.pgkernel.xact;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.agrona.DirectBuffer;

/**
 * Locks that last as long as a transaction or a session: on relations, on rows, and the wait for
 * another transaction's end. Sessions ask for them through {@link SessionLocks}.
 *
 * <p><b>Who gets a lock.</b> Whoever conflicts neither with who holds it nor with who waits for it;
 * others wait in a queue, and whoever conflicts with an earlier waiter does not get past it. One
 * exception: who holds the lock already in a mode that a waiter conflicts with comes before that
 * waiter, since the waiter could not be served before it anyway. What is given up, or waited for no
 * longer, serves the queue from its head: each who conflicts with no holder and with nobody who is
 * left waiting before it.
 *
 * <p><b>A transaction's end.</b> No transaction takes a lock on its own xid. Who waits enters
 * itself under the xid, counts itself, and only then looks whether the transaction runs. Who ends
 * leaves the running table first and then looks at the count. All these accesses are volatile: one
 * of both sees the other, so nobody sleeps past the end, and who ends while nobody waits reads one
 * word.
 *
 * <p><b>Deadlock.</b> Who has waited for a while looks, with the whole table locked, whether it
 * waits for itself: for who holds a lock, for who stands before it in a queue, or for who runs a
 * transaction ({@link DeadlockDetector}). Whoever enters the circle last looks after it is closed,
 * so looking once a wait is enough.
 *
 * <p>(PostgreSQL: lock.c, proc.c, lmgr.c. Without its fast path: all locks are in the table.)
 */
public final class LockManager {
    static final int PARTITIONS = 16;

    /** Answers to a request. */
    static final int GRANTED = 0;

    static final int WAITING = 1;
    static final int NOT_AVAILABLE = 2;

    final TransactionManager transactions;
    final LockOptions options;
    private final LockPartition[] partitions = new LockPartition[PARTITIONS];
    private final AtomicReferenceArray<SessionLocks> sessions;

    /** Who waits for the end of some transaction. Counted under the lock of the xid's partition. */
    private final AtomicInteger transactionWaiters = new AtomicInteger();

    LockManager(TransactionManager transactions, LockOptions options, int slots) {
        this.transactions = transactions;
        this.options = options;
        sessions = new AtomicReferenceArray<>(slots);
        for (int i = 0; i < PARTITIONS; i++) {
            partitions[i] = new LockPartition();
        }
    }

    SessionLocks open(TransactionSession session) {
        SessionLocks locks = new SessionLocks(this, session);
        sessions.set(session.slot, locks);
        return locks;
    }

    LockPartition partition(LockTag tag) {
        return partitions[tag.hashCode() & PARTITIONS - 1];
    }

    /**
     * Gives the session a lock that it does not hold in this mode, or puts it into the queue.
     *
     * @param holder of the session at this lock, not linked yet if it neither holds nor awaits it
     * @return {@link #GRANTED}, {@link #WAITING}, or {@link #NOT_AVAILABLE} if it does not wait
     */
    int request(LockHolder holder, LockTag tag, LockMode mode, boolean wait) {
        LockPartition partition = partition(tag);
        partition.lock.lock();
        try {
            LockEntry entry = holder.entry;
            if (entry == null) {
                entry = partition.findOrMake(tag);
                entry.link(holder);
                holder.entry = entry;
            }
            int position = placeOf(holder, mode);
            if (position < 0) {
                entry.grant(mode, holder);
                return GRANTED;
            }
            if (!wait) {
                unlinkIfUnused(holder);
                return NOT_AVAILABLE;
            }
            holder.session.waits(entry, holder, mode);
            if (position < entry.waiting() && isMutual(holder, mode, entry.waiter(position))) {
                holder.session.looksAtOnce();
            }
            entry.enqueue(position, holder.session, mode);
            return WAITING;
        } finally {
            partition.lock.unlock();
        }
    }

    /** True if each of both holds what the other one waits for. (RememberSimpleDeadLock) */
    private static boolean isMutual(LockHolder holder, LockMode mode, SessionLocks waiter) {
        return (mode.conflicts & waiter.waitHolder().holdMask) != 0
                && (waiter.waitMode().conflicts & holder.holdMask) != 0;
    }

    /**
     * Where the request stands in the queue, negative if it is granted at once. (PostgreSQL:
     * LockAcquireExtended, ProcSleep.)
     */
    private static int placeOf(LockHolder holder, LockMode mode) {
        LockEntry entry = holder.entry;
        boolean isHeld = entry.isHeldAgainst(mode, holder);
        if (!isHeld && (mode.conflicts & entry.waitMask()) == 0) {
            return -1;
        }
        int ahead = 0;
        for (int i = 0; i < entry.waiting() && holder.holdMask != 0; i++) {
            LockMode waited = entry.waiter(i).waitMode();
            if ((waited.conflicts & holder.holdMask) != 0) {
                return !isHeld && (mode.conflicts & ahead) == 0 ? -1 : i;
            }
            ahead |= waited.bit();
        }
        return entry.waiting();
    }

    /** Gives up what the session holds of a lock in one mode, and serves who waits for it. */
    void release(LockHolder holder, LockMode mode) {
        LockEntry entry = holder.entry;
        LockPartition partition = entry.partition;
        partition.lock.lock();
        try {
            entry.ungrant(mode, holder);
            if ((mode.conflicts & entry.waitMask()) != 0) {
                serve(entry);
            }
            unlinkIfUnused(holder);
        } finally {
            partition.lock.unlock();
        }
    }

    /** A holder that is not linked has no entry any more. */
    private static void unlinkIfUnused(LockHolder holder) {
        if (holder.holdMask == 0) {
            LockEntry entry = holder.entry;
            entry.unlink(holder);
            holder.entry = null;
            entry.partition.forgetIfUnused(entry);
        }
    }

    /** (PostgreSQL: ProcLockWakeup.) */
    void serve(LockEntry entry) {
        int ahead = 0;
        int position = 0;
        while (position < entry.waiting()) {
            SessionLocks waiter = entry.waiter(position);
            LockMode mode = waiter.waitMode();
            if ((mode.conflicts & ahead) == 0 && !entry.isHeldAgainst(mode, waiter.waitHolder())) {
                entry.grant(mode, waiter.waitHolder());
                entry.dequeue(waiter);
                waiter.served();
            } else {
                ahead |= mode.bit();
                position++;
            }
        }
    }

    /** Enters the session among those who wait for the end of a transaction. */
    void enterWait(SessionLocks session, LockTag tag) {
        LockPartition partition = partition(tag);
        partition.lock.lock();
        try {
            LockEntry entry = partition.findOrMake(tag);
            session.waits(entry, null, LockMode.SHARE);
            entry.enqueue(entry.waiting(), session, LockMode.SHARE);
            transactionWaiters.incrementAndGet();
        } finally {
            partition.lock.unlock();
        }
    }

    /**
     * Transactions have left the running table: wakes who waits for them.
     *
     * @param xids {@code count} of four bytes each from {@code offset} on
     * @param scratch of the caller
     */
    void ended(DirectBuffer xids, int offset, int count, LockTag scratch) {
        for (int i = 0; i < count && transactionWaiters.get() > 0; i++) {
            LockTag tag = scratch.transaction(xids.getInt(offset + i * 4));
            LockPartition partition = partition(tag);
            partition.lock.lock();
            try {
                LockEntry entry = partition.find(tag);
                while (entry != null && entry.waiting() > 0) {
                    SessionLocks waiter = entry.waiter(0);
                    entry.dequeue(waiter);
                    transactionWaiters.decrementAndGet();
                    waiter.served();
                }
                if (entry != null) {
                    partition.forgetIfUnused(entry);
                }
            } finally {
                partition.lock.unlock();
            }
        }
    }

    /**
     * Ends a session's wait unless it has been served.
     *
     * @return false if it has
     */
    boolean cancel(SessionLocks session) {
        LockPartition partition = session.waitEntry().partition;
        partition.lock.lock();
        try {
            if (!session.isWaiting()) {
                return false;
            }
            remove(session);
            return true;
        } finally {
            partition.lock.unlock();
        }
    }

    /** (PostgreSQL: RemoveFromWaitQueue.) */
    private void remove(SessionLocks session) {
        LockEntry entry = session.waitEntry();
        LockHolder holder = session.waitHolder();
        entry.dequeue(session);
        session.waitsNoLonger();
        if (holder == null) {
            transactionWaiters.decrementAndGet();
            entry.partition.forgetIfUnused(entry);
        } else {
            serve(entry);
            unlinkIfUnused(holder);
        }
    }

    /**
     * Looks whether a waiting session waits for itself. Waiters are put into another order if that
     * helps; if nothing does, the session waits no longer. (PostgreSQL: CheckDeadLock.)
     *
     * @return who waits for whom, or null if there is no deadlock
     */
    String checkDeadlock(SessionLocks session) {
        for (LockPartition partition : partitions) {
            partition.lock.lock();
        }
        try {
            if (!session.isWaiting()) {
                return null;
            }
            String circle = new DeadlockDetector(this).check(session);
            if (circle != null) {
                remove(session);
            }
            return circle;
        } finally {
            for (LockPartition partition : partitions) {
                partition.lock.unlock();
            }
        }
    }

    /** The locks of whoever runs a transaction now; null if it has ended. */
    SessionLocks runs(int topXid) {
        int slot = transactions.running().slotOf(topXid);
        return slot < 0 ? null : sessions.get(slot);
    }

    /** True if somebody waits for a lock in a mode that conflicts. (PostgreSQL: LockHasWaiters.) */
    boolean hasWaiters(LockTag tag, LockMode mode) {
        LockPartition partition = partition(tag);
        partition.lock.lock();
        try {
            LockEntry entry = partition.find(tag);
            return entry != null && (entry.waitMask() & mode.conflicts) != 0;
        } finally {
            partition.lock.unlock();
        }
    }

    /** The kernel has stopped: whoever waits shall look. */
    void wakeAll() {
        for (int i = 0; i < sessions.length(); i++) {
            SessionLocks session = sessions.get(i);
            if (session != null) {
                session.wakeIfWaiting();
            }
        }
    }

    /** How many locks are held or waited for. */
    int size() {
        int size = 0;
        for (LockPartition partition : partitions) {
            partition.lock.lock();
            try {
                size += partition.size();
            } finally {
                partition.lock.unlock();
            }
        }
        return size;
    }
}
