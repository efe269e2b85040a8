package org.pgkernel.xact;

import java.util.function.LongSupplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.recovery.RunningXacts;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * Transactions of a primary: sessions, what became of each xid, horizons, freeze limits,
 * multixacts. Begins where recovery ended, with its logs and counters. All methods may be called by
 * many threads at once. (PostgreSQL: xact.c, procarray.c, varsup.c, transam.c.)
 */
public final class TransactionManager {
    private final XactModule module;
    private final XactOptions options;
    private final XactWal wal;
    private final WraparoundListener listener;
    private final RelationDropper dropper;
    private final LongSupplier micros;
    private final RunningTransactions running;
    private final XidGenerator generator;
    private final MultiXacts multiXacts;
    private final LockManager locks;

    /** Pg_subtrans tells nothing of xids before it. */
    private final int firstXid;

    /** One truncation at a time. (PostgreSQL: WrapLimitsVacuumLock) */
    private final Object truncation = new Object();

    /** What made the kernel stop; null while it runs. */
    private volatile KernelStoppedException stopped;

    /**
     * @param module of kernel-xact, after its recovery has ended
     * @param micros the time, in microseconds since 2000-01-01 UTC
     */
    public static TransactionManager start(
            RecoveryModule module,
            XactOptions options,
            XactWal wal,
            WraparoundListener listener,
            RelationDropper dropper,
            LongSupplier micros,
            LockOptions lockOptions) {
        XactModule own = (XactModule) module;
        XactCounters counters = own.xactCounters();
        RunningTransactions running =
                new RunningTransactions(
                        options.sessions(), options.cachedSubxids(), counters.nextFullXid());
        XidGenerator generator =
                new XidGenerator(own, running, wal, listener, options.freezeMaxAge());
        return new TransactionManager(
                own, options, wal, listener, dropper, micros, lockOptions, running, generator);
    }

    /** The same, with locks as PostgreSQL waits for them. */
    public static TransactionManager start(
            RecoveryModule module,
            XactOptions options,
            XactWal wal,
            WraparoundListener listener,
            RelationDropper dropper,
            LongSupplier micros) {
        return start(module, options, wal, listener, dropper, micros, LockOptions.DEFAULT);
    }

    /** With a table and a generator of the caller's. */
    TransactionManager(
            XactModule module,
            XactOptions options,
            XactWal wal,
            WraparoundListener listener,
            RelationDropper dropper,
            LongSupplier micros,
            LockOptions lockOptions,
            RunningTransactions running,
            XidGenerator generator) {
        this.module = module;
        this.options = options;
        this.wal = wal;
        this.listener = listener;
        this.dropper = dropper;
        this.micros = micros;
        this.running = running;
        this.generator = generator;
        firstXid = TransactionId.xidOf(module.xactCounters().nextFullXid());
        module.commitLog().waitForWal(wal::flush);
        multiXacts = new MultiXacts(this, module, options, listener);
        locks = new LockManager(this, lockOptions, options.sessions());
        module.runs(this);
    }

    /**
     * Opens a session.
     *
     * @param database its oid, 0 for none
     */
    public TransactionSession openSession(int database) {
        return new TransactionSession(this, database);
    }

    Snapshot newSnapshot() {
        return new Snapshot(module.subTrans(), options.sessions(), options.cachedSubxids());
    }

    long assign(int slot, boolean isSubtransaction) {
        checkUsable();
        return generator.assign(slot, isSubtransaction);
    }

    /** The xid that is assigned next, with its epoch. */
    public long nextFullXid() {
        return module.xactCounters().nextFullXid();
    }

    /**
     * True if the transaction has committed. Ask {@link #isInProgress} first, or a snapshot: who
     * has committed may run still, for a moment. (PostgreSQL: TransactionIdDidCommit.)
     */
    public boolean didCommit(int xid) {
        if (!TransactionId.isNormal(xid)) {
            return TransactionId.isValid(xid);
        }
        int at = xid;
        int status = module.commitLog().status(at);
        while (status == CommitLog.SUB_COMMITTED && !TransactionId.precedes(at, firstXid)) {
            at = module.subTrans().parent(at);
            if (!TransactionId.isNormal(at)) {
                return false;
            }
            status = module.commitLog().status(at);
        }
        return status == CommitLog.COMMITTED;
    }

