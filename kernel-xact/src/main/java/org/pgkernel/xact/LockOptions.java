package org.pgkernel.xact;

/**
 * How locks are waited for.
 *
 * @param deadlockTimeoutNanos after how long a waiter looks whether it waits in a circle
 *     (PostgreSQL: deadlock_timeout)
 */
public record LockOptions(long deadlockTimeoutNanos, LockParking parking) {
    /** PostgreSQL's second. */
    public static final LockOptions DEFAULT = new LockOptions(1_000_000_000L, LockParking.THREADS);
}
