package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RecoveredCounters;

/** The counters in memory. Redo's thread only. (PostgreSQL: varsup.c, multixact.c, commit_ts.c.) */
final class XactCounters implements RecoveredCounters {
    private long nextFullXid = TransactionId.FIRST_NORMAL;
    private int nextOid;
    private int nextMulti = MultiXactLog.FIRST_MULTI;
    private int nextMultiOffset;
    private int oldestXid = TransactionId.FIRST_NORMAL;
    private int oldestXidDb;
    private int oldestMulti = MultiXactLog.FIRST_MULTI;
    private int oldestMultiDb;
    private int oldestCommitTsXid;
    private int newestCommitTsXid;
    private boolean trackCommitTimestamp;
    private CommitTimestampLog commitTimestamps;

    /**
     * Gives the log that {@link #trackCommitTimestamp} turns on and off; before that the setting is
     * only remembered.
     */
    void attach(CommitTimestampLog log) {
        commitTimestamps = log;
        if (trackCommitTimestamp) {
            log.activate(this);
        }
    }

    @Override
    public void trackCommitTimestamp(boolean on) {
        trackCommitTimestamp = on;
        if (commitTimestamps != null) {
            if (on) {
                commitTimestamps.activate(this);
            } else if (commitTimestamps.active()) {
                commitTimestamps.deactivate(this);
            }
        }
    }

    boolean tracksCommitTimestamps() {
        return trackCommitTimestamp;
    }

    @Override
    public long nextFullXid() {
        return nextFullXid;
    }

    @Override
    public void nextFullXid(long fullXid) {
        nextFullXid = fullXid;
    }

    @Override
    public void advancePastXid(int xid) {
        nextFullXid = TransactionId.advancePast(nextFullXid, xid);
    }

    @Override
    public int nextOid() {
        return nextOid;
    }

    @Override
    public void nextOid(int oid) {
        nextOid = oid;
    }

    @Override
    public int nextMulti() {
        return nextMulti;
    }

    @Override
    public int nextMultiOffset() {
        return nextMultiOffset;
    }

    @Override
    public void nextMulti(int multi, int offset) {
        nextMulti = multi;
        nextMultiOffset = offset;
    }

    @Override
    public void advanceNextMulti(int multi, int offset) {
        if (MultiXactLog.precedes(nextMulti, multi)) {
            nextMulti = multi;
        }
        if (MultiXactLog.precedes(nextMultiOffset, offset)) {
            nextMultiOffset = offset;
        }
    }

    @Override
    public int oldestXid() {
        return oldestXid;
    }

    @Override
    public int oldestXidDb() {
        return oldestXidDb;
    }

    @Override
    public void oldestXid(int xid, int db) {
        oldestXid = xid;
        oldestXidDb = db;
    }

    @Override
    public int oldestMulti() {
        return oldestMulti;
    }

    @Override
    public int oldestMultiDb() {
        return oldestMultiDb;
    }

    @Override
    public void oldestMulti(int multi, int db) {
        oldestMulti = multi;
        oldestMultiDb = db;
    }

    @Override
    public int oldestCommitTsXid() {
        return oldestCommitTsXid;
    }

    @Override
    public int newestCommitTsXid() {
        return newestCommitTsXid;
    }

    @Override
    public void commitTsXids(int oldest, int newest) {
        oldestCommitTsXid = oldest;
        newestCommitTsXid = newest;
    }

    /**
     * With no prepared transactions nothing runs once replay has ended. (PostgreSQL:
     * PrescanPreparedTransactions.)
     */
    @Override
    public int oldestActiveXid() {
        return TransactionId.xidOf(nextFullXid);
    }
}
