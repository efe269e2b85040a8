package org.pgkernel.xact;

import java.util.Arrays;

/**
 * One lock that somebody holds or waits for. All fields are guarded by the lock table's partition;
 * used again for another tag once nobody does. (PostgreSQL: LOCK, lock.h.)
 */
final class LockEntry {
    final LockTag tag = new LockTag();
    final LockPartition partition;

    /** How many sessions hold it in each mode; a bit of the mask for each that is not 0. */
    private final int[] granted = new int[LockMode.COUNT];

    private int grantMask;

    /** Modes that are waited for. */
    private int waitMask;

    /** Of everybody who holds it or waits for it, linked. */
    LockHolder holders;

    /** Who waits, in the order in which they are served. */
    private SessionLocks[] queue = new SessionLocks[4];

    private int waiting;

    LockEntry(LockPartition partition) {
        this.partition = partition;
    }

    boolean isUnused() {
        return holders == null && waiting == 0;
    }

    int waiting() {
        return waiting;
    }

    SessionLocks waiter(int position) {
        return queue[position];
    }

    int waitMask() {
        return waitMask;
    }

    /** True if others hold it in a mode that conflicts. (PostgreSQL: LockCheckConflicts.) */
    boolean isHeldAgainst(LockMode mode, LockHolder own) {
        int against = grantMask & mode.conflicts;
        while (against != 0) {
            int other = Integer.numberOfTrailingZeros(against);
            against &= against - 1;
            if (granted[other] > (own.holdMask >>> other & 1)) {
                return true;
            }
        }
        return false;
    }

    /** (PostgreSQL: GrantLock.) */
    void grant(LockMode mode, LockHolder holder) {
        assert (holder.holdMask & mode.bit()) == 0 : "granted twice";
        assert !isHeldAgainst(mode, holder) : "XACT-16: granted against " + this;
        granted[mode.ordinal()]++;
        grantMask |= mode.bit();
        holder.holdMask |= mode.bit();
    }

    void ungrant(LockMode mode, LockHolder holder) {
        assert (holder.holdMask & mode.bit()) != 0 : "not held";
        holder.holdMask &= ~mode.bit();
        if (--granted[mode.ordinal()] == 0) {
            grantMask &= ~mode.bit();
        }
    }

    void enqueue(int position, SessionLocks waiter, LockMode mode) {
        if (waiting == queue.length) {
            queue = Arrays.copyOf(queue, waiting * 2);
        }
        System.arraycopy(queue, position, queue, position + 1, waiting - position);
        queue[position] = waiter;
        waiting++;
        waitMask |= mode.bit();
    }

    void dequeue(SessionLocks waiter) {
        int position = 0;
        while (queue[position] != waiter) {
            position++;
        }
        waiting--;
        System.arraycopy(queue, position + 1, queue, position, waiting - position);
        queue[waiting] = null;
        waitMask = 0;
        for (int i = 0; i < waiting; i++) {
            waitMask |= queue[i].waitMode().bit();
        }
    }

    /** The same waiters in another order. */
    void order(int position, SessionLocks waiter) {
        queue[position] = waiter;
    }

    void link(LockHolder holder) {
        holder.previous = null;
        holder.next = holders;
        if (holders != null) {
            holders.previous = holder;
        }
        holders = holder;
    }

    void unlink(LockHolder holder) {
        if (holder.previous == null) {
            holders = holder.next;
        } else {
            holder.previous.next = holder.next;
        }
        if (holder.next != null) {
            holder.next.previous = holder.previous;
        }
        holder.previous = null;
        holder.next = null;
    }

    @Override
    public String toString() {
        return tag + " held=" + Integer.toBinaryString(grantMask) + " waiting=" + waiting;
    }
}
