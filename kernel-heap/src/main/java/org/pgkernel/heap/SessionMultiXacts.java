package org.pgkernel.heap;

import org.pgkernel.xact.MultiXactMembers;
import org.pgkernel.xact.TransactionManager;
import org.pgkernel.xact.TransactionSession;

/** Multixacts as one session reads and makes them; the statuses have the same numbers. */
final class SessionMultiXacts implements MultiXacts {
    private final org.pgkernel.xact.MultiXacts multis;
    private final TransactionSession session;
    private final MultiXactMembers scratch = new MultiXactMembers();

    SessionMultiXacts(TransactionManager transactions, TransactionSession session) {
        multis = transactions.multiXacts();
        this.session = session;
    }

    @Override
    public void members(int multi, Members into) {
        multis.read(session, multi, scratch);
        into.clear();
        for (int i = 0; i < scratch.count(); i++) {
            into.add(scratch.xid(i), scratch.status(i));
        }
    }

    @Override
    public int create(Members members) {
        scratch.clear();
        for (int i = 0; i < members.count(); i++) {
            scratch.add(members.xid(i), members.status(i));
        }
        return multis.create(session, scratch);
    }
}
