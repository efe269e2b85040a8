package org.pgkernel.cluster;

import java.time.Clock;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.recovery.RecoveryOptions;
import org.pgkernel.recovery.ReplayListener;
import org.pgkernel.smgr.SizePolicy;

/**
 * How a cluster is opened. Immutable; start from {@link #defaults}.
 *
 * @param disk where the files are
 * @param sharedBuffers buffers of the pool, 8 KB each
 * @param dropStrategy how a dropped relation's buffers are found
 * @param lookupDivisor the strategy LOOKUP probes when fewer than {@code sharedBuffers} divided by
 *     this many blocks are to be dropped
 * @param sizePolicy when a remembered fork size is proof
 * @param fullPageWrites what checkpoints say from the end of recovery on; null for what
 *     postgresql.conf says, or else the WAL
 * @param listener told of replay's progress
 * @param clock for the times in checkpoints and in the lock file
 * @param run how it runs in production, see {@link Cluster#open}
 * @param fsm which relations have a free space map, in redo too; a cluster may be opened with
 *     another one than before
 */
public record ClusterOptions(
        Disk disk,
        int sharedBuffers,
        DropStrategy dropStrategy,
        int lookupDivisor,
        SizePolicy sizePolicy,
        Boolean fullPageWrites,
        ReplayListener listener,
        Clock clock,
        RunOptions run,
        FsmOptions fsm) {
    /** 128 MB. */
    public static final int DEFAULT_SHARED_BUFFERS = 16_384;

    /** PostgreSQL's default pool and size policy; the drop strategy that needs no size. */
    public static ClusterOptions defaults() {
        return new ClusterOptions(
                new PosixDisk(),
                DEFAULT_SHARED_BUFFERS,
                BufferPoolOptions.DEFAULT_STRATEGY,
                BufferPoolOptions.DEFAULT_LOOKUP_DIVISOR,
                SizePolicy.RECOVERY_ONLY,
                null,
                ReplayListener.NONE,
                Clock.systemUTC(),
                RunOptions.defaults(),
                FsmOptions.ALWAYS);
    }

    public ClusterOptions withDisk(Disk other) {
        return new ClusterOptions(
                other,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withSharedBuffers(int buffers) {
        return new ClusterOptions(
                disk,
                buffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withDropStrategy(DropStrategy strategy) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                strategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withLookupDivisor(int divisor) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                divisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withSizePolicy(SizePolicy policy) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                policy,
                fullPageWrites,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withFullPageWrites(boolean on) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                on,
                listener,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withListener(ReplayListener other) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                other,
                clock,
                run,
                fsm);
    }

    public ClusterOptions withClock(Clock other) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                other,
                run,
                fsm);
    }

    public ClusterOptions withRun(RunOptions other) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                other,
                fsm);
    }

    public ClusterOptions withFsm(FsmOptions options) {
        return new ClusterOptions(
                disk,
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                run,
                options);
    }

    RecoveryOptions forRecovery(String dataDirectory) {
        Boolean full =
                fullPageWrites != null
                        ? fullPageWrites
                        : ServerSettings.fullPageWrites(disk, dataDirectory);
        return new RecoveryOptions(
                sharedBuffers,
                dropStrategy,
                lookupDivisor,
                sizePolicy,
                full,
                listener,
                clock,
                fsm.creationThreshold());
    }
}
