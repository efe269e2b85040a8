package org.pgkernel.cluster;

import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.bufmgr.CheckpointSchedule;
import org.pgkernel.bufmgr.SpreadSchedule;
import org.pgkernel.recovery.CheckpointRun;
import org.pgkernel.recovery.Primary;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRetention;

/**
 * Begins checkpoints when it is time, when enough WAL was written, or when somebody asks, and
 * drives them. One thread at a time calls {@link #doWork}; anybody asks.
 *
 * <p>Checkpoints are numbered as they begin. Who asks waits for one that begins after he asked, the
 * one at work does not do; it is hurried so that the next can begin. A failed one is told to all
 * who wait for it and forgotten: redo begins where it did, and the next one does its work (R11).
 * (PostgreSQL: CheckpointerMain, RequestCheckpoint, checkpointer.c.)
 */
final class Checkpointer implements Agent {
    private static final System.Logger LOG = System.getLogger("org.pgkernel.cluster");
    private static final long RETRY_NANOS = TimeUnit.SECONDS.toNanos(15);

    private final Primary primary;
    private final WalInserter wal;
    private final RunOptions options;
    private final NanoClock clock;
    private final KernelStop stop;
    private final WalRetention retention;

    // Changed by the driving thread.
    private volatile CheckpointRun run;
    private long due;

    /** WAL's end after the last checkpoint: nothing was written since if it is there still. */
    private long idleLsn;

    /** Guards what follows. */
    private final Object lock = new Object();

    private boolean requested;
    private long started;
    private long finished;
    private KernelException lastFailure;
    private long failedNumber;

    /** Complete ones. */
    private long completed;

    Checkpointer(Primary primary, RunOptions options, WalRetention retention, KernelStop stop) {
        this.primary = primary;
        wal = primary.wal();
        this.options = options;
        clock = options.nanoClock();
        this.stop = stop;
        this.retention = retention;
        due = clock.nanoTime() + options.checkpointTimeoutNanos();
        idleLsn = wal.insertLsn();
    }

    @Override
    public String roleName() {
        return "checkpointer";
    }

    /**
     * One step of a checkpoint, or a look whether one is due.
     *
     * @throws KernelException the checkpoint failed; the next one is begun at its time
     */
    @Override
    public int doWork() {
        if (run == null && !begin()) {
            return 0;
        }
        try {
            int work = run.doWork();
            if (run.isDone()) {
                idleLsn = run.recordEnd();
                removeOldWal(run.redoLsn());
                end(null);
            }
            return work;
        } catch (KernelException e) {
            due = Math.min(due, clock.nanoTime() + RETRY_NANOS);
            end(e);
            throw e;
        } catch (RuntimeException | Error e) {
            stop.stop(e);
            end(null);
            throw e;
        }
    }

    /**
     * (PostgreSQL: XLogCheckpointNeeded; a checkpoint by time is left out when nothing happened.)
     */
    private boolean begin() {
        long now = clock.nanoTime();
        boolean inTime = now - due < 0;
        boolean muchWal = wal.insertLsn() - wal.redoLsn() >= retention.checkpointDistance();
        boolean isAsked;
        synchronized (lock) {
            isAsked = requested;
        }
        if (inTime && !muchWal && !isAsked) {
            return false;
        }
        due = now + options.checkpointTimeoutNanos();
        if (!muchWal && !isAsked && wal.insertLsn() == idleLsn) {
            return false;
        }
        synchronized (lock) {
            isAsked = requested;
            requested = false;
            started++;
        }
        run = primary.beginCheckpoint(isAsked ? CheckpointSchedule.IMMEDIATE : spread(), clock);
        return true;
    }

    private CheckpointSchedule spread() {
        return new SpreadSchedule(
                clock,
                options.checkpointTimeoutNanos(),
                options.checkpointCompletionTarget(),
                wal::insertLsn,
                retention.checkpointDistance());
    }

    /** Too much WAL is no reason to call the checkpoint a failure. */
    private void removeOldWal(long redo) {
        try {
            retention.removeOldSegments(redo);
        } catch (KernelException e) {
            if (KernelStop.isFatal(e)) {
                throw e;
            }
            LOG.log(System.Logger.Level.WARNING, e.getMessage());
        }
    }

    private void end(KernelException failure) {
        run = null;
        synchronized (lock) {
            finished = started;
            if (failure == null) {
                completed++;
            } else {
                lastFailure = failure;
                failedNumber = started;
            }
            lock.notifyAll();
        }
    }

    /** Asks for a checkpoint. @return what to wait for, see {@link #isOver} */
    long request() {
        CheckpointRun atWork = run;
        synchronized (lock) {
            requested = true;
            if (atWork != null) {
                atWork.hurry();
            }
            return started + 1;
        }
    }

    /**
     * True once the checkpoint is complete.
     *
     * @throws KernelException when it failed
     */
    boolean isOver(long number) {
        synchronized (lock) {
            return isOverNow(number);
        }
    }

    private boolean isOverNow(long number) {
        if (finished < number) {
            stop.check();
            return false;
        }
        if (failedNumber >= number && finished == failedNumber) {
            throw lastFailure;
        }
        return true;
    }

    /** Waits until it is, while another thread drives. */
    void await(long number) {
        boolean interrupted = false;
        synchronized (lock) {
            while (!isOverNow(number)) {
                try {
                    lock.wait(100);
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Checkpoints completed since the cluster was opened. */
    long completed() {
        synchronized (lock) {
            return completed;
        }
    }

    /** True while one is at work. The driving thread's question. */
    boolean isAtWork() {
        return run != null;
    }
}
