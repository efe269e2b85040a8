package org.pgkernel.xact;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.agrona.DirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.RunningXacts;

/**
 * Which transactions run: one slot a session, in arrays, the number of slots fixed. Snapshots and
 * horizons are read from it without a lock.
 *
 * <p><b>The count.</b> What ends a transaction or a subtransaction, or takes a slot, does so under
 * {@link #lock} and makes {@link #sequence} odd before and even after. Beginning one does not touch
 * the count: its xid is later than all that have ended, so that it lies past every snapshot's xmax.
 * A reader that finds the count even, reads the arrays, and finds the same count again has read
 * what the arrays held at one moment, begun transactions apart, and these do not matter to it.
 * After some failures it takes the lock, so nobody waits for ever. (PostgreSQL: ProcArrayLock and
 * xactCompletionCount.)
 *
 * <p><b>xmin is published before the count is looked at again.</b> All accesses are volatile, hence
 * in one order. If the count is still the same, the published xmin stands before the next ending,
 * and who computes a horizon after that ending reads it; who computed one before has not gone past
 * that xmin, because the xids which made it were there. If the count has changed, the xmin
 * published is replaced by that of the next attempt; in between it can only hold a horizon back.
 *
 * <p><b>Ids are there before they matter.</b> {@link XidGenerator} publishes an xid before a later
 * one is assigned. So whatever is not past the last ended xid, and has not ended, is in the table,
 * and so are its subtransactions, or the word that there were too many. Both vanish in one ending.
 *
 * <p>(PostgreSQL: procarray.c, PGPROC.)
 */
class RunningTransactions {
    /** Subtransactions that a slot holds. (PostgreSQL: PGPROC_MAX_CACHED_SUBXIDS.) */
    static final int CACHED_SUBXIDS = 64;

    /** Answers of {@link #isInProgress}: pg_subtrans must be asked for the third. */
    static final int NO = 0;

    static final int YES = 1;
    static final int PERHAPS = 2;

    /** In a slot's word of subtransactions, above their number. */
    private static final int OVERFLOWED = 1 << 30;

    private static final int ATTEMPTS = 100;

    private final int slots;
    private final int cachedSubxids;

    /** Taken to end a transaction, and to take or give back a slot. */
    private final Object lock = new Object();

    /** Under the lock. */
    private final boolean[] used;

    /** Slots from here on were never used; grows, under the lock. */
    private volatile int limit;

    /** Odd while something ends; changed under the lock. */
    private volatile long sequence;

    /** The latest xid that has ended, with its epoch; changed under the lock. */
    private volatile long latestCompleted;

    // Set by the slot's session; xids, subxids and their number are removed under the lock.
    private final AtomicIntegerArray xids;
    private final AtomicIntegerArray subxidStates;
    private final AtomicIntegerArray subxids;

    // Set by the slot's session alone.
    private final AtomicIntegerArray xmins;
    private final AtomicIntegerArray vacuuming;

    /** Odd while the session is between its commit record and pg_xact. */
    private final AtomicIntegerArray commits;

    /** Set with the slot. */
    private final AtomicIntegerArray databases;

    RunningTransactions(int slots, int cachedSubxids, long nextFullXid) {
        this.slots = slots;
        this.cachedSubxids = cachedSubxids;
        used = new boolean[slots];
        xids = new AtomicIntegerArray(slots);
        subxidStates = new AtomicIntegerArray(slots);
        subxids = new AtomicIntegerArray(slots * cachedSubxids);
        xmins = new AtomicIntegerArray(slots);
        vacuuming = new AtomicIntegerArray(slots);
        commits = new AtomicIntegerArray(slots);
        databases = new AtomicIntegerArray(slots);
        latestCompleted = previous(nextFullXid);
    }

    private static long previous(long full) {
        long previous = full - 1;
        while (!TransactionId.isNormal(TransactionId.xidOf(previous))
                && previous >= TransactionId.FIRST_NORMAL) {
            previous--;
        }
        return previous;
    }

    int slots() {
        return slots;
    }

    long latestCompleted() {
        return latestCompleted;
    }

    /**
     * Takes a slot.
     *
     * @param database 0 for a session that belongs to none: it holds back all horizons
     */
    int acquireSlot(int database) {
        synchronized (lock) {
            for (int slot = 0; slot < slots; slot++) {
                if (!used[slot]) {
                    used[slot] = true;
                    databases.set(slot, database);
                    limit = Math.max(limit, slot + 1);
                    return slot;
                }
            }
        }
        throw new RefusedException("there are too many sessions already; slots=" + slots);
    }

