package org.pgkernel.xact;

import java.util.ArrayDeque;
import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.collections.Object2ObjectHashMap;
import org.pgkernel.base.LockRank;
import org.pgkernel.base.error.DeadlockException;
import org.pgkernel.base.error.LockNotAvailableException;

/**
 * The locks of one session, used by its thread. A lock is held until the transaction ends, or the
 * subtransaction that took it is undone, or it is given up as often as it was taken; one taken for
 * the session until it is given up or the session closes. A lock that is held already is not asked
 * for again, and own locks never stand in the way.
 *
 * <p>A wait ends with the lock, or throws and leaves all as it was: {@link DeadlockException},
 * {@link LockNotAvailableException} after {@link #timeoutNanos} or when the thread is interrupted,
 * which stays interrupted, or {@link org.pgkernel.base.error.KernelStoppedException}. Nobody waits
 * while it holds a page's content lock. (PostgreSQL: lmgr.c, LockAcquireExtended, LockRelease,
 * LockReleaseAll.)
 */
public final class SessionLocks {
    private final LockManager manager;
    private final TransactionSession session;
    private final LockTag scratch = new LockTag();
    private long timeoutNanos;

    /** By the tags of their entries. */
    private final Object2ObjectHashMap<LockTag, LockHolder> held =
            new Object2ObjectHashMap<>(64, 0.6f);

    private final ArrayDeque<LockHolder> unusedHolders = new ArrayDeque<>();

    /** In the order of their levels; those that were given up are among them. */
    private LockGrant[] grants = new LockGrant[16];

    private int grantCount;
    private int givenUp;
    private final ArrayDeque<LockGrant> unusedGrants = new ArrayDeque<>();

    // What the session waits for: set under the lock of its partition, read under it too.
    private LockEntry waitEntry;
    private LockHolder waitHolder;
    private LockMode waitMode;
    private int waitTopXid;
    private Thread thread;

    /** Set under the same lock; last when a wait begins, so that who reads it sees the thread. */
    private volatile boolean waiting;

    /** What a wait for a transaction is about, for the message; of the thread, set before it. */
    private final LockTag place = new LockTag();

    private boolean hasPlace;

    /** Looks for a deadlock before it first sleeps. Set under the partition's lock. */
    private boolean looksAtOnce;

    SessionLocks(LockManager manager, TransactionSession session) {
        this.manager = manager;
        this.session = session;
    }

    /**
     * @param nanos how long a wait may last at most, 0 for no limit (PostgreSQL: lock_timeout)
     */
    public void timeoutNanos(long nanos) {
        timeoutNanos = nanos;
    }

    /** Locks a relation for the transaction. (PostgreSQL: LockRelationOid.) */
    public void lockRelation(int db, int rel, LockMode mode) {
        acquire(scratch.relation(db, rel), mode, true, false);
    }

    /**
     * The same, without waiting. (PostgreSQL: ConditionalLockRelationOid.)
     *
     * @return false if it is not to be had now
     */
    public boolean tryLockRelation(int db, int rel, LockMode mode) {
        return acquire(scratch.relation(db, rel), mode, false, false);
    }

    /** Gives it up once, before the transaction ends. (PostgreSQL: UnlockRelationOid.) */
    public void unlockRelation(int db, int rel, LockMode mode) {
        release(scratch.relation(db, rel), mode);
    }

    /** Locks a relation for the session. (PostgreSQL: LockRelationIdForSession.) */
    public void lockRelationForSession(int db, int rel, LockMode mode) {
        acquire(scratch.relation(db, rel), mode, true, true);
    }

    /**
     * The same, without waiting.
     *
     * @return false if it is not to be had now
     */
    public boolean tryLockRelationForSession(int db, int rel, LockMode mode) {
        return acquire(scratch.relation(db, rel), mode, false, true);
    }

    /** Gives it up once. (PostgreSQL: UnlockRelationIdForSession.) */
    public void unlockRelationForSession(int db, int rel, LockMode mode) {
        LockHolder holder = held.get(scratch.relation(db, rel));
        assert holder != null && holder.sessionCounts[mode.ordinal()] > 0 : "not held: " + scratch;
        holder.sessionCounts[mode.ordinal()]--;
        releaseIfNotNeeded(holder, mode);
    }

