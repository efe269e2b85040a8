package org.pgkernel.xact;

/**
 * One session at one lock: what it holds of it, or that it waits for it. Used again. (PostgreSQL:
 * PROCLOCK and LOCALLOCK, lock.h.)
 */
final class LockHolder {
    final SessionLocks session;

    /**
     * Modes it holds. Changed under the partition's lock, by others only while the session waits;
     * so its own thread reads it without.
     */
    int holdMask;

    /** Set by the session's thread. */
    LockEntry entry;

    // Under the partition's lock.
    LockHolder previous;
    LockHolder next;

    // Of the session's thread: who needs each mode still.
    final LockGrant[] grants = new LockGrant[LockMode.COUNT];
    final int[] sessionCounts = new int[LockMode.COUNT];

    LockHolder(SessionLocks session) {
        this.session = session;
    }

    boolean holds(LockMode mode) {
        return (holdMask & mode.bit()) != 0;
    }

    boolean isNeeded(LockMode mode) {
        return grants[mode.ordinal()] != null || sessionCounts[mode.ordinal()] > 0;
    }
}
