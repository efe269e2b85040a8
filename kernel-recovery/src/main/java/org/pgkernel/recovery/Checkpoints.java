package org.pgkernel.recovery;

import java.time.Clock;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.CheckpointSchedule;
import org.pgkernel.smgr.SyncRequests;

/**
 * What checkpoints need, and what they have in common. A checkpoint itself is a {@link
 * CheckpointRun}. (PostgreSQL: CreateCheckPoint, CheckPointGuts, CreateRestartPoint, xlog.c.)
 */
final class Checkpoints {
    /** Kinds, as PostgreSQL's flags tell them apart. */
    enum Kind {
        /** Written while transactions may run; carries a snapshot of them before it. */
        ONLINE,
        /** The last record before the cluster is closed. */
        SHUTDOWN,
        /** Of a shutdown's type, though the cluster goes on: crash recovery ends with it. */
        END_OF_RECOVERY
    }

    final List<CheckpointParticipant> participants;
    final BufferPool pool;
    final SyncRequests syncRequests;
    final RecoveredCounters counters;
    final ControlFileKeeper control;
    final CheckpointDelay delay = new CheckpointDelay();
    final long unloggedLsn;
    private final Clock clock;

    Checkpoints(
            List<CheckpointParticipant> participants,
            BufferPool pool,
            RecoveredCounters counters,
            ControlFileKeeper control,
            long unloggedLsn,
            Clock clock) {
        this.participants = participants;
        this.pool = pool;
        this.syncRequests = pool.smgr().syncRequests();
        this.counters = counters;
        this.control = control;
        this.unloggedLsn = unloggedLsn;
        this.clock = clock;
    }

    /** Writes a whole checkpoint as fast as it goes. */
    void write(Kind kind, CheckpointWal wal, CheckpointRun.Setting setting) {
        CheckpointRun run =
                new CheckpointRun(
                        this, kind, wal, setting, CheckpointSchedule.IMMEDIATE, System::nanoTime);
        while (!run.isDone()) {
            if (run.doWork() == 0) {
                Thread.onSpinWait();
            }
        }
    }

    /** A hot standby could follow: it is told who runs. (XLogStandbyInfoActive) */
    boolean tellsStandbys() {
        return control.snapshot().walLevel() >= ControlFile.WAL_LEVEL_REPLICA;
    }

    /** The record's counters, read once the redo point is fixed. */
    void fill(UnsafeBuffer body, long redo, CheckpointRun.Setting setting, int oldestActiveXid) {
        CheckPointRecord.clear(body, 0);
        CheckPointRecord.setRedo(body, 0, redo);
        CheckPointRecord.setThisTimeLineId(body, 0, setting.timeline());
        CheckPointRecord.setPrevTimeLineId(body, 0, setting.previousTimeline());
        CheckPointRecord.setFullPageWrites(body, 0, setting.fullPageWrites());
        CheckPointRecord.setNextXid(body, 0, counters.nextFullXid());
        CheckPointRecord.setNextOid(body, 0, counters.nextOid());
        CheckPointRecord.setNextMulti(body, 0, counters.nextMulti());
        CheckPointRecord.setNextMultiOffset(body, 0, counters.nextMultiOffset());
        CheckPointRecord.setOldestXid(body, 0, counters.oldestXid());
        CheckPointRecord.setOldestXidDb(body, 0, counters.oldestXidDb());
        CheckPointRecord.setOldestMulti(body, 0, counters.oldestMulti());
        CheckPointRecord.setOldestMultiDb(body, 0, counters.oldestMultiDb());
        CheckPointRecord.setTime(body, 0, clock.instant().getEpochSecond());
        CheckPointRecord.setOldestCommitTsXid(body, 0, counters.oldestCommitTsXid());
        CheckPointRecord.setNewestCommitTsXid(body, 0, counters.newestCommitTsXid());
        CheckPointRecord.setOldestActiveXid(body, 0, oldestActiveXid);
    }

    /** The participants from {@code first} on whose turn comes before {@code end}'s. */
    int run(int first, CheckpointParticipant.Order end, long redo) {
        int next = first;
        while (next < participants.size()
                && (end == null || participants.get(next).order().compareTo(end) < 0)) {
            participants.get(next++).checkpoint(redo);
        }
        return next;
    }

    /**
     * Participants in order; the pool's and the sync queue's turns lie between theirs. (PostgreSQL:
     * CheckPointGuts.)
     */
    void flushEverything(long redo) {
        int next = run(0, CheckpointParticipant.Order.BUFFERS, redo);
        pool.flushAll();
        next = run(next, CheckpointParticipant.Order.SYNC, redo);
        syncRequests.process();
        run(next, null, redo);
    }

    /**
     * Ends an interrupted archive recovery: everything is written and the control file points to
     * the newest checkpoint record from which replay may go on. (PostgreSQL: CreateRestartPoint
     * with CHECKPOINT_IS_SHUTDOWN.)
     */
    void shutdownRestartPoint(ReplayState state, MinimumRecoveryPoint gate) {
        long redo = control.snapshot().checkPointRedo();
        UnsafeBuffer safe =
                state.safeCheckpoint == null ? null : new UnsafeBuffer(state.safeCheckpoint);
        syncRequests.preCheckpoint();
        if (safe != null && Lsn.before(redo, CheckPointRecord.redo(safe, 0))) {
            flushEverything(CheckPointRecord.redo(safe, 0));
            control.restartPoint(state.safeCheckpointLsn, state.safeCheckpointEndLsn, safe);
        } else {
            flushEverything(redo);
        }
        gate.advance();
        control.shutDownInRecovery();
        syncRequests.postCheckpoint();
    }

    int oldestActiveXid(Kind kind) {
        // Only an online checkpoint needs it, to tell a hot standby where to look for running
        // transactions.
        return kind == Kind.ONLINE && tellsStandbys()
                ? counters.oldestActiveXid()
                : TransactionId.INVALID;
    }
}