    /** True if the session holds it in this mode. (PostgreSQL: CheckRelationLockedByMe.) */
    public boolean holdsRelation(int db, int rel, LockMode mode) {
        LockHolder holder = held.get(scratch.relation(db, rel));
        return holder != null && holder.holds(mode);
    }

    /**
     * True if somebody waits for the relation in a mode that conflicts with this one. (PostgreSQL:
     * LockHasWaitersRelation.)
     */
    public boolean hasWaiters(int db, int rel, LockMode mode) {
        return manager.hasWaiters(scratch.relation(db, rel), mode);
    }

    /**
     * Locks a row, to be the next one who may change it. (PostgreSQL: LockTuple.)
     *
     * @param tid block &lt;&lt; 16 | offset
     */
    public void lockTuple(int db, int rel, long tid, LockMode mode) {
        acquire(tuple(scratch, db, rel, tid), mode, true, false);
    }

    /** The same, without waiting. @return false if it is not to be had now */
    public boolean tryLockTuple(int db, int rel, long tid, LockMode mode) {
        return acquire(tuple(scratch, db, rel, tid), mode, false, false);
    }

    /** Gives it up once. (PostgreSQL: UnlockTuple.) */
    public void unlockTuple(int db, int rel, long tid, LockMode mode) {
        release(tuple(scratch, db, rel, tid), mode);
    }

    private static LockTag tuple(LockTag tag, int db, int rel, long tid) {
        return tag.tuple(db, rel, (int) (tid >>> 16), (int) tid & 0xFFFF);
    }

    /**
     * Returns once a transaction runs no longer, a subtransaction also when it is undone. The own
     * ones are not waited for. The relation and row are for the message of a deadlock. (PostgreSQL:
     * XactLockTableWait.)
     */
    public void waitForTransaction(int xid, int db, int rel, long tid) {
        assert !session.isCurrent(xid) : "waits for itself";
        assert noContentLock();
        tuple(place, db, rel, tid);
        hasPlace = true;
        while (manager.transactions.isInProgress(xid)) {
            entersWait(xid);
            // It may have ended before anybody could know that it is waited for.
            if (!manager.transactions.isInProgress(xid)) {
                manager.cancel(this);
            }
            await();
        }
    }

    /** Is woken at the transaction's end from now on. */
    void entersWait(int xid) {
        waitTopXid = manager.transactions.topXid(xid);
        manager.enterWait(this, scratch.transaction(xid));
    }

    /**
     * Waits for the end of those members of a multixact whose locks conflict. (PostgreSQL:
     * MultiXactIdWait.)
     *
     * @param status the strength that is wanted, of {@link MultiXactMembers}
     * @return how many others run still; the own transactions count among them
     */
    public int waitForMembers(MultiXactMembers members, int status, int db, int rel, long tid) {
        return members(members, status, true, db, rel, tid);
    }

    /**
     * The same, without waiting. (PostgreSQL: ConditionalMultiXactIdWait.)
     *
     * @return negative if one whose lock conflicts runs
     */
    public int tryWaitForMembers(MultiXactMembers members, int status) {
        return members(members, status, false, 0, 0, 0);
    }

    private int members(
            MultiXactMembers members, int status, boolean wait, int db, int rel, long tid) {
        LockMode mode = MultiXactMembers.lockMode(status);
        int remaining = 0;
        for (int i = 0; i < members.count(); i++) {
            int xid = members.xid(i);
            if (session.isCurrent(xid)) {
                remaining++;
            } else if (!mode.conflictsWith(MultiXactMembers.lockMode(members.status(i)))) {
                remaining += manager.transactions.isInProgress(xid) ? 1 : 0;
            } else if (wait) {
                waitForTransaction(xid, db, rel, tid);
            } else if (manager.transactions.isInProgress(xid)) {
                return -1;
            }
        }
        return remaining;
    }

    private boolean acquire(LockTag tag, LockMode mode, boolean wait, boolean forSession) {
        assert forSession || session.inTransaction() : "no transaction to hold it";
        LockHolder holder = held.get(tag);
        if (holder == null || !holder.holds(mode)) {
            holder = obtain(holder, tag, mode, wait);
            if (holder == null) {
                return false;
            }
        }
        if (forSession) {
            holder.sessionCounts[mode.ordinal()]++;
        } else {
            count(holder, mode);
        }
        return true;
    }

