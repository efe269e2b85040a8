package org.pgkernel.recovery;

import java.time.Clock;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/**
 * Writes checkpoints: everything dirty reaches the disk, then a record says so, then the control
 * file points to the record. Single thread, no concurrent insertion. (PostgreSQL: CreateCheckPoint,
 * CheckPointGuts, CreateRestartPoint, xlog.c.)
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

    private static final int RUNNING_XACTS = 0x10;
    private static final int RUNNING_XACTS_LENGTH = 24;

    private final List<CheckpointParticipant> participants;
    private final BufferPool pool;
    private final SyncRequests syncRequests;
    private final RecoveredCounters counters;
    private final ControlFileKeeper control;
    private final Clock clock;
    private final long unloggedLsn;
    private final UnsafeBuffer body = new UnsafeBuffer(new byte[CheckPointRecord.SIZE]);
    private final WalRecordBuilder builder = new WalRecordBuilder();

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

    /**
     * Writes everything, a checkpoint record, the control file.
     *
     * @param previousTimeline differs from {@code timeline} only at the end of recovery that began
     *     one
     */
    void write(
            Kind kind,
            WalWriter writer,
            int timeline,
            int previousTimeline,
            boolean fullPageWrites) {
        boolean shutdown = kind != Kind.ONLINE;
        syncRequests.preCheckpoint();
        if (shutdown) {
            control.shuttingDown();
        }
        long redo = writer.nextRecordLsn();
        fill(shutdown, redo, timeline, previousTimeline, fullPageWrites);
        flushEverything(redo);
        if (!shutdown && control.snapshot().walLevel() >= ControlFile.WAL_LEVEL_REPLICA) {
            appendRunningTransactions(writer);
        }
        builder.begin(
                RmgrIds.XLOG,
                shutdown ? XlogRedo.CHECKPOINT_SHUTDOWN : XlogRedo.CHECKPOINT_ONLINE,
                TransactionId.INVALID);
        builder.data(body, 0, CheckPointRecord.SIZE);
        writer.append(builder);
        writer.flush();
        if (shutdown && writer.lastRecord() != redo) {
            throw new KernelStoppedException(
                    "WAL was written during a shutdown checkpoint: redo="
                            + Lsn.format(redo)
                            + " lsn="
                            + Lsn.format(writer.lastRecord()));
        }
        control.checkpointWritten(writer.lastRecord(), body, shutdown, unloggedLsn);
        syncRequests.postCheckpoint();
    }

    private void fill(
            boolean shutdown,
            long redo,
            int timeline,
            int previousTimeline,
            boolean fullPageWrites) {
        CheckPointRecord.clear(body, 0);
        CheckPointRecord.setRedo(body, 0, redo);
        CheckPointRecord.setThisTimeLineId(body, 0, timeline);
        CheckPointRecord.setPrevTimeLineId(body, 0, previousTimeline);
        CheckPointRecord.setFullPageWrites(body, 0, fullPageWrites);
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
        // Only an online checkpoint needs it, to tell a hot standby where to look for running
        // transactions.
        boolean standbyInfo =
                !shutdown && control.snapshot().walLevel() >= ControlFile.WAL_LEVEL_REPLICA;
        CheckPointRecord.setOldestActiveXid(
                body, 0, standbyInfo ? counters.oldestActiveXid() : TransactionId.INVALID);
    }

    /**
     * Participants in order; the pool's and the sync queue's turns lie between theirs. (PostgreSQL:
     * CheckPointGuts.)
     */
    void flushEverything(long redo) {
        boolean buffersDone = false;
        boolean syncDone = false;
        for (CheckpointParticipant participant : participants) {
            if (!buffersDone
                    && participant.order().compareTo(CheckpointParticipant.Order.BUFFERS) >= 0) {
                pool.flushAll();
                buffersDone = true;
            }
            if (!syncDone && participant.order().compareTo(CheckpointParticipant.Order.SYNC) >= 0) {
                syncRequests.process();
                syncDone = true;
            }
            participant.checkpoint(redo);
        }
        if (!buffersDone) {
            pool.flushAll();
        }
        if (!syncDone) {
            syncRequests.process();
        }
    }

    /**
     * No transaction runs in a kernel that has just been recovered: those open on the primary ended
     * with it. (PostgreSQL: LogStandbySnapshot, standby.c.)
     *
     * <pre>
     *  0 xcnt | 4 subxcnt | 8 overflow 1 | 12 nextXid | 16 oldestRunningXid | 20 latestCompletedXid
     * </pre>
     */
    private void appendRunningTransactions(WalWriter writer) {
        UnsafeBuffer running = new UnsafeBuffer(new byte[RUNNING_XACTS_LENGTH]);
        int next = TransactionId.xidOf(counters.nextFullXid());
        running.putInt(12, next);
        running.putInt(16, counters.oldestActiveXid());
        running.putInt(20, TransactionId.retreat(next));
        builder.begin(RmgrIds.STANDBY, RUNNING_XACTS, TransactionId.INVALID);
        builder.data(running, 0, RUNNING_XACTS_LENGTH);
        writer.append(builder);
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
}
