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
    private final int oid;

    /**
     * @param locks of the session that vacuums
     * @param parking the lock table's
     * @param oid of the relation that its users lock
     */
    public SessionTruncationLock(SessionLocks locks, LockParking parking, int database, int oid) {
        this.locks = locks;
        this.parking = parking;
        this.database = database;
        this.oid = oid;
    }

    @Override
    public boolean tryLock() {
        return locks.tryLockRelation(database, oid, LockMode.ACCESS_EXCLUSIVE);
    }

    @Override
    public void unlock() {
        locks.unlockRelation(database, oid, LockMode.ACCESS_EXCLUSIVE);
    }

    @Override
    public boolean hasWaiters() {
        return locks.hasWaiters(database, oid, LockMode.ACCESS_EXCLUSIVE);
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
                        "interrupted while waiting to cut off empty pages of relation "
                                + Integer.toUnsignedString(oid)
                                + " of database "
                                + Integer.toUnsignedString(database));
            }
            parking.park(this, left);
        }
    }
}