    void releaseSlot(int slot) {
        assert xids.get(slot) == TransactionId.INVALID : "a transaction runs";
        synchronized (lock) {
            xmins.set(slot, TransactionId.INVALID);
            vacuuming.set(slot, 0);
            used[slot] = false;
        }
    }

    /** By the slot's session, under the lock of {@link XidGenerator}. */
    void addXid(int slot, int xid) {
        assert xids.get(slot) == TransactionId.INVALID && subxidStates.get(slot) == 0;
        xids.set(slot, xid);
    }

    /** The same for a subtransaction. What does not fit is to be looked for in pg_subtrans. */
    void addSubxid(int slot, int xid) {
        int state = subxidStates.get(slot);
        int count = state & ~OVERFLOWED;
        if (count < cachedSubxids) {
            subxids.set(slot * cachedSubxids + count, xid);
            subxidStates.set(slot, state + 1);
        } else {
            subxidStates.set(slot, state | OVERFLOWED);
        }
    }

    /**
     * The slot's transaction and all its subtransactions run no longer. What became of them is in
     * pg_xact already. (PostgreSQL: ProcArrayEndTransaction.)
     *
     * @param latestXid the latest of them
     */
    void end(int slot, int latestXid) {
        synchronized (lock) {
            beginChange();
            removeAll(slot);
            completed(latestXid);
            endChange();
        }
    }

    final void removeAll(int slot) {
        xids.set(slot, TransactionId.INVALID);
        xmins.set(slot, TransactionId.INVALID);
        vacuuming.set(slot, 0);
        subxidStates.set(slot, 0);
    }

    /** One that had no xid: nobody's snapshot changes. */
    void endWithoutXid(int slot) {
        xmins.set(slot, TransactionId.INVALID);
        vacuuming.set(slot, 0);
    }

    /**
     * Subtransactions have aborted. (PostgreSQL: XidCacheRemoveRunningXids.)
     *
     * @param list {@code count} xids from {@code offset} on, in order
     */
    void endSubtransactions(int slot, DirectBuffer list, int offset, int count) {
        synchronized (lock) {
            beginChange();
            for (int i = count - 1; i >= 0; i--) {
                removeSubxid(slot, list.getInt(offset + i * 4));
            }
            completed(list.getInt(offset + (count - 1) * 4));
            endChange();
        }
    }

    private void removeSubxid(int slot, int xid) {
        int state = subxidStates.get(slot);
        int count = state & ~OVERFLOWED;
        int base = slot * cachedSubxids;
        for (int i = count - 1; i >= 0; i--) {
            if (subxids.get(base + i) == xid) {
                subxids.set(base + i, subxids.get(base + count - 1));
                subxidStates.set(slot, state - 1);
                return;
            }
        }
        assert (state & OVERFLOWED) != 0 : "a subtransaction was not in the table: " + xid;
    }

    final void beginChange() {
        assert (sequence & 1) == 0 : "two changes at a time";
        sequence = sequence + 1;
    }

    final void endChange() {
        sequence = sequence + 1;
    }

    /** (PostgreSQL: MaintainLatestCompletedXid.) */
    final void completed(int xid) {
        long latest = latestCompleted;
        if (TransactionId.precedes(TransactionId.xidOf(latest), xid)) {
            latestCompleted = full(latest, xid);
        }
    }

    /** Runs an ending in parts, for tests that look in between. */
    final void locked(Runnable change) {
        synchronized (lock) {
            change.run();
        }
    }

    /** The full id of an xid less than 2^31 away. (PostgreSQL: FullXidRelativeTo.) */
    static long full(long near, int xid) {
        return near + (xid - TransactionId.xidOf(near));
    }

    /**
     * Takes a snapshot for the slot's session. Nothing is allocated, and nothing but the count is
     * looked at if nothing has ended since the same snapshot was filled. (PostgreSQL:
     * GetSnapshotData.)
     */
    void snapshot(int slot, Snapshot snapshot) {
        boolean publish = xmins.get(slot) == TransactionId.INVALID;
        for (int i = 0; i < ATTEMPTS; i++) {
            long seen = sequence;
            if ((seen & 1) == 0 && fill(slot, snapshot, seen, publish)) {
                return;
            }
            Thread.onSpinWait();
        }
        synchronized (lock) {
            boolean filled = fill(slot, snapshot, sequence, publish);
            assert filled;
        }
    }

