package org.pgkernel.xact;

import java.util.List;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.recovery.CheckpointParticipant;
import org.pgkernel.recovery.RecoveredCounters;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;

/** The transaction logs of one cluster and their part in recovery. */
final class XactModule implements RecoveryModule, CheckpointParticipant {
    private final Disk disk;
    private final String dataDirectory;
    private final XactCounters counters = new XactCounters();
    private final CommitLog commitLog;
    private final CommitTimestampLog commitTimestamps;
    private final SubTransLog subTrans;
    private final MultiXactLog multiXacts;
    private boolean recoveryOver;

    /** Who runs transactions, once recovery is over; set once. */
    private volatile TransactionManager manager;

    XactModule(RecoveryEnvironment environment) {
        this(environment.disk(), environment.dataDirectory());
    }

    XactModule(Disk disk, String dataDirectory) {
        this.disk = disk;
        this.dataDirectory = dataDirectory;
        commitLog = new CommitLog(disk, dataDirectory);
        commitTimestamps = new CommitTimestampLog(disk, dataDirectory);
        subTrans = new SubTransLog(disk, dataDirectory);
        multiXacts = new MultiXactLog(disk, dataDirectory);
    }

    @Override
    public List<ResourceManager> resourceManagers() {
        return List.of(
                new TransactionResourceManager(commitLog, commitTimestamps, counters),
                new CommitLogResourceManager(commitLog),
                new MultiXactResourceManager(multiXacts, counters),
                new StandbyResourceManager(),
                new CommitTimestampResourceManager(commitTimestamps, counters));
    }

    @Override
    public void beforeRedo(RedoContext context) {
        refusePreparedTransactions();
        commitLog.startup(nextXid());
        multiXacts.startup(counters.nextMulti(), counters.nextMultiOffset());
        counters.attach(commitTimestamps);
    }

    /**
     * Prepared transactions of earlier than the redo point live in files. (PostgreSQL:
     * restoreTwoPhaseData.)
     */
    private void refusePreparedTransactions() {
        String directory = dataDirectory + "/pg_twophase";
        for (String name : disk.list(directory)) {
            if (name.length() == 8) {
                throw new RefusedException(
                        "the cluster has a prepared transaction, which is not covered yet. file="
                                + directory
                                + "/"
                                + name);
            }
        }
    }

    @Override
    public void afterRedo(RedoContext context) {
        commitTimestamps.writePending();
        commitLog.slru().recoveryOver();
        commitTimestamps.slru().recoveryOver();
        subTrans.slru().recoveryOver();
        multiXacts.offsets().recoveryOver();
        multiXacts.members().recoveryOver();
        subTrans.startup(counters.oldestActiveXid(), nextXid());
        commitLog.trim(nextXid());
        multiXacts.trim(counters.nextMulti(), counters.nextMultiOffset());
    }

    @Override
    public void afterRecovery(RedoContext context) {
        if (counters.tracksCommitTimestamps()) {
            commitTimestamps.activate(counters);
            commitTimestamps.writePending();
        } else {
            commitTimestamps.deactivate(counters);
        }
        recoveryOver = true;
    }

    @Override
    public RecoveredCounters counters() {
        return counters;
    }

    @Override
    public List<CheckpointParticipant> checkpointParticipants() {
        return List.of(this);
    }

    @Override
    public Order order() {
        return Order.SLRU;
    }

    @Override
    public String name() {
        return "transaction logs";
    }

    /**
     * Writes the logs in PostgreSQL's order. After recovery the segments of pg_subtrans that nobody
     * can ask for go as well: PostgreSQL removes them right after the checkpoint, which makes no
     * difference since nothing of that log outlives a crash.
     *
     * <p>Whoever logged a commit before the redo point has set its status before pg_xact is
     * written: they are waited for. (PostgreSQL: GetVirtualXIDsDelayingChkpt, CreateCheckPoint.)
     */
    @Override
    public void checkpoint(long redoLsn) {
        TransactionManager running = manager;
        if (running != null) {
            running.awaitCommitsInProgress();
        }
        commitLog.slru().checkpoint();
        commitTimestamps.slru().checkpoint();
        subTrans.slru().checkpoint();
        multiXacts.offsets().checkpoint();
        multiXacts.members().checkpoint();
        if (recoveryOver) {
            subTrans.truncate(running == null ? nextXid() : running.oldestConsideredRunning());
        }
    }

    private int nextXid() {
        return TransactionId.xidOf(counters.nextFullXid());
    }

    /** From now on transactions run. */
    void runs(TransactionManager manager) {
        this.manager = manager;
        counters.runs(manager);
    }

    XactCounters xactCounters() {
        return counters;
    }

    CommitLog commitLog() {
        return commitLog;
    }

    CommitTimestampLog commitTimestamps() {
        return commitTimestamps;
    }

    SubTransLog subTrans() {
        return subTrans;
    }

    MultiXactLog multiXacts() {
        return multiXacts;
    }
}
