package org.pgkernel.heap;

import org.pgkernel.wal.WalInserter;
import org.pgkernel.xact.TransactionManager;
import org.pgkernel.xact.TransactionSession;

/** Transactions as one session sees them. */
final class SessionStatus implements TransactionStatus {
    private final TransactionManager transactions;
    private final TransactionSession session;
    private final WalInserter wal;

    SessionStatus(TransactionManager transactions, TransactionSession session, WalInserter wal) {
        this.transactions = transactions;
        this.session = session;
        this.wal = wal;
    }

    @Override
    public boolean isCurrent(int xid) {
        return session.isCurrent(xid);
    }

    @Override
    public boolean isInProgress(int xid) {
        return transactions.isInProgress(xid);
    }

    @Override
    public boolean didCommit(int xid) {
        return transactions.didCommit(xid);
    }

    @Override
    public long unflushedCommitLsn(int xid) {
        long lsn = transactions.commitLsn(xid);
        return lsn > wal.flushedLsn() ? lsn : 0;
    }
}
