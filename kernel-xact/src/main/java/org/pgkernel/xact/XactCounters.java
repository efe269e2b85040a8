package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RecoveredCounters;
import org.pgkernel.recovery.RunningXacts;

/**
 * The counters in memory. (PostgreSQL: varsup.c, multixact.c, commit_ts.c.)
 *
 * <p>In recovery redo's thread alone changes them. Afterwards next and oldest xid are changed under
 * the lock of {@link XidGenerator}, those of multixacts under the lock of {@link MultiXacts}, those
 * of commit times under the monitor of {@link CommitTimestampLog}; anybody reads. A checkpoint that
 * reads one of a pair earlier than the other does no harm: both only move forward, and replay from
 * its redo point moves both past all that was assigned since.
 */
final class XactCounters implements RecoveredCounters {
    private volatile long nextFullXid = TransactionId.FIRST_NORMAL;
    private volatile int nextOid;
    private volatile int nextMulti = MultiXactLog.FIRST_MULTI;
    private volatile int nextMultiOffset;
    private volatile int oldestXid = TransactionId.FIRST_NORMAL;
    private volatile int oldestXidDb;
    private volatile int oldestMulti = MultiXactLog.FIRST_MULTI;
    private volatile int oldestMultiDb;
    private volatile int oldestCommitTsXid;
    private volatile int newestCommitTsXid;
    private boolean trackCommitTimestamp;
    private CommitTimestampLog commitTimestamps;

    /** Who runs transactions, once recovery is over; set once. */
    private volatile TransactionManager manager;

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

    void runs(TransactionManager manager) {
        this.manager = manager;
    }

    /**
     * With no prepared transactions nothing runs once replay has ended. (PostgreSQL:
     * PrescanPreparedTransactions; later GetOldestActiveTransactionId.)
     */
    @Override
    public int oldestActiveXid() {
        TransactionManager running = manager;
        if (running != null) {
            return running.oldestActiveXid();
        }
        return TransactionId.xidOf(nextFullXid);
    }

    @Override
    public void running(RunningXacts into, Runnable insert) {
        TransactionManager running = manager;
        if (running != null) {
            running.logRunning(into, insert);
        } else {
            RecoveredCounters.super.running(into, insert);
        }
    }
}
