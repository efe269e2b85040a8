package org.pgkernel.cluster;

import java.nio.file.Path;
import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStatistics;
import org.pgkernel.recovery.Recovery;

/**
 * A kernel over a data directory, in production: recovered from a crash, or a standby that was
 * promoted. Closing it writes a shutdown checkpoint, so that PostgreSQL 15 starts from the
 * directory with no redo of its own.
 *
 * <p>{@link #open} also starts the workers; backends may be opened then, by any thread. Opening and
 * closing are one thread's, and nobody uses the cluster or a backend of it while it is closed.
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
    private final ClusterOptions options;

    /** Null until it was started. */
    private Kernel kernel;

    private boolean closed;

    Cluster(OpenDirectory directory, Report report, ClusterOptions options) {
        this.directory = directory;
        this.report = report;
        this.options = options;
    }

    /**
     * Makes a new cluster, durable on return, shut down: {@link #open} it. A crash meanwhile leaves
     * a directory that is refused and can be removed.
     *
     * @param dataDirectory does not exist yet, or is empty
     */
    public static void create(Path dataDirectory, CreateOptions options) {
        ClusterCreation.create(dataDirectory.toAbsolutePath().normalize().toString(), options);
    }

    /**
     * Opens a directory that no server uses, recovers it if it was not shut down, and starts the
     * workers.
     *
     * @throws org.pgkernel.base.error.KernelException as {@link #openForCrashRecovery}
     */
    public static Cluster open(Path dataDirectory, ClusterOptions options) {
        Cluster cluster = openForCrashRecovery(dataDirectory, options);
        try {
            cluster.start();
            return cluster;
        } catch (RuntimeException | Error e) {
            cluster.abandon();
            throw e;
        }
    }

    /** Backends may be opened from now on. Nothing if it was started already. */
    public void start() {
        if (kernel == null) {
            kernel = Kernel.start(directory.recovery(), options);
        }
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
                            end),
                    options);
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
            return new Standby(directory, options);
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

    /** Opens a session in a cluster that was made by {@link #create}. Any thread. */
    public Backend newBackend() {
        return kernel().newBackend();
    }

    /**
     * Opens a session in a database of a cluster that PostgreSQL made. Any thread.
     *
     * @throws org.pgkernel.base.error.RefusedException when there is no such database
     */
    public Backend newBackend(String database) {
        return kernel().newBackend(database);
    }

    /**
     * One step of each worker, where {@link RunOptions.Workers#BY_HAND} leaves them to the caller.
     *
     * @return 0 when there was nothing to do
     */
    public int doWork() {
        return kernel().workers.doWork();
    }

    private Kernel kernel() {
        if (kernel == null || closed) {
            throw new IllegalStateException("the cluster is not started, or it is closed");
        }
        return kernel;
    }

    Kernel kernelForTests() {
        return kernel;
    }

    /** Writes an online checkpoint. @return nanoseconds it took */
    public long checkpoint() {
        long start = System.nanoTime();
        if (kernel == null) {
            directory.recovery().checkpoint();
        } else {
            kernel.checkpoint();
        }
        return System.nanoTime() - start;
    }

    /** Gives the directory up without a checkpoint, as a crash would; the lock file goes. */
    public void abandon() {
        if (!closed) {
            closed = true;
            try (OpenDirectory closing = directory) {
                if (kernel != null) {
                    kernel.abandon();
                }
            }
        }
    }

    /**
     * Writes the shutdown checkpoint, state "shut down", and gives the directory up. Twice is once.
     *
     * @throws org.pgkernel.base.error.KernelStoppedException when the kernel has stopped: nothing
     *     was written then, the directory is given up as by a crash
     */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try (OpenDirectory closing = directory) {
            if (kernel == null) {
                closing.recovery().shutdown();
            } else {
                kernel.shutdown();
            }
        }
    }
}
