package org.pgkernel.heap;

import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.LockParking;
import org.pgkernel.xact.SessionLocks;

/** A relation's lock in the lock table, waited for as the lock table waits. */
public final class SessionTruncationLock implements TruncationLock {
    private final SessionLocks locks;
    private final LockParking parking;
    private final int database;
    private final HeapRelation relation;

    /**
     * @param locks of the session that vacuums
     * @param parking the lock table's
     */
    public SessionTruncationLock(
            SessionLocks locks, LockParking parking, int database, HeapRelation relation) {
        this.locks = locks;
        this.parking = parking;
        this.database = database;
        this.relation = relation;
    }

    @Override
    public boolean tryLock() {
        return locks.tryLockRelation(database, relation.oid(), LockMode.ACCESS_EXCLUSIVE);
    }

    @Override
    public void unlock() {
        locks.unlockRelation(database, relation.oid(), LockMode.ACCESS_EXCLUSIVE);
    }

    @Override
    public boolean hasWaiters() {
        return locks.hasWaiters(database, relation.oid(), LockMode.ACCESS_EXCLUSIVE);
    }

    @Override
    public long nanoTime() {
        return parking.nanoTime();
    }

    /** An interrupt ends the vacuum, and stays. */
    @Override
    public void sleep(long nanos) {
        long began = parking.nanoTime();
        for (long left = nanos; left > 0; left = nanos - (parking.nanoTime() - began)) {
            if (Thread.currentThread().isInterrupted()) {
                throw new LockNotAvailableException(
                        "interrupted while waiting to cut off empty pages rel=" + relation);
            }
            parking.park(this, left);
        }
    }
}