    private boolean fill(int slot, Snapshot snapshot, long seen, boolean publish) {
        if (snapshot.sequence != seen) {
            snapshot.sequence = Snapshot.NONE;
            collect(slot, snapshot);
        }
        if (publish) {
            publishXmin(slot, snapshot.xmin);
        }
        if (!isUnchanged(seen)) {
            return false;
        }
        snapshot.sequence = seen;
        return true;
    }

    void publishXmin(int slot, int xmin) {
        xmins.set(slot, xmin);
    }

    boolean isUnchanged(long seen) {
        return sequence == seen;
    }

    /**
     * Reads what the table holds, which may be a mixture: the caller finds out. Xids of sessions
     * that vacuum are in no row, so they need not be in it.
     */
    private void collect(int slot, Snapshot snapshot) {
        int xmax = TransactionId.advance(TransactionId.xidOf(latestCompleted));
        int xmin = xmax;
        int own = xids.get(slot);
        if (own != TransactionId.INVALID && TransactionId.precedes(own, xmin)) {
            xmin = own;
        }
        int count = 0;
        int subcount = 0;
        boolean overflowed = false;
        int end = limit;
        for (int i = 0; i < end; i++) {
            int xid = xids.get(i);
            if (xid == TransactionId.INVALID
                    || i == slot
                    || !TransactionId.precedes(xid, xmax)
                    || vacuuming.get(i) != 0) {
                continue;
            }
            if (TransactionId.precedes(xid, xmin)) {
                xmin = xid;
            }
            snapshot.xip[count++] = xid;
            int state = subxidStates.get(i);
            overflowed |= (state & OVERFLOWED) != 0;
            int cached = overflowed ? 0 : state;
            for (int s = 0; s < cached; s++) {
                snapshot.subxip[subcount++] = subxids.get(i * cachedSubxids + s);
            }
        }
        snapshot.xmin = xmin;
        snapshot.xmax = xmax;
        snapshot.xcnt = count;
        snapshot.subxcnt = subcount;
        snapshot.suboverflowed = overflowed;
    }

    int xmin(int slot) {
        return xmins.get(slot);
    }

    /** The session's snapshots are used no more. (PostgreSQL: SnapshotResetXmin.) */
    void forgetXmin(int slot) {
        xmins.set(slot, TransactionId.INVALID);
    }

    /** The session vacuums: its snapshots hold back nobody. (PostgreSQL: PROC_IN_VACUUM.) */
    void vacuuming(int slot) {
        assert xids.get(slot) == TransactionId.INVALID : "told too late";
        synchronized (lock) {
            beginChange();
            vacuuming.set(slot, 1);
            endChange();
        }
    }

    /**
     * Whether an xid runs: {@link #NO}, {@link #YES}, or {@link #PERHAPS}, when it may be a
     * subtransaction that did not fit. (PostgreSQL: TransactionIdIsInProgress.)
     */
    int isInProgress(int xid) {
        for (int i = 0; i < ATTEMPTS; i++) {
            long seen = sequence;
            if ((seen & 1) == 0) {
                int answer = find(xid);
                if (isUnchanged(seen)) {
                    return answer;
                }
            }
            Thread.onSpinWait();
        }
        synchronized (lock) {
            return find(xid);
        }
    }

    private int find(int xid) {
        if (TransactionId.follows(xid, TransactionId.xidOf(latestCompleted))) {
            return YES;
        }
        boolean overflowed = false;
        int end = limit;
        for (int i = 0; i < end; i++) {
            int top = xids.get(i);
            if (top == xid) {
                return YES;
            }
            // A child is later than its parent.
            if (top == TransactionId.INVALID || TransactionId.precedes(xid, top)) {
                continue;
            }
            int state = subxidStates.get(i);
            overflowed |= (state & OVERFLOWED) != 0;
            int count = state & ~OVERFLOWED;
            for (int s = 0; s < count; s++) {
                if (subxids.get(i * cachedSubxids + s) == xid) {
                    return YES;
                }
            }
        }
        return overflowed ? PERHAPS : NO;
    }

    /** True if a top-level transaction has this xid now. */
    boolean isTopRunning(int xid) {
        return slotOf(xid) >= 0;
    }

    /** The slot whose top-level transaction has this xid now, negative if there is none. */
    int slotOf(int xid) {
        int end = limit;
        for (int i = 0; i < end; i++) {
            if (xids.get(i) == xid) {
                return i;
            }
        }
        return -1;
    }

    /** The xid of the slot's transaction, 0 if it has none. */
    int xid(int slot) {
        return xids.get(slot);
    }

