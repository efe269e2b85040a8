package org.pgkernel.recovery;

import org.pgkernel.base.TransactionId;

/**
 * Counters that a checkpoint record carries and that redo moves on; kernel-xact implements them.
 * Ids are unsigned. (PostgreSQL: ShmemVariableCache, MultiXactState, CheckPoint.)
 */
public interface RecoveredCounters {
    long nextFullXid();

    void nextFullXid(long fullXid);

    /**
     * Moves nextFullXid past {@code xid} if it is not yet. (PostgreSQL:
     * AdvanceNextFullTransactionIdPastXid.)
     */
    void advancePastXid(int xid);

    int nextOid();

    void nextOid(int oid);

    int nextMulti();

    int nextMultiOffset();

    void nextMulti(int multi, int offset);

    /** Moves on if ahead. (PostgreSQL: MultiXactAdvanceNextMXact.) */
    void advanceNextMulti(int multi, int offset);

    int oldestXid();

    int oldestXidDb();

    void oldestXid(int xid, int db);

    int oldestMulti();

    int oldestMultiDb();

    void oldestMulti(int multi, int db);

    int oldestCommitTsXid();

    int newestCommitTsXid();

    void commitTsXids(int oldest, int newest);

    /**
     * Oldest xid still running at the end of redo. (PostgreSQL: oldestActiveXID of StartupXLOG,
     * after prepared transactions.)
     */
    int oldestActiveXid();

    /**
     * Fills in who runs now, then inserts the record, before any later xid is assigned. Without
     * transactions, as at the end of redo: those open on the primary ended with it. (PostgreSQL:
     * GetRunningTransactionData, LogStandbySnapshot, standby.c.)
     */
    default void running(RunningXacts into, Runnable insert) {
        into.clear();
        int next = TransactionId.xidOf(nextFullXid());
        into.counters(next, oldestActiveXid(), TransactionId.retreat(next));
        insert.run();
    }

    /**
     * The primary's track_commit_timestamp: pg_control's value, told after the counters were set
     * and before the first record, then each parameter change that replay meets. Turning it off
     * removes pg_commit_ts. (PostgreSQL: StartupCommitTs, CommitTsParameterChange.)
     */
    default void trackCommitTimestamp(boolean on) {}
}