    /** True if it is known to have aborted; false after a crash. (TransactionIdDidAbort) */
    public boolean didAbort(int xid) {
        return TransactionId.isNormal(xid)
                ? module.commitLog().status(xid) == CommitLog.ABORTED
                : !TransactionId.isValid(xid);
    }

    /**
     * True if the transaction, or the one that it is a subtransaction of, runs. (PostgreSQL:
     * TransactionIdIsInProgress.)
     */
    public boolean isInProgress(int xid) {
        if (!TransactionId.isNormal(xid)) {
            return false;
        }
        int answer = running.isInProgress(xid);
        if (answer != RunningTransactions.PERHAPS) {
            return answer == RunningTransactions.YES;
        }
        // A subtransaction that has aborted runs no longer, whatever its parent does.
        if (module.commitLog().status(xid) == CommitLog.ABORTED) {
            return false;
        }
        int top = module.subTrans().topmost(xid, oldestConsideredRunning());
        return top != xid && running.isTopRunning(top);
    }

    /**
     * The transaction that a running xid belongs to; of one that has ended, any. (PostgreSQL:
     * SubTransGetTopmostTransaction.)
     */
    int topXid(int xid) {
        int top = running.topOf(xid);
        return top != TransactionId.INVALID
                ? top
                : module.subTrans().topmost(xid, oldestConsideredRunning());
    }

    /**
     * Up to where the WAL must be durable before a hint that the xid has committed may reach disk.
     */
    public long commitLsn(int xid) {
        return TransactionId.isNormal(xid) ? module.commitLog().commitLsn(xid) : 0;
    }

    /**
     * Computes the horizons for tables of a database; never before the oldest unfrozen xid's epoch
     * began, never in the future. (PostgreSQL: ComputeXidHorizons.)
     */
    public void horizons(int database, Horizons into) {
        running.horizons(database, into);
        int defer = options.deferCleanupAge();
        if (defer > 0) {
            long latest = running.latestCompleted();
            into.oldestConsideredRunning = retreat(into.oldestConsideredRunning, defer, latest);
            into.sharedOldestNonremovable = retreat(into.sharedOldestNonremovable, defer, latest);
            into.dataOldestNonremovable = retreat(into.dataOldestNonremovable, defer, latest);
        }
    }

    /** Stops at the first normal xid there was. (PostgreSQL: TransactionIdRetreatSafely.) */
    static int retreat(int xid, int by, long near) {
        long full = RunningTransactions.full(near, xid);
        if (full - TransactionId.FIRST_NORMAL <= by) {
            return TransactionId.FIRST_NORMAL;
        }
        int back = TransactionId.xidOf(full - by);
        // Special ids were never assigned: go past them.
        return TransactionId.isNormal(back) ? back : -1;
    }

    int oldestConsideredRunning() {
        Horizons horizons = new Horizons();
        horizons(0, horizons);
        return horizons.oldestConsideredRunning;
    }

    /**
     * Under the generator's monitor, so that every xid before the next one is in the table.
     * (PostgreSQL: GetOldestActiveTransactionId.)
     */
    int oldestActiveXid() {
        synchronized (generator) {
            return running.oldestXid(TransactionId.xidOf(nextFullXid()));
        }
    }

    /** Under the generator's monitor until it is inserted: no later xid comes before the record. */
    void logRunning(RunningXacts into, Runnable insert) {
        synchronized (generator) {
            running.collect(into, TransactionId.xidOf(nextFullXid()));
            insert.run();
        }
    }

    /** Where a vacuum must freeze, given the horizons of its table. */
    public FreezeLimits freezeLimits(FreezeSettings settings, int oldestXmin, int oldestMulti) {
        return FreezeLimits.of(
                settings,
                options.freezeMaxAge(),
                multiXacts.effectiveFreezeMaxAge(),
                TransactionId.xidOf(nextFullXid()),
                multiXacts.nextMulti(),
                oldestXmin,
                oldestMulti);
    }

