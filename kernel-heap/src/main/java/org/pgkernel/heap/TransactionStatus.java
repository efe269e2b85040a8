package org.pgkernel.heap;

/**
 * What visibility asks about a transaction id. Ask {@link #isInProgress} before {@link #didCommit}:
 * a transaction is marked committed in pg_xact before it stops to run, so one that was not running
 * and is not committed has aborted or crashed. A subtransaction's answer is its own if aborted,
 * else its parent's. Any id but an invalid one may be asked; frozen and bootstrap ids are
 * committed.
 */
public interface TransactionStatus {
    /**
     * The asking transaction or one of its subtransactions that did not abort. (PostgreSQL:
     * TransactionIdIsCurrentTransactionId.)
     */
    boolean isCurrent(int xid);

    /** The asking transaction included. (PostgreSQL: TransactionIdIsInProgress.) */
    boolean isInProgress(int xid);

    /** (PostgreSQL: TransactionIdDidCommit.) */
    boolean didCommit(int xid);

    /**
     * End of the commit record of a committed transaction if that is not known to be flushed, else
     * 0. A later LSN, of a neighbour's commit, is as good. (PostgreSQL: TransactionIdGetCommitLSN
     * and XLogNeedsFlush.)
     */
    long unflushedCommitLsn(int xid);
}
