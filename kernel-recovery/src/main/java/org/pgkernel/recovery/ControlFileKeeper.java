package org.pgkernel.recovery;

import java.time.InstantSource;
import org.agrona.DirectBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.ControlFileStore;
import org.pgkernel.base.DbState;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;

/**
 * The control file's life through one recovery: each method is one transition, durable on return
 * unless it says otherwise. Thread-safe; {@link #advanceMinRecoveryPoint} allocates nothing.
 *
 * <pre>
 *  shut down | in production | …  →  in crash recovery    →  shutting down  →  shut down  →  in production
 *  shut down                      →  in archive recovery  →  in production  (→ shut down in recovery)
 * </pre>
 *
 * (PostgreSQL: UpdateControlFile and its callers, xlog.c.)
 */
final class ControlFileKeeper implements AutoCloseable {
    /** (PostgreSQL: FirstNormalUnloggedLSN.) */
    private static final long FIRST_NORMAL_UNLOGGED_LSN = 1000;

    private final ControlFileStore store;

    private ControlFileKeeper(ControlFileStore store) {
        this.store = store;
    }

    static ControlFileKeeper read(Disk disk, String dataDirectory, InstantSource clock) {
        return new ControlFileKeeper(ControlFileStore.open(disk, dataDirectory, clock, true));
    }

    ControlFile snapshot() {
        return store.snapshot();
    }

    /** The image in memory only: a restart begins at the same checkpoint with this counter. */
    void checkPointNextXid(long nextXid) {
        store.lock();
        try {
            CheckPointRecord.setNextXid(
                    store.current().image(), ControlFile.CHECK_POINT_COPY, nextXid);
        } finally {
            store.unlock();
        }
    }

    long minRecoveryPoint() {
        store.lock();
        try {
            return store.current().minRecoveryPoint();
        } finally {
            store.unlock();
        }
    }

    void beginCrashRecovery(DirectBuffer checkpoint) {
        store.update(
                c -> {
                    c.setState(DbState.IN_CRASH_RECOVERY);
                    c.setCheckPointCopy(checkpoint, 0);
                });
    }

    void beginArchiveRecovery(DirectBuffer checkpoint) {
        store.update(
                c -> {
                    c.setState(DbState.IN_ARCHIVE_RECOVERY);
                    c.setCheckPointCopy(checkpoint, 0);
                    raise(
                            c,
                            CheckPointRecord.redo(checkpoint, 0),
                            CheckPointRecord.thisTimeLineId(checkpoint, 0));
                });
    }

    /** Moves the point up, never down; writes only if it moves. */
    void advanceMinRecoveryPoint(long lsn, int timeline) {
        store.lock();
        try {
            if (raise(store.current(), lsn, timeline)) {
                store.write();
            }
        } finally {
            store.unlock();
        }
    }

    private static boolean raise(ControlFile c, long lsn, int timeline) {
        if (!Lsn.before(c.minRecoveryPoint(), lsn)) {
            return false;
        }
        c.setMinRecoveryPoint(lsn);
        c.setMinRecoveryPointTli(timeline);
        return true;
    }

    /**
     * What a PARAMETER_CHANGE record says; outside crash recovery the minimum recovery point moves
     * past it.
     */
    void parametersChanged(
            int connections,
            int workers,
            int walSenders,
            int prepared,
            int locks,
            int walLevel,
            boolean hints,
            boolean trackCommitTs,
            long endLsn,
            int timeline) {
        store.update(
                c -> {
                    c.setMaxConnections(connections);
                    c.setMaxWorkerProcesses(workers);
                    c.setMaxWalSenders(walSenders);
                    c.setMaxPreparedXacts(prepared);
                    c.setMaxLocksPerXact(locks);
                    c.setWalLevel(walLevel);
                    c.setWalLogHints(hints);
                    c.setTrackCommitTimestamp(trackCommitTs);
                    if (c.state() == DbState.IN_ARCHIVE_RECOVERY
                            && c.minRecoveryPoint() != Lsn.INVALID) {
                        raise(c, endLsn, timeline);
                    }
                });
    }

    void shuttingDown() {
        store.update(c -> c.setState(DbState.SHUTDOWNING));
    }

    /**
     * @param shutdown of a shutdown's type: nothing follows it yet
     * @param unloggedLsn the counter to keep
     */
    void checkpointWritten(long lsn, DirectBuffer checkpoint, boolean shutdown, long unloggedLsn) {
        store.update(
                c -> {
                    if (shutdown) {
                        c.setState(DbState.SHUTDOWNED);
                    }
                    c.setCheckPoint(lsn);
                    c.setCheckPointCopy(checkpoint, 0);
                    // Crash recovery replays all WAL: a point left over from a promotion must not
                    // be taken for enough.
                    c.setMinRecoveryPoint(Lsn.INVALID);
                    c.setMinRecoveryPointTli(0);
                    c.setUnloggedLsn(unloggedLsn);
                });
    }

    void endOfRecovery(long endLsn, int timeline) {
        store.update(
                c -> {
                    c.setMinRecoveryPoint(endLsn);
                    c.setMinRecoveryPointTli(timeline);
                });
    }

    void inProduction() {
        store.update(c -> c.setState(DbState.IN_PRODUCTION));
    }

    /** Recovery may start anew at this checkpoint of the primary. */
    void restartPoint(long lsn, long endLsn, DirectBuffer checkpoint) {
        store.update(
                c -> {
                    c.setCheckPoint(lsn);
                    c.setCheckPointCopy(checkpoint, 0);
                    raise(c, endLsn, CheckPointRecord.thisTimeLineId(checkpoint, 0));
                });
    }

    void shutDownInRecovery() {
        store.update(c -> c.setState(DbState.SHUTDOWNED_IN_RECOVERY));
    }

    /**
     * What the counter of unlogged relations' LSNs begins with: after a crash they are all made
     * anew.
     */
    static long startUnloggedLsn(ControlFile control) {
        return control.state() == DbState.SHUTDOWNED
                ? control.unloggedLsn()
                : FIRST_NORMAL_UNLOGGED_LSN;
    }

    @Override
    public void close() {
        store.close();
    }
}
