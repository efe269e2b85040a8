package org.pgkernel.cluster;

import java.nio.file.Path;
import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStatistics;
import org.pgkernel.recovery.Recovery;

/**
 * A kernel over a data directory, in production: recovered from a crash, or a standby that was
 * promoted. Closing it writes a shutdown checkpoint, so that PostgreSQL 15 starts from the
 * directory with no redo of its own. One thread.
 */
public final class Cluster implements AutoCloseable {
    /**
     * What opening did.
     *
     * @param redoFrom where replay began; equals {@code redoTo} after a clean shutdown
     * @param redoTo end of the last record applied
     * @param records applied
     * @param scanNanos opening, checks and the first reading of the WAL
     * @param redoNanos replay
     * @param checkpointNanos end of recovery, its checkpoint included
     * @param endOfWal why the WAL ends where it does, null when nothing was to be replayed
     */
    public record Report(
            long redoFrom,
            long redoTo,
            long records,
            long scanNanos,
            long redoNanos,
            long checkpointNanos,
            String endOfWal) {
        @Override
        public String toString() {
            return records + " records from " + Lsn.format(redoFrom) + " to " + Lsn.format(redoTo);
        }
    }

    private final OpenDirectory directory;
    private final Report report;
    private boolean closed;

    Cluster(OpenDirectory directory, Report report) {
        this.directory = directory;
        this.report = report;
    }

    /**
     * Looks whether {@link #openForCrashRecovery} would begin, and writes nothing: version, block
     * sizes, no live server, control file, WAL from the redo point on, every record type covered.
     *
     * @throws org.pgkernel.base.error.KernelException in one sentence, what is in the way
     */
    public static void check(Path dataDirectory, ClusterOptions options) {
        OpenDirectory.check(dataDirectory, Recovery.Mode.CRASH, options);
    }

    /**
     * Opens a directory that no server uses, crashed or cleanly shut down, and replays its WAL to
     * the end, on its own timeline; the state is "in production" on return. (PostgreSQL:
     * StartupXLOG without signal files.)
     *
     * @throws org.pgkernel.base.error.RefusedException when the directory cannot be opened, nothing
     *     was written then
     * @throws org.pgkernel.base.error.DamagedDataException when a page or record turned out damaged
     *     during redo: what came before it is applied, and the same call goes on there after a
     *     repair
     */
    public static Cluster openForCrashRecovery(Path dataDirectory, ClusterOptions options) {
        long start = System.nanoTime();
        OpenDirectory directory = OpenDirectory.open(dataDirectory, Recovery.Mode.CRASH, options);
        try {
            Recovery recovery = directory.recovery();
            long from = recovery.replayedTo();
            directory.begin();
            long scanned = System.nanoTime();
            if (recovery.needsRedo()) {
                recovery.replay(0);
            }
            long replayed = System.nanoTime();
            recovery.finishCrashRecovery();
            String end = recovery.endOfWal() == null ? null : recovery.endOfWal().detail();
            return new Cluster(
                    directory,
                    new Report(
                            from,
                            recovery.replayedTo(),
                            recovery.records(),
                            scanned - start,
                            replayed - scanned,
                            System.nanoTime() - replayed,
                            end));
        } catch (RuntimeException | Error e) {
            directory.close();
            throw e;
        }
    }

    /**
     * Opens a cold copy (state "shut down", or a standby's of ours or PostgreSQL's) as a standby
     * that replays the WAL in its {@code pg_wal}; nothing is replayed yet.
     */
    public static Standby openStandby(Path dataDirectory, ClusterOptions options) {
        OpenDirectory directory = OpenDirectory.open(dataDirectory, Recovery.Mode.STANDBY, options);
        try {
            directory.begin();
            return new Standby(directory);
        } catch (RuntimeException | Error e) {
            directory.close();
            throw e;
        }
    }

    /** What opening did; of a promoted standby, since it was opened. */
    public Report report() {
        return report;
    }

    public int timeline() {
        return directory.recovery().timeline();
    }

    public BufferPool pool() {
        return directory.recovery().pool();
    }

    public DropStatistics dropStatistics() {
        return pool().dropStatistics();
    }

    /** Writes an online checkpoint. @return nanoseconds it took */
    public long checkpoint() {
        long start = System.nanoTime();
        directory.recovery().checkpoint();
        return System.nanoTime() - start;
    }

    /** Gives the directory up without a checkpoint, as a crash would; the lock file goes. */
    public void abandon() {
        if (!closed) {
            closed = true;
            directory.close();
        }
    }

    /**
     * Writes the shutdown checkpoint, state "shut down", and gives the directory up. Twice is once.
     */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try (OpenDirectory closing = directory) {
            closing.recovery().shutdown();
        }
    }
}
