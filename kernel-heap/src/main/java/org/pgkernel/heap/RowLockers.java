package org.pgkernel.heap;

import org.pgkernel.xact.MultiXactMembers;

/** Who holds a row together: the members of one multixact. Reused; one backend's. */
final class RowLockers {
    private final HeapBackend backend;
    private final MultiXactMembers members = new MultiXactMembers();
    private boolean conflict;
    private boolean isMember;
    private RowLock own;

    RowLockers(HeapBackend backend) {
        this.backend = backend;
    }

    /** Those of the last multixact asked about. */
    MultiXactMembers members() {
        return members;
    }

    void read(int multi, int infomask) {
        if (HeapTupleHeader.isLockedUpgraded(infomask)) {
            members.clear();
        } else {
            backend.transactions.multiXacts().read(backend.session, multi, members);
        }
    }

    /**
     * Looks who is in the way of a lock, and whether the own transaction is in it. (PostgreSQL:
     * DoesMultiXactIdConflict.)
     */
    RowLockers look(int multi, int infomask, RowLock wanted) {
        read(multi, infomask);
        conflict = false;
        isMember = false;
        own = null;
        for (int i = 0; i < members.count(); i++) {
            int xid = members.xid(i);
            RowLock lock = RowLock.ofStatus(members.status(i));
            if (backend.status.isCurrent(xid)) {
                isMember = true;
                own = own == null || lock.compareTo(own) > 0 ? lock : own;
            } else if (!conflict && lock.conflictsWith(wanted)) {
                conflict =
                        backend.status.isInProgress(xid)
                                || MultiXactMembers.isUpdate(members.status(i))
                                        && backend.status.didCommit(xid);
            }
        }
        return this;
    }

    /** Somebody else whose lock conflicts runs, or has changed the row. */
    boolean conflict() {
        return conflict;
    }

    /** The own transaction, or a subtransaction of it, is a member. */
    boolean isMember() {
        return isMember;
    }

    /** Its strongest lock, null for none. */
    RowLock own() {
        return own;
    }
}
