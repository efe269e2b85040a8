package org.pgkernel.recovery;

import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.CheckpointSchedule;
import org.pgkernel.bufmgr.CheckpointWrite;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * One checkpoint, step by step: everything dirty at its redo point reaches the disk, then a record
 * says so, then the control file points to the record.
 *
 * <p>The order, and why. Files to be removed are told apart before the redo point is fixed: a drop
 * whose record lies behind it belongs to the next checkpoint (R12). The redo point moves while no
 * record is being inserted; who looked at the old one is asked again by the inserter, so that each
 * page gets its image in the first record after the point. The counters are read after it: replay
 * from it moves them past all that was assigned since. Whoever logged before the point, but has not
 * yet marked a page dirty or set a status, is waited for, and so is, before the record, whoever has
 * thrown away buffers of a file that is not cut yet (C03). The control file is last: until it is
 * written, redo begins where it did, so a run that fails at any step leaves nothing behind but
 * pages written early, a redo point in memory that costs images, and removals that the next run
 * makes up for (R11). Kept first segments and old WAL go after it.
 *
 * <p>One thread drives it, one run at a time. (PostgreSQL: CreateCheckPoint, xlog.c.)
 */
public final class CheckpointRun implements Agent {
    /** What the record says of the cluster. */
    record Setting(int timeline, int previousTimeline, boolean fullPageWrites) {}

    private enum Phase {
        BEGIN,
        WAIT_FOR_STARTED,
        BEFORE_BUFFERS,
        BUFFERS,
        AFTER_BUFFERS,
        WAIT_FOR_COMPLETION,
        RECORD,
        REMOVALS,
        DONE,
        FAILED
    }

    private final Checkpoints all;
    private final Checkpoints.Kind kind;
    private final CheckpointWal wal;
    private final Setting setting;
    private final CheckpointSchedule schedule;
    private final NanoClock clock;
    private final UnsafeBuffer body = new UnsafeBuffer(new byte[CheckPointRecord.SIZE]);
    private final WalRecordBuilder builder = new WalRecordBuilder();
    private Phase phase = Phase.BEGIN;
    private long redo;
    private long recordLsn;
    private long recordEnd;
    private long[] inside;
    private int nextParticipant;
    private CheckpointWrite write;

    /** Set by anybody. */
    private volatile boolean hurried;

    CheckpointRun(
            Checkpoints all,
            Checkpoints.Kind kind,
            CheckpointWal wal,
            Setting setting,
            CheckpointSchedule schedule,
            NanoClock clock) {
        this.all = all;
        this.kind = kind;
        this.wal = wal;
        this.setting = setting;
        this.schedule = schedule;
        this.clock = clock;
    }

    @Override
    public String roleName() {
        return "checkpoint";
    }

    /**
     * One step.
     *
     * @return 0 while it rests or waits for somebody, and when done
     * @throws org.pgkernel.base.error.KernelException it failed and is over; unless the kernel is
     *     stopped, another one may be begun
     */
    @Override
    public int doWork() {
        if (phase == Phase.DONE) {
            return 0;
        }
        Phase before = phase;
        phase = Phase.FAILED;
        // A failure leaves it there.
        Phase next = step(before);
        phase = next;
        return next == before && next != Phase.BUFFERS ? 0 : lastStep;
    }

    /** What the last step did. */
    private int lastStep;

    private Phase step(Phase now) {
        lastStep = 1;
        return switch (now) {
            case BEGIN -> begin();
            case WAIT_FOR_STARTED ->
                    all.delay.start().haveLeft(inside) ? Phase.BEFORE_BUFFERS : now;
            case BEFORE_BUFFERS -> {
                nextParticipant = all.run(0, CheckpointParticipant.Order.BUFFERS, redo);
                yield Phase.BUFFERS;
            }
            case BUFFERS -> writeBuffers();
            case AFTER_BUFFERS -> {
                nextParticipant = all.run(nextParticipant, CheckpointParticipant.Order.SYNC, redo);
                all.syncRequests.process();
                all.run(nextParticipant, null, redo);
                inside = all.delay.completion().look();
                yield Phase.WAIT_FOR_COMPLETION;
            }
            case WAIT_FOR_COMPLETION ->
                    all.delay.completion().haveLeft(inside) ? Phase.RECORD : now;
            case RECORD -> record();
            case REMOVALS -> {
                all.syncRequests.postCheckpoint();
                yield Phase.DONE;
            }
            case DONE -> now;
            case FAILED ->
                    throw new IllegalStateException(
                            "this checkpoint has failed; another has to begin anew");
        };
    }

    private Phase begin() {
        all.syncRequests.preCheckpoint();
        if (isShutdown()) {
            all.control.shuttingDown();
        }
        int oldestActive = all.oldestActiveXid(kind);
        redo = wal.moveRedo();
        all.fill(body, redo, setting, oldestActive);
        inside = all.delay.start().look();
        return Phase.WAIT_FOR_STARTED;
    }

    private Phase writeBuffers() {
        if (write == null) {
            write =
                    all.pool.beginCheckpoint(
                            schedule, clock, CheckpointWrite.DEFAULT_FLUSH_AFTER_PAGES);
        }
        if (hurried) {
            write.hurry();
        }
        lastStep = write.doWork();
        return write.isDone() ? Phase.AFTER_BUFFERS : Phase.BUFFERS;
    }

    private Phase record() {
        if (kind == Checkpoints.Kind.ONLINE && all.tellsStandbys()) {
            RunningXacts running = new RunningXacts();
            all.counters.running(running, () -> wal.insert(running.build(builder)));
        }
        builder.begin(
                RmgrIds.XLOG,
                isShutdown() ? XlogRedo.CHECKPOINT_SHUTDOWN : XlogRedo.CHECKPOINT_ONLINE,
                TransactionId.INVALID);
        builder.data(body, 0, CheckPointRecord.SIZE);
        recordEnd = wal.insert(builder);
        recordLsn = wal.startOf(builder);
        wal.flush(recordEnd);
        if (isShutdown() && recordLsn != redo) {
            throw new KernelStoppedException(
                    "WAL was written during a shutdown checkpoint: redo="
                            + Lsn.format(redo)
                            + " lsn="
                            + Lsn.format(recordLsn));
        }
        all.control.checkpointWritten(recordLsn, body, isShutdown(), all.unloggedLsn);
        return Phase.REMOVALS;
    }

    private boolean isShutdown() {
        return kind != Checkpoints.Kind.ONLINE;
    }

    /** Somebody waits for this checkpoint now: it writes without rests. By any thread. */
    public void hurry() {
        hurried = true;
    }

    public boolean isDone() {
        return phase == Phase.DONE;
    }

    /** Where redo begins once this is done; 0 before the first step. */
    public long redoLsn() {
        return redo;
    }

    /** End of the checkpoint record; 0 until it is written. */
    public long recordEnd() {
        return recordEnd;
    }

    /** Pages written by this checkpoint itself. */
    public int pagesWritten() {
        return write == null ? 0 : write.written();
    }
}
