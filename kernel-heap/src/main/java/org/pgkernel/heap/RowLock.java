package org.pgkernel.heap;

import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.MultiXactMembers;

/**
 * The strengths of a row's lock, weakest first. An update that leaves the key columns alone takes
 * NO_KEY_UPDATE, others and deletions UPDATE. (PostgreSQL: LockTupleMode, tupleLockExtraInfo.)
 */
public enum RowLock {
    KEY_SHARE(MultiXactMembers.FOR_KEY_SHARE, -1),
    SHARE(MultiXactMembers.FOR_SHARE, -1),
    NO_KEY_UPDATE(MultiXactMembers.FOR_NO_KEY_UPDATE, MultiXactMembers.NO_KEY_UPDATE),
    UPDATE(MultiXactMembers.FOR_UPDATE, MultiXactMembers.UPDATE);

    private static final RowLock[] LOCKS = values();

    /** Of who only locks. */
    final int lockStatus;

    /** Of who changes the row, -1 if that takes a stronger lock. */
    final int updateStatus;

    /** With the same conflicts. */
    final LockMode mode;

    RowLock(int lockStatus, int updateStatus) {
        this.lockStatus = lockStatus;
        this.updateStatus = updateStatus;
        mode = MultiXactMembers.lockMode(lockStatus);
    }

    /** What a member of a multixact holds. (PostgreSQL: TUPLOCK_from_mxstatus.) */
    static RowLock ofStatus(int status) {
        return status == MultiXactMembers.NO_KEY_UPDATE
                ? NO_KEY_UPDATE
                : status == MultiXactMembers.UPDATE ? UPDATE : LOCKS[status];
    }

    int status(boolean isUpdate) {
        return isUpdate ? updateStatus : lockStatus;
    }

    /** True if two transactions cannot hold both. */
    public boolean conflictsWith(RowLock other) {
        return mode.conflictsWith(other.mode);
    }
}
