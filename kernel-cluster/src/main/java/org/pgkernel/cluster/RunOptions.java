package org.pgkernel.cluster;

import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.SystemNanoClock;
import org.pgkernel.bufmgr.BackgroundWriterOptions;
import org.pgkernel.bufmgr.SpreadSchedule;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.xact.LockParking;

/**
 * How a cluster in production runs. Immutable; start from {@link #defaults}, which are
 * PostgreSQL's.
 */
public final class RunOptions {
    /** Who drives the workers. */
    public enum Workers {
        /** A thread each. */
        THREADS,
        /**
         * Nobody but {@link Cluster#doWork}; a checkpoint that is waited for runs in the caller.
         */
        BY_HAND
    }

    private int sessions = 100;
    private int walBuffers = 16 << 20;
    private ImageCompression walCompression = ImageCompression.OFF;
    private long checkpointTimeoutNanos = TimeUnit.MINUTES.toNanos(5);
    private double checkpointCompletionTarget = SpreadSchedule.DEFAULT_COMPLETION_TARGET;
    private long maxWalSize = 1L << 30;
    private long minWalSize = 80L << 20;
    private long walKeepSize;
    private long walWriterDelayNanos = TimeUnit.MILLISECONDS.toNanos(200);
    private BackgroundWriterOptions backgroundWriter = BackgroundWriterOptions.DEFAULT;
    private boolean synchronousCommit = true;
    private long deadlockTimeoutNanos = TimeUnit.SECONDS.toNanos(1);
    private LockParking lockParking = LockParking.THREADS;
    private Workers workers = Workers.THREADS;
    private NanoClock nanoClock = SystemNanoClock.INSTANCE;

    private RunOptions() {}

    private RunOptions(RunOptions from) {
        sessions = from.sessions;
        walBuffers = from.walBuffers;
        walCompression = from.walCompression;
        checkpointTimeoutNanos = from.checkpointTimeoutNanos;
        checkpointCompletionTarget = from.checkpointCompletionTarget;
        maxWalSize = from.maxWalSize;
        minWalSize = from.minWalSize;
        walKeepSize = from.walKeepSize;
        walWriterDelayNanos = from.walWriterDelayNanos;
        backgroundWriter = from.backgroundWriter;
        synchronousCommit = from.synchronousCommit;
        deadlockTimeoutNanos = from.deadlockTimeoutNanos;
        lockParking = from.lockParking;
        workers = from.workers;
        nanoClock = from.nanoClock;
    }

    public static RunOptions defaults() {
        return new RunOptions();
    }

    /** Backends open at a time, at most. (max_connections) */
    public RunOptions withSessions(int most) {
        RunOptions copy = new RunOptions(this);
        copy.sessions = most;
        return copy;
    }

    /** Bytes, a power of two. (wal_buffers) */
    public RunOptions withWalBuffers(int bytes) {
        RunOptions copy = new RunOptions(this);
        copy.walBuffers = bytes;
        return copy;
    }

    /** Of page images. (wal_compression) */
    public RunOptions withWalCompression(ImageCompression compression) {
        RunOptions copy = new RunOptions(this);
        copy.walCompression = compression;
        return copy;
    }

    /** From the beginning of one checkpoint to that of the next. (checkpoint_timeout) */
    public RunOptions withCheckpointTimeoutNanos(long nanos) {
        RunOptions copy = new RunOptions(this);
        copy.checkpointTimeoutNanos = nanos;
        return copy;
    }

    /** The part of that time in which a checkpoint writes. (checkpoint_completion_target) */
    public RunOptions withCheckpointCompletionTarget(double part) {
        RunOptions copy = new RunOptions(this);
        copy.checkpointCompletionTarget = part;
        return copy;
    }

    /**
     * Bytes of WAL that the directory is to hold about at most, and at least. (max_wal_size,
     * min_wal_size)
     */
    public RunOptions withWalSize(long most, long least) {
        RunOptions copy = new RunOptions(this);
        copy.maxWalSize = most;
        copy.minWalSize = least;
        return copy;
    }

    /** Bytes of WAL that stay in any case, for standbys. (wal_keep_size) */
    public RunOptions withWalKeepSize(long bytes) {
        RunOptions copy = new RunOptions(this);
        copy.walKeepSize = bytes;
        return copy;
    }

    /** Asynchronous commits are durable after about that time. (wal_writer_delay) */
    public RunOptions withWalWriterDelayNanos(long nanos) {
        RunOptions copy = new RunOptions(this);
        copy.walWriterDelayNanos = nanos;
        return copy;
    }

    public RunOptions withBackgroundWriter(BackgroundWriterOptions options) {
        RunOptions copy = new RunOptions(this);
        copy.backgroundWriter = options;
        return copy;
    }

    /** Whether a commit that does not say otherwise waits until it is durable. */
    public RunOptions withSynchronousCommit(boolean on) {
        RunOptions copy = new RunOptions(this);
        copy.synchronousCommit = on;
        return copy;
    }

    /** Who waits for a lock looks for a deadlock after so long. (deadlock_timeout) */
    public RunOptions withDeadlockTimeoutNanos(long nanos) {
        RunOptions copy = new RunOptions(this);
        copy.deadlockTimeoutNanos = nanos;
        return copy;
    }

    /** How who waits for a lock sleeps. */
    public RunOptions withLockParking(LockParking parking) {
        RunOptions copy = new RunOptions(this);
        copy.lockParking = parking;
        return copy;
    }

    public RunOptions withWorkers(Workers who) {
        RunOptions copy = new RunOptions(this);
        copy.workers = who;
        return copy;
    }

    /** What the workers' times are measured by. */
    public RunOptions withNanoClock(NanoClock clock) {
        RunOptions copy = new RunOptions(this);
        copy.nanoClock = clock;
        return copy;
    }

    public int sessions() {
        return sessions;
    }

    public int walBuffers() {
        return walBuffers;
    }

    public ImageCompression walCompression() {
        return walCompression;
    }

    public long checkpointTimeoutNanos() {
        return checkpointTimeoutNanos;
    }

    public double checkpointCompletionTarget() {
        return checkpointCompletionTarget;
    }

    public long maxWalSize() {
        return maxWalSize;
    }

    public long minWalSize() {
        return minWalSize;
    }

    public long walKeepSize() {
        return walKeepSize;
    }

    public long walWriterDelayNanos() {
        return walWriterDelayNanos;
    }

    public BackgroundWriterOptions backgroundWriter() {
        return backgroundWriter;
    }

    public boolean synchronousCommit() {
        return synchronousCommit;
    }

    public long deadlockTimeoutNanos() {
        return deadlockTimeoutNanos;
    }

    public LockParking lockParking() {
        return lockParking;
    }

    public Workers workers() {
        return workers;
    }

    public NanoClock nanoClock() {
        return nanoClock;
    }
}