    /**
     * Nothing before these is needed in any database: moves the limits on and removes what pg_xact,
     * pg_commit_ts and pg_multixact have of older ones. Called with the minima over all databases.
     * (PostgreSQL: vac_truncate_clog.)
     */
    public void advanceOldest(
            TransactionSession session, int xid, int xidDb, int multi, int multiDb) {
        checkUsable();
        synchronized (truncation) {
            XidLimits limits = generator.limits();
            if (TransactionId.precedes(limits.oldest(), xid)
                    && TransactionId.precedes(xid, TransactionId.xidOf(nextFullXid()))) {
                // Nobody shall ask for a commit time that is about to go.
                module.commitTimestamps().oldestXid(xid, module.xactCounters());
                truncateCommitLog(xid, xidDb);
                truncateCommitTimes(xid);
            }
            multiXacts.truncate(session, multi, multiDb);
            generator.oldestXid(xid, xidDb);
        }
    }

    /** The record is durable before a file goes. (PostgreSQL: TruncateCLOG.) */
    private void truncateCommitLog(int xid, int db) {
        int page = CommitLog.pageOf(xid);
        if (!module.commitLog().slru().hasSegmentBefore(page)) {
            return;
        }
        generator.oldestXid(xid, db);
        UnsafeBuffer data = new UnsafeBuffer(new byte[12]);
        data.putInt(0, page);
        data.putInt(4, xid);
        data.putInt(8, db);
        wal.flush(
                wal.insert(
                        new WalRecordBuilder()
                                .begin(
                                        RmgrIds.CLOG,
                                        CommitLogResourceManager.TRUNCATE,
                                        TransactionId.INVALID)
                                .data(data, 0, 12)));
        module.commitLog().truncate(page);
    }

    /** (PostgreSQL: TruncateCommitTs, whose record is not made durable first.) */
    private void truncateCommitTimes(int xid) {
        int page = CommitTimestampLog.pageOf(xid);
        Slru slru = module.commitTimestamps().slru();
        if (!slru.hasSegmentBefore(page)) {
            return;
        }
        UnsafeBuffer data = new UnsafeBuffer(new byte[8]);
        data.putInt(0, page);
        data.putInt(4, xid);
        wal.flush(
                wal.insert(
                        new WalRecordBuilder()
                                .begin(
                                        RmgrIds.COMMIT_TS,
                                        CommitTimestampResourceManager.TRUNCATE,
                                        TransactionId.INVALID)
                                .data(data, 0, 8)));
        slru.truncate(page);
    }

    public MultiXacts multiXacts() {
        return multiXacts;
    }

    /**
     * Returns once every commit and every multixact whose record was inserted before the call is in
     * its log: what a checkpoint waits for between its redo point and the logs.
     */
    void awaitCommitsInProgress() {
        running.awaitCommits(() -> stopped != null);
        multiXacts.awaitCreation();
    }

    /**
     * After a failure between a record and pg_xact nothing more may be told to anybody. An error is
     * thrown on as it is.
     */
    KernelStoppedException stop(String what, Throwable cause) {
        KernelStoppedException stop =
                cause instanceof KernelStoppedException already
                        ? already
                        : new KernelStoppedException(
                                "the kernel stopped in the " + what + ": " + cause.getMessage(),
                                cause);
        stopped = stop;
        locks.wakeAll();
        if (cause instanceof Error error) {
            throw error;
        }
        return stop;
    }

    void checkUsable() {
        KernelStoppedException stop = stopped;
        if (stop != null) {
            throw new KernelStoppedException(stop.getMessage(), stop);
        }
    }

    boolean isStopped() {
        return stopped != null;
    }

    void commitTimes(int xid, DirectBuffer subxids, int offset, int count, long time) {
        CommitTimestampLog log = module.commitTimestamps();
        if (log.active()) {
            synchronized (log) {
                log.setTree(xid, subxids, offset, count, time, 0, module.xactCounters());
            }
        }
    }

    LockManager locks() {
        return locks;
    }

    RunningTransactions running() {
        return running;
    }

    CommitLog commitLog() {
        return module.commitLog();
    }

    SubTransLog subTrans() {
        return module.subTrans();
    }

    XactWal wal() {
        return wal;
    }

    RelationDropper dropper() {
        return dropper;
    }

    WraparoundListener listener() {
        return listener;
    }

    long time() {
        return micros.getAsLong();
    }
}