    private LockHolder obtain(LockHolder known, LockTag tag, LockMode mode, boolean wait) {
        LockHolder holder = known;
        if (holder == null) {
            holder = unusedHolders.isEmpty() ? new LockHolder(this) : unusedHolders.pop();
        }
        int answer = request(holder, tag, mode, wait);
        if (answer == LockManager.WAITING) {
            try {
                await();
            } finally {
                recycleIfUnlinked(known, holder);
            }
        } else {
            recycleIfUnlinked(known, holder);
        }
        return answer == LockManager.NOT_AVAILABLE ? null : holder;
    }

    /** Asks for a lock and does not wait for the answer. */
    int request(LockHolder holder, LockTag tag, LockMode mode, boolean wait) {
        hasPlace = false;
        waitTopXid = 0;
        assert !wait || noContentLock();
        return manager.request(holder, tag, mode, wait);
    }

    private void recycleIfUnlinked(LockHolder known, LockHolder holder) {
        if (holder.entry == null) {
            unusedHolders.push(holder);
        } else if (known == null) {
            held.put(holder.entry.tag, holder);
        }
    }

    private static boolean noContentLock() {
        assert !LockRank.CONTENT.isHeld()
                : "XACT-18: a lock is waited for under a page's content lock";
        return true;
    }

    private void count(LockHolder holder, LockMode mode) {
        LockGrant latest = holder.grants[mode.ordinal()];
        int level = session.level();
        if (latest != null && latest.level == level) {
            latest.count++;
            return;
        }
        LockGrant grant = unusedGrants.isEmpty() ? new LockGrant() : unusedGrants.pop();
        grant.holder = holder;
        grant.mode = mode;
        grant.level = level;
        grant.count = 1;
        grant.outer = latest;
        holder.grants[mode.ordinal()] = grant;
        if (grantCount == grants.length) {
            grants = Arrays.copyOf(grants, grantCount * 2);
        }
        grants[grantCount++] = grant;
    }

    private void release(LockTag tag, LockMode mode) {
        LockHolder holder = held.get(tag);
        LockGrant grant = holder == null ? null : holder.grants[mode.ordinal()];
        assert grant != null : "not held: " + tag;
        if (--grant.count == 0) {
            holder.grants[mode.ordinal()] = grant.outer;
            givenUp++;
            tidy();
            releaseIfNotNeeded(holder, mode);
        }
    }

    /** Takes out what was given up, at the end at once, in between when it is half of all. */
    private void tidy() {
        while (grantCount > 0 && grants[grantCount - 1].count == 0) {
            recycle(grants[--grantCount]);
            givenUp--;
        }
        if (givenUp > 16 && givenUp > grantCount / 2) {
            int kept = 0;
            for (int i = 0; i < grantCount; i++) {
                if (grants[i].count == 0) {
                    recycle(grants[i]);
                } else {
                    grants[kept++] = grants[i];
                }
            }
            grantCount = kept;
            givenUp = 0;
        }
    }

    private void recycle(LockGrant grant) {
        grant.holder = null;
        grant.outer = null;
        unusedGrants.push(grant);
    }

    private void releaseIfNotNeeded(LockHolder holder, LockMode mode) {
        if (!holder.isNeeded(mode)) {
            // The entry's tag is its own only as long as it is held.
            boolean last = holder.holdMask == mode.bit();
            if (last) {
                held.remove(holder.entry.tag);
            }
            manager.release(holder, mode);
            if (last) {
                unusedHolders.push(holder);
            }
        }
    }

    /** A subtransaction has committed: its locks are its parent's now. */
    void commitLevel(int level) {
        int from = firstOf(level);
        int kept = from;
        for (int i = from; i < grantCount; i++) {
            LockGrant grant = grants[i];
            LockGrant outer = grant.outer;
            if (grant.count > 0 && outer != null && outer.level == level - 1) {
                outer.count += grant.count;
                grant.holder.grants[grant.mode.ordinal()] = outer;
                recycle(grant);
            } else {
                grant.level = level - 1;
                grants[kept++] = grant;
            }
        }
        grantCount = kept;
    }

    private int firstOf(int level) {
        int first = grantCount;
        while (first > 0 && grants[first - 1].level >= level) {
            first--;
        }
        return first;
    }