    /** The transaction that an xid belongs to, 0 if none of the table is known to. */
    int topOf(int xid) {
        synchronized (lock) {
            for (int i = 0; i < limit; i++) {
                int top = xids.get(i);
                int count = subxidStates.get(i) & ~OVERFLOWED;
                boolean found = top == xid;
                for (int s = 0; s < count && !found; s++) {
                    found = subxids.get(i * cachedSubxids + s) == xid;
                }
                if (found) {
                    return top;
                }
            }
        }
        return TransactionId.INVALID;
    }

    /** (PostgreSQL: ComputeXidHorizons.) */
    void horizons(int database, Horizons into) {
        for (int i = 0; i < ATTEMPTS; i++) {
            long seen = sequence;
            if ((seen & 1) == 0) {
                compute(database, into);
                if (isUnchanged(seen)) {
                    return;
                }
            }
            Thread.onSpinWait();
        }
        synchronized (lock) {
            compute(database, into);
        }
    }

    private void compute(int database, Horizons into) {
        int running = TransactionId.advance(TransactionId.xidOf(latestCompleted));
        int shared = running;
        int data = running;
        int end = limit;
        for (int i = 0; i < end; i++) {
            int oldest = older(xids.get(i), xmins.get(i));
            if (oldest == TransactionId.INVALID) {
                continue;
            }
            running = older(running, oldest);
            if (vacuuming.get(i) != 0) {
                continue;
            }
            shared = older(shared, oldest);
            int of = databases.get(i);
            if (of == database || of == 0 || database == 0) {
                data = older(data, oldest);
            }
        }
        into.oldestConsideredRunning = running;
        into.sharedOldestNonremovable = shared;
        into.dataOldestNonremovable = data;
    }

    /** The older one; one that is not valid does not count. (PostgreSQL: TransactionIdOlder.) */
    static int older(int a, int b) {
        if (a == TransactionId.INVALID) {
            return b;
        }
        return b == TransactionId.INVALID || TransactionId.precedes(a, b) ? a : b;
    }

    /**
     * The oldest xid in the table, else {@code next}. (PostgreSQL: GetOldestActiveTransactionId.)
     */
    int oldestXid(int next) {
        int oldest = next;
        int end = limit;
        for (int i = 0; i < end; i++) {
            int xid = xids.get(i);
            if (xid != TransactionId.INVALID && TransactionId.precedes(xid, oldest)) {
                oldest = xid;
            }
        }
        return oldest;
    }

    /**
     * Who runs at this moment, and their subtransactions unless there are too many of one.
     * (PostgreSQL: GetRunningTransactionData.)
     */
    void collect(RunningXacts into, int next) {
        synchronized (lock) {
            into.clear();
            int oldest = next;
            boolean overflowed = false;
            int end = limit;
            for (int i = 0; i < end; i++) {
                int xid = xids.get(i);
                if (xid != TransactionId.INVALID) {
                    into.add(xid);
                    overflowed |= (subxidStates.get(i) & OVERFLOWED) != 0;
                    oldest = TransactionId.precedes(xid, oldest) ? xid : oldest;
                }
            }
            for (int i = 0; i < end && !overflowed; i++) {
                int count = subxidStates.get(i);
                for (int s = 0; s < count; s++) {
                    into.addSubtransaction(subxids.get(i * cachedSubxids + s));
                }
            }
            if (overflowed) {
                into.overflowed();
            }
            into.counters(next, oldest, TransactionId.xidOf(latestCompleted));
        }
    }

    /** A commit record is about to be inserted. (PostgreSQL: DELAY_CHKPT_START.) */
    void enterCommit(int slot) {
        int count = commits.incrementAndGet(slot);
        assert (count & 1) == 1;
    }

    /** pg_xact has it. */
    void leaveCommit(int slot) {
        int count = commits.incrementAndGet(slot);
        assert (count & 1) == 0;
    }

    /**
     * Waits until every commit that is under way now has reached pg_xact; who begins later inserts
     * its record after the caller's redo point.
     *
     * @param stopped tells whether nobody will end any more
     */
    void awaitCommits(BooleanSupplier stopped) {
        int end = limit;
        for (int i = 0; i < end; i++) {
            int seen = commits.get(i);
            while ((seen & 1) != 0 && commits.get(i) == seen) {
                if (stopped.getAsBoolean()) {
                    throw new KernelStoppedException(
                            "a commit failed half-way: there is no checkpoint after it");
                }
                LockSupport.parkNanos(10_000);
            }
        }
    }
}
