package org.pgkernel.cluster;

import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStatistics;
import org.pgkernel.recovery.Recovery;
import org.pgkernel.recovery.RedoEngine;

/**
 * A standby over the WAL in its own {@code pg_wal}: replays when told to, until it is promoted.
 * While it replays, the minimum recovery point in the control file is durable before any page is
 * written and any file shrinks. One thread.
 */
public final class Standby implements AutoCloseable {
    private final OpenDirectory directory;
    private final ClusterOptions options;
    private final long from;
    private long replayNanos;
    private long promotionNanos;
    private boolean over;

    Standby(OpenDirectory directory, ClusterOptions options) {
        this.directory = directory;
        this.options = options;
        from = directory.recovery().replayedTo();
    }

    /**
     * Replays up to, and not including, the first record that begins at or after {@code lsn}, and
     * pauses.
     *
     * @return false when the WAL ended before
     * @throws org.pgkernel.base.error.DamagedDataException see {@link Recovery#replay}; the standby
     *     can only be closed then
     */
    public boolean replayTo(long lsn) {
        return replay(lsn) == RedoEngine.Outcome.STOPPED;
    }

    /** Replays all there is. */
    public void resume() {
        replay(0);
    }

    private RedoEngine.Outcome replay(long stop) {
        requireOpen();
        long start = System.nanoTime();
        try {
            return directory.recovery().replay(stop);
        } catch (RuntimeException | Error e) {
            over = true;
            directory.close();
            throw e;
        } finally {
            replayNanos += System.nanoTime() - start;
        }
    }

    private void requireOpen() {
        if (over) {
            throw new IllegalStateException("the standby is closed or promoted");
        }
    }

    /** End of the last record applied. */
    public long replayedTo() {
        return directory.recovery().replayedTo();
    }

    /** Records applied. */
    public long records() {
        return directory.recovery().records();
    }

    /** Spent in {@link #replayTo} and {@link #resume}. */
    public long replayNanos() {
        return replayNanos;
    }

    /** Spent in {@link #promote}. */
    public long promotionNanos() {
        return promotionNanos;
    }

    public BufferPool pool() {
        return directory.recovery().pool();
    }

    public DropStatistics dropStatistics() {
        return pool().dropStatistics();
    }

    /**
     * Begins the next free timeline at the end of the last record applied; "in production", that is
     * promoted, on return. A checkpoint should follow, {@link Cluster#checkpoint}: PostgreSQL
     * requests one right after. This standby is over then, the cluster is what has to be closed.
     * (PostgreSQL: StartupXLOG from FinishWalRecovery on.)
     */
    public Cluster promote() {
        requireOpen();
        Recovery recovery = directory.recovery();
        long start = System.nanoTime();
        over = true;
        try {
            recovery.promote();
        } catch (RuntimeException | Error e) {
            directory.close();
            throw e;
        }
        promotionNanos = System.nanoTime() - start;
        String end = recovery.endOfWal() == null ? null : recovery.endOfWal().detail();
        return new Cluster(
                directory,
                new Cluster.Report(
                        from,
                        recovery.replayedTo(),
                        recovery.records(),
                        0,
                        replayNanos,
                        promotionNanos,
                        end),
                options);
    }

    /**
     * Writes what was replayed, state "shut down in recovery": a standby can be opened again.
     * Nothing after a promotion.
     */
    @Override
    public void close() {
        if (over) {
            return;
        }
        over = true;
        try (OpenDirectory closing = directory) {
            closing.recovery().interrupt();
        }
    }
}
