package org.pgkernel.xact;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * Assigns xids, one after another, under the monitor of this object.
 *
 * <p>Within it, in this order: the pages that the xid needs exist, the counter moves on, the xid is
 * published in the running table. The order carries two promises. If making a page fails, the next
 * caller tries the same xid again. And whoever holds a later xid, hence whoever sees one completed,
 * finds every earlier xid in the table unless it has ended: a snapshot would take an xid for
 * finished that is neither there nor past its end. (PostgreSQL: GetNewTransactionId, XidGenLock,
 * varsup.c.)
 */
class XidGenerator {
    private static final int CALLS_BETWEEN_REQUESTS = 65536;

    private final XactCounters counters;
    private final CommitLog commitLog;
    private final CommitTimestampLog commitTimestamps;
    private final SubTransLog subTrans;
    private final RunningTransactions running;
    private final XactWal wal;
    private final WraparoundListener listener;
    private final int freezeMaxAge;

    // Under the monitor.
    private final WalRecordBuilder builder = new WalRecordBuilder();
    private final UnsafeBuffer page = new UnsafeBuffer(new byte[4]);

    /** Changed under the monitor. */
    private volatile XidLimits limits;

    XidGenerator(
            XactModule module,
            RunningTransactions running,
            XactWal wal,
            WraparoundListener listener,
            int freezeMaxAge) {
        counters = module.xactCounters();
        commitLog = module.commitLog();
        commitTimestamps = module.commitTimestamps();
        subTrans = module.subTrans();
        this.running = running;
        this.wal = wal;
        this.listener = listener;
        this.freezeMaxAge = freezeMaxAge;
        limits = XidLimits.of(counters.oldestXid(), counters.oldestXidDb(), freezeMaxAge);
    }

    XidLimits limits() {
        return limits;
    }

    /** Moves the limits on; they never go back. @return false if they would */
    synchronized boolean oldestXid(int xid, int database) {
        if (TransactionId.precedes(xid, limits.oldest())) {
            return false;
        }
        limits = XidLimits.of(xid, database, freezeMaxAge);
        counters.oldestXid(xid, database);
        return true;
    }

    /**
     * Assigns an xid to the transaction of a slot, or to a subtransaction of it.
     *
     * @return with its epoch
     * @throws RefusedException when so few are left that going on could lose data
     */
    long assign(int slot, boolean isSubtransaction) {
        long full;
        XidLimits held = null;
        synchronized (this) {
            full = counters.nextFullXid();
            int xid = TransactionId.xidOf(full);
            if (limits.vacuumNeeded(xid)) {
                held = limits;
            }
            if (held == null || !held.mustStop(xid)) {
                extend(xid);
                counters.nextFullXid(next(full));
                publish(slot, xid, isSubtransaction);
            }
        }
        if (held != null) {
            pastVacuumLimit(TransactionId.xidOf(full), held);
        }
        return full;
    }

    void publish(int slot, int xid, boolean isSubtransaction) {
        if (isSubtransaction) {
            running.addSubxid(slot, xid);
        } else {
            running.addXid(slot, xid);
        }
    }

    /** The id after, special ones skipped. (PostgreSQL: FullTransactionIdAdvance.) */
    static long next(long full) {
        long next = full + 1;
        while (!TransactionId.isNormal(TransactionId.xidOf(next))) {
            next++;
        }
        return next;
    }

    private void pastVacuumLimit(int xid, XidLimits held) {
        if (Integer.remainderUnsigned(xid, CALLS_BETWEEN_REQUESTS) == 0 || held.mustStop(xid)) {
            listener.vacuumNeeded(held.database());
        }
        if (held.mustStop(xid)) {
            throw new RefusedException(
                    "no transaction id can be assigned without losing data to wraparound:"
                            + " vacuum the database with OID "
                            + Integer.toUnsignedString(held.database())
                            + ", whose oldest unfrozen transaction id is "
                            + Integer.toUnsignedString(held.oldest())
                            + "; next="
                            + Integer.toUnsignedString(xid)
                            + " limit="
                            + Integer.toUnsignedString(held.stop()));
        }
        if (held.mustWarn(xid)) {
            listener.warning(
                    "the database with OID "
                            + Integer.toUnsignedString(held.database())
                            + " must be vacuumed within "
                            + Integer.toUnsignedString(held.wrap() - xid)
                            + " transactions");
        }
    }

    /** (PostgreSQL: ExtendCLOG, ExtendCommitTs, ExtendSUBTRANS.) */
    private void extend(int xid) {
        if (CommitLog.isFirstOfPage(xid)) {
            int number = CommitLog.pageOf(xid);
            commitLog.zeroPage(number);
            logZeroPage(RmgrIds.CLOG, CommitLogResourceManager.ZEROPAGE, number);
        }
        if (commitTimestamps.active() && CommitTimestampLog.isFirstOfPage(xid)) {
            int number = CommitTimestampLog.pageOf(xid);
            commitTimestamps.zeroPage(number);
            logZeroPage(RmgrIds.COMMIT_TS, CommitTimestampResourceManager.ZEROPAGE, number);
        }
        if (SubTransLog.isFirstOfPage(xid)) {
            subTrans.zeroPage(SubTransLog.pageOf(xid));
        }
    }

    /**
     * Not flushed: the record of anybody who needs the page comes later. (PostgreSQL:
     * WriteZeroPageXlogRec.)
     */
    private void logZeroPage(int rmid, int info, int number) {
        page.putInt(0, number);
        wal.insert(builder.begin(rmid, info, TransactionId.INVALID).data(page, 0, 4));
    }
}