    /** A subtransaction is undone, or with level 0 the transaction over: its locks go. */
    void endLevel(int level) {
        while (grantCount > 0 && grants[grantCount - 1].level >= level) {
            LockGrant grant = grants[--grantCount];
            if (grant.count == 0) {
                givenUp--;
            } else {
                grant.holder.grants[grant.mode.ordinal()] = grant.outer;
                releaseIfNotNeeded(grant.holder, grant.mode);
            }
            recycle(grant);
        }
        assert level > 0 || givenUp == 0;
    }

    /** Transactions of the session have left the running table. */
    void ended(DirectBuffer xids, int offset, int count) {
        manager.ended(xids, offset, count, scratch);
    }

    /** The session closes. */
    void close() {
        endLevel(0);
        for (LockHolder holder : held.values().toArray(new LockHolder[0])) {
            for (int i = 0; i < LockMode.COUNT; i++) {
                if (holder.sessionCounts[i] > 0) {
                    holder.sessionCounts[i] = 0;
                    releaseIfNotNeeded(holder, LockMode.of(i));
                }
            }
        }
        assert held.isEmpty();
    }

    // The rest is about waiting. Setters are called under the partition's lock.

    void waits(LockEntry entry, LockHolder holder, LockMode mode) {
        waitEntry = entry;
        waitHolder = holder;
        waitMode = mode;
        looksAtOnce = false;
        thread = Thread.currentThread();
        waiting = true;
    }

    /** It waits for somebody who waits for it. */
    void looksAtOnce() {
        looksAtOnce = true;
    }

    /** It has what it waited for. */
    void served() {
        waiting = false;
        manager.options.parking().unpark(thread);
    }

    void waitsNoLonger() {
        waiting = false;
    }

    void wakeIfWaiting() {
        if (waiting) {
            manager.options.parking().unpark(thread);
        }
    }

    boolean isWaiting() {
        return waiting;
    }

    LockEntry waitEntry() {
        return waitEntry;
    }

    LockHolder waitHolder() {
        return waitHolder;
    }

    LockMode waitMode() {
        return waitMode;
    }

    int waitTopXid() {
        return waitTopXid;
    }

    /** (PostgreSQL: the loop of ProcSleep.) */
    private void await() {
        LockParking parking = manager.options.parking();
        long deadlockTimeout = manager.options.deadlockTimeoutNanos();
        long began = parking.nanoTime();
        boolean looked = false;
        while (waiting) {
            long waited = parking.nanoTime() - began;
            refuseToWaitOn(waited);
            if (waiting && !looked && (looksAtOnce || waited >= deadlockTimeout)) {
                looked = !looksAtOnce;
                looksAtOnce = false;
                String circle = manager.checkDeadlock(this);
                if (circle != null) {
                    throw new DeadlockException(circle);
                }
            } else if (waiting) {
                long left = looked ? Long.MAX_VALUE : deadlockTimeout - waited;
                parking.park(this, timeoutNanos > 0 ? Math.min(left, timeoutNanos - waited) : left);
            }
        }
    }

    private void refuseToWaitOn(long waited) {
        boolean stopped = manager.transactions.isStopped();
        boolean interrupted = Thread.currentThread().isInterrupted();
        boolean late = timeoutNanos > 0 && waited >= timeoutNanos;
        if (!stopped && !interrupted && !late) {
            return;
        }
        String what = toString();
        if (manager.cancel(this)) {
            manager.transactions.checkUsable();
            throw new LockNotAvailableException(
                    what
                            + (interrupted
                                    ? ", and was interrupted"
                                    : ", and has not got it in "
                                            + timeoutNanos / 1_000_000
                                            + " ms"));
        }
    }

    /** Who this is, for messages. */
    String owner() {
        int xid = manager.transactions.running().xid(session.slot);
        return xid == 0
                ? "session " + session.slot
                : "transaction " + Integer.toUnsignedString(xid);
    }

    /** Who waits for what; good as long as it waits. */
    @Override
    public String toString() {
        if (!waiting) {
            return owner();
        }
        if (waitHolder == null) {
            return owner()
                    + " waits for the end of "
                    + waitEntry.tag
                    + (hasPlace ? ", for " + place : "");
        }
        return owner() + " waits for " + waitMode + " on " + waitEntry.tag;
    }
}
