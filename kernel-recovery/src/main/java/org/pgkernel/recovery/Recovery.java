package org.pgkernel.recovery;

import java.util.List;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.DbState;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.wal.EndOfWal;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalWriter;

/**
 * One recovery of one data directory, from its control file to the state "in production", and the
 * checkpoints after.
 *
 * <p>The steps, each called once and in this order: {@link #open} reads and scans, writing nothing;
 * {@link #begin} writes the state "in recovery"; {@link #replay}; then {@link #finishCrashRecovery}
 * or {@link #promote}; {@link #checkpoint} at will; {@link #shutdown} or, before the end of
 * recovery, {@link #interrupt}. One thread. (PostgreSQL: StartupXLOG, xlog.c; InitWalRecovery,
 * PerformWalRecovery, xlogrecovery.c.)
 */
public final class Recovery implements AutoCloseable {
    /** What ends it. */
    public enum Mode {
        /** The end of the local WAL, on its own timeline. */
        CRASH,
        /** A promotion, which begins a new timeline. */
        STANDBY
    }

    private final Disk disk;
    private final String walDirectory;
    private final Mode mode;
    private final RecoveryOptions options;
    private final ControlFileKeeper control;

    /** The control file as it was found. */
    private final ControlFile found;

    private final ReplayState state = new ReplayState();
    private final MinimumRecoveryPoint gate;
    private final TimelineHistory history;
    private final StorageManager smgr;
    private final BufferPool pool;
    private final RecoveryModules modules;
    private final RedoContext context;
    private final Checkpoints checkpoints;
    private final WalReader reader;
    private final UnsafeBuffer startCheckpoint = new UnsafeBuffer(new byte[CheckPointRecord.SIZE]);
    private long startCheckpointEnd;
    private boolean needsRedo;
    private WalScan.Result scan;
    private SerialRedoEngine engine;
    private EndOfWal endOfWal;

    /** Since the end of redo. For the tests too. */
    WalWriter writer;

    /** What is written to after redo: the writer, then a primary's inserter. */
    private CheckpointWal wal;

    private Primary primary;
    private int timeline;
    private boolean fullPageWrites;

    /** Takes over the control file and the pool also when it throws. */
    private Recovery(
            Disk disk,
            String dataDirectory,
            Mode mode,
            RecoveryOptions options,
            List<RecoveryModuleProvider> providers,
            ControlFileKeeper control) {
        this.disk = disk;
        this.mode = mode;
        this.options = options;
        this.control = control;
        walDirectory = dataDirectory + "/pg_wal";
        found = control.snapshot();
        // A standby promoted and not checkpointed yet has its newest timeline in the minimum
        // recovery point only.
        int checkpointTimeline = found.checkPointThisTimeLineId();
        int minimumTimeline = found.minRecoveryPointTli();
        history =
                TimelineHistory.read(
                        disk,
                        walDirectory,
                        Integer.compareUnsigned(minimumTimeline, checkpointTimeline) > 0
                                ? minimumTimeline
                                : checkpointTimeline);
        gate = new MinimumRecoveryPoint(control, state);
        smgr =
                new StorageManager(
                        disk,
                        dataDirectory,
                        StorageManager.SEGMENT_BLOCKS,
                        options.sizePolicy(),
                        new SyncRequests(disk, dataDirectory));
        smgr.inRecovery(true);
        pool =
                BufferPool.open(
                        BufferPoolOptions.of(options.sharedBuffers())
                                .withChecksums(found.checksumsEnabled())
                                .withStrategy(options.dropStrategy())
                                .withLookupDivisor(options.lookupDivisor()),
                        smgr,
                        gate);
        try {
            pool.hintsAreLogged(found.checksumsEnabled() || found.walLogHints());
            RecoveryEnvironment environment =
                    new RecoveryEnvironment(
                            disk, dataDirectory, smgr, pool, options.fsmThreshold());
            modules =
                    providers == null
                            ? RecoveryModules.load(environment)
                            : RecoveryModules.of(providers, environment);
        } catch (RuntimeException e) {
            pool.close();
            throw e;
        }
        context =
                new RedoContext(
                        pool, modules.counters(), gate, state, new MissingPageTable(), control);
        checkpoints =
                new Checkpoints(
                        modules.participants(),
                        pool,
                        modules.counters(),
                        control,
                        ControlFileKeeper.startUnloggedLsn(found),
                        options.clock());
        reader = newReader();
    }

    /**
     * Reads the control file, the checkpoint it points to, and all WAL from there on. Writes
     * nothing.
     *
     * @param dataDirectory absolute
     * @throws RefusedException when a file or the WAL is missing, or the WAL holds a record that
     *     redo does not cover
     */
    public static Recovery open(
            Disk disk, String dataDirectory, Mode mode, RecoveryOptions options) {
        return open(disk, dataDirectory, mode, options, null);
    }

    /** The same with modules given by hand; null finds them. */
    static Recovery open(
            Disk disk,
            String dataDirectory,
            Mode mode,
            RecoveryOptions options,
            List<RecoveryModuleProvider> providers) {
        ControlFileKeeper control = ControlFileKeeper.read(disk, dataDirectory, options.clock());
        Recovery recovery;
        try {
            recovery = new Recovery(disk, dataDirectory, mode, options, providers, control);
        } catch (RuntimeException e) {
            control.close();
            throw e;
        }
        try {
            recovery.readCheckpoint();
            recovery.scanWal();
            recovery.startCounters();
            recovery.modules.beforeRedo(recovery.context);
            return recovery;
        } catch (RuntimeException e) {
            recovery.close();
            throw e;
        }
    }

    private WalReader newReader() {
        return new WalReader(
                disk, walDirectory, history, found.xlogSegSize(), found.systemIdentifier());
    }

    /** (PostgreSQL: ReadCheckpointRecord, and the checks after it in InitWalRecovery.) */
    private void readCheckpoint() {
        long at = found.checkPoint();
        reader.begin(at);
        WalRecord record = reader.next();
        if (record == null) {
            throw new RefusedException(
                    "the checkpoint that the control file points to cannot be read from the WAL, "
                            + reader.end().detail()
                            + ": file="
                            + walDirectory
                            + " lsn="
                            + Lsn.format(at));
        }
        boolean isShutdown = record.type() == XlogRedo.CHECKPOINT_SHUTDOWN;
        if (record.rmid() != RmgrIds.XLOG
                || !isShutdown && record.type() != XlogRedo.CHECKPOINT_ONLINE
                || record.dataLength() != CheckPointRecord.SIZE) {
            throw new RefusedException(
                    "the control file points to a WAL record that is no checkpoint: file="
                            + walDirectory
                            + " lsn="
                            + Lsn.format(at));
        }
        startCheckpoint.putBytes(0, record.data(), 0, CheckPointRecord.SIZE);
        startCheckpointEnd = record.endLsn();
        long redo = CheckPointRecord.redo(startCheckpoint, 0);
        if (Lsn.before(at, redo) || isShutdown && redo != at) {
            throw new DamagedDataException(
                    "the checkpoint's redo point "
                            + Lsn.format(redo)
                            + " cannot be: lsn="
                            + Lsn.format(at));
        }
        if (!TransactionId.isNormal(
                TransactionId.xidOf(CheckPointRecord.nextXid(startCheckpoint, 0)))) {
            throw new DamagedDataException(
                    "the checkpoint's next transaction id is invalid: lsn=" + Lsn.format(at));
        }
        int of = CheckPointRecord.thisTimeLineId(startCheckpoint, 0);
        if (history.timelineAt(at) != of) {
            throw new RefusedException(
                    "the checkpoint is on timeline "
                            + Integer.toUnsignedString(of)
                            + ", which is not in the history of timeline "
                            + Integer.toUnsignedString(history.newest())
                            + ": lsn="
                            + Lsn.format(at));
        }
        checkMinimumRecoveryPoint();
        needsRedo = redo != at || found.state() != DbState.SHUTDOWNED || mode == Mode.STANDBY;
    }

    /**
     * What recovery has to reach must lie on the way. (PostgreSQL: InitWalRecovery,
     * CheckRequiredParameterValues.)
     */
    private void checkMinimumRecoveryPoint() {
        long minimum = found.minRecoveryPoint();
        if (minimum != Lsn.INVALID
                && history.timelineAt(minimum - 1) != found.minRecoveryPointTli()) {
            throw new RefusedException(
                    "the history of timeline "
                            + Integer.toUnsignedString(history.newest())
                            + " does not contain the minimum recovery point on timeline "
                            + Integer.toUnsignedString(found.minRecoveryPointTli())
                            + ": lsn="
                            + Lsn.format(minimum));
        }
        if (mode == Mode.STANDBY && found.walLevel() < ControlFile.WAL_LEVEL_REPLICA) {
            throw new RefusedException(
                    "the WAL was written with wal_level minimal, which leaves out changes that a standby needs: file="
                            + ControlFile.path(smgr.dataDirectory()));
        }
    }

    /**
     * Positions the reader at the first record to replay, scans to the end of WAL, and positions it
     * there again.
     */
    private void scanWal() {
        if (!needsRedo) {
            return;
        }
        long first = firstRecord();
        try (WalReader scanner = newReader()) {
            scanner.begin(first);
            scan = WalScan.scan(scanner, modules);
        }
        if (scan.records() == 0 && first != startCheckpointEnd) {
            throw new RefusedException(
                    "the WAL from the redo point on is missing, "
                            + scan.end().detail()
                            + ": file="
                            + walDirectory
                            + " lsn="
                            + Lsn.format(first));
        }
        if (scan.records() > 0 && Lsn.before(scan.endOfLastRecord(), startCheckpointEnd)) {
            throw new RefusedException(
                    "the WAL between the redo point and its checkpoint is damaged, "
                            + scan.end().detail()
                            + ": file="
                            + walDirectory);
        }
        reader.begin(first);
        if (first == startCheckpointEnd) {
            // Read again, so that the first record's link to the checkpoint is checked.
            reader.begin(found.checkPoint());
            reader.next();
        }
    }

    private long firstRecord() {
        long redo = CheckPointRecord.redo(startCheckpoint, 0);
        return redo == found.checkPoint() ? startCheckpointEnd : redo;
    }

    private void startCounters() {
        DirectBuffer body = startCheckpoint;
        RecoveredCounters counters = modules.counters();
        counters.nextFullXid(CheckPointRecord.nextXid(body, 0));
        counters.nextOid(CheckPointRecord.nextOid(body, 0));
        counters.nextMulti(
                CheckPointRecord.nextMulti(body, 0), CheckPointRecord.nextMultiOffset(body, 0));
        counters.oldestXid(
                CheckPointRecord.oldestXid(body, 0), CheckPointRecord.oldestXidDb(body, 0));
        counters.oldestMulti(
                CheckPointRecord.oldestMulti(body, 0), CheckPointRecord.oldestMultiDb(body, 0));
        counters.commitTsXids(
                CheckPointRecord.oldestCommitTsXid(body, 0),
                CheckPointRecord.newestCommitTsXid(body, 0));
        counters.trackCommitTimestamp(found.trackCommitTimestamp());
        state.fullPageWrites = CheckPointRecord.fullPageWrites(body, 0);
        timeline = CheckPointRecord.thisTimeLineId(body, 0);
        boolean fromCheckpoint = firstRecord() == startCheckpointEnd;
        state.start(fromCheckpoint ? found.checkPoint() : Lsn.INVALID, firstRecord(), timeline);
    }

    /** The state in which the control file was found. */
    public DbState foundState() {
        return found.state();
    }

    /**
     * Reads the control file once more. The caller has taken the directory's lock meanwhile: a
     * server that came and went while the WAL was scanned has moved it on, and what was found
     * before is no longer so.
     *
     * @throws RefusedException when it is not what {@link #open} found
     */
    public void requireUnchanged() {
        if (!ControlFile.read(disk, smgr.dataDirectory())
                .describeDifferences(found, false)
                .isEmpty()) {
            throw new RefusedException(
                    "the control file changed while the WAL was read, so another process has used the directory: file="
                            + smgr.dataDirectory());
        }
    }

    /** False when the cluster was shut down cleanly: nothing is to be replayed. */
    public boolean needsRedo() {
        return needsRedo;
    }

    /** What the scan found; null when nothing is to be replayed. */
    public WalScan.Result scan() {
        return scan;
    }

    /**
     * Records the state "in recovery", and clears what a crash leaves of unlogged relations. From
     * here on the directory changes.
     */
    public void begin() {
        if (!needsRedo) {
            return;
        }
        if (mode == Mode.STANDBY) {
            control.beginArchiveRecovery(startCheckpoint);
            gate.startUpdating();
            state.consistencyLsn = control.minRecoveryPoint();
        } else {
            control.beginCrashRecovery(startCheckpoint);
        }
        UnloggedRelations.cleanUp(disk, smgr.dataDirectory());
        TimelineSwitch timelineSwitch =
                new TimelineSwitch(history, disk, walDirectory, found.xlogSegSize());
        engine = new SerialRedoEngine(reader, modules, context, timelineSwitch, options.listener());
        context.checkConsistency();
    }

    /**
     * Replays up to the first record that begins at or after {@code stopLsn}, 0 for all there is.
     *
     * @throws DamagedDataException when a record or a page is damaged: what was replayed before it
     *     is on disk, the control file still says "in recovery" from the same checkpoint, and this
     *     object can only be closed
     */
    public RedoEngine.Outcome replay(long stopLsn) {
        try {
            RedoEngine.Outcome outcome = engine.replay(stopLsn);
            endOfWal = reader.end();
            return outcome;
        } catch (DamagedDataException e) {
            try {
                context.abandonHeldBuffers();
                checkpoints.flushEverything(CheckPointRecord.redo(startCheckpoint, 0));
            } catch (RuntimeException whileFlushing) {
                // The disk keeps what it had: a rerun begins at the same checkpoint and needs none
                // of this.
                e.addSuppressed(whileFlushing);
            }
            throw e;
        }
    }

    /** End of the last record applied. */
    public long replayedTo() {
        return state.lastReplayedEndLsn;
    }

    /** Records applied. */
    public long records() {
        return engine == null ? 0 : engine.records();
    }

    /** Why replay stopped last. */
    public EndOfWal endOfWal() {
        return endOfWal;
    }

    /**
     * Continues the timeline where the WAL ends and writes the end-of-recovery checkpoint; the
     * cluster is in production on return.
     */
    public void finishCrashRecovery() {
        assert mode == Mode.CRASH : "a standby is promoted";
        // A record that lost its second half stays; what is written next says so.
        long aborted = needsRedo ? reader.abortedRecord() : Lsn.INVALID;
        long missing = needsRedo ? reader.missingContinuation() : Lsn.INVALID;
        long end = state.lastReplayedEndLsn;
        if (needsRedo) {
            context.checkMissingPages();
            UnloggedRelations.initialize(disk, smgr.dataDirectory());
        }
        timeline = state.lastReplayedTimeline;
        long start = missing == Lsn.INVALID ? end : missing;
        startWriting(
                new WalWriter(
                        disk,
                        walDirectory,
                        timeline,
                        found.xlogSegSize(),
                        found.systemIdentifier(),
                        start,
                        lastRecord(),
                        missing));
        if (missing != Lsn.INVALID) {
            EndOfRecoveryRecords.overwriteContrecord(writer, aborted, options.clock());
        }
        if (needsRedo) {
            checkpoints.write(Checkpoints.Kind.END_OF_RECOVERY, wal, setting());
        }
        modules.afterRecovery(context);
        control.inProduction();
    }

    private long lastRecord() {
        return state.lastReplayedLsn == Lsn.INVALID ? found.checkPoint() : state.lastReplayedLsn;
    }

    /**
     * Ends a standby: begins the next free timeline at the end of the last record applied. The
     * history file, which makes the timeline known to others, is written after everything that can
     * still fail. In production on return; a checkpoint should follow. (R19, R20)
     *
     * @return the new timeline
     */
    public int promote() {
        assert mode == Mode.STANDBY : "crash recovery stays on its timeline";
        long end = state.lastReplayedEndLsn;
        int oldTimeline = state.lastReplayedTimeline;
        if (Lsn.before(end, control.minRecoveryPoint())) {
            throw new RefusedException(
                    "the WAL ends before the minimum recovery point "
                            + Lsn.format(control.minRecoveryPoint())
                            + ": lsn="
                            + Lsn.format(end));
        }
        context.checkMissingPages();
        UnloggedRelations.initialize(disk, smgr.dataDirectory());
        int newTimeline = TimelineHistory.nextFree(disk, walDirectory, history.newest());
        assert oldTimeline == history.newest() : "the minimum recovery point is on the newest";
        gate.advance();
        WalWriter.copySegmentForNewTimeline(
                disk, walDirectory, oldTimeline, newTimeline, end, found.xlogSegSize());
        removeSignalFiles();
        history.write(disk, walDirectory, newTimeline, end, "no recovery target specified");
        timeline = newTimeline;
        startWriting(
                new WalWriter(
                        disk,
                        walDirectory,
                        newTimeline,
                        found.xlogSegSize(),
                        found.systemIdentifier(),
                        end,
                        lastRecord(),
                        Lsn.INVALID));
        control.endOfRecovery(
                EndOfRecoveryRecords.endOfRecovery(
                        writer, newTimeline, oldTimeline, options.clock()),
                newTimeline);
        TimelineSwitch.removeForeignSegments(
                disk, walDirectory, end, newTimeline, found.xlogSegSize());
        modules.afterRecovery(context);
        control.inProduction();
        return newTimeline;
    }

    private void removeSignalFiles() {
        boolean removed = disk.unlink(smgr.dataDirectory() + "/standby.signal");
        removed |= disk.unlink(smgr.dataDirectory() + "/recovery.signal");
        if (removed) {
            disk.syncDirectory(smgr.dataDirectory());
        }
    }

    private void startWriting(WalWriter newWriter) {
        writer = newWriter;
        wal = CheckpointWal.of(writer);
        smgr.inRecovery(false);
        modules.afterRedo(context);
        gate.switchTo(wal);
        fullPageWrites =
                options.fullPageWrites() == null ? state.fullPageWrites : options.fullPageWrites();
    }

    /**
     * Transactions may run from now on: many threads insert WAL, beginning where the last record
     * ended. Only in production, once.
     */
    public Primary startPrimary(PrimaryOptions primaryOptions) {
        writer.flush();
        primary =
                Primary.start(
                        primaryOptions,
                        writer,
                        disk,
                        walDirectory,
                        setting(),
                        pool,
                        modules,
                        checkpoints);
        writer.close();
        writer = null;
        wal = primary.checkpointWal();
        gate.switchTo(wal);
        primary.begin(state.fullPageWrites);
        return primary;
    }

    private CheckpointRun.Setting setting() {
        return new CheckpointRun.Setting(timeline, timeline, fullPageWrites);
    }

    /** An online checkpoint. Only in production. */
    public void checkpoint() {
        checkpoints.write(Checkpoints.Kind.ONLINE, wal, setting());
    }

    /** The shutdown checkpoint and the state "shut down". Only in production. */
    public void shutdown() {
        checkpoints.write(Checkpoints.Kind.SHUTDOWN, wal, setting());
    }

    /**
     * Stops a standby so that it can be opened again: everything replayed is on disk, state "shut
     * down in recovery".
     */
    public void interrupt() {
        assert mode == Mode.STANDBY && wal == null : "only a standby that was not promoted";
        checkpoints.shutdownRestartPoint(state, gate);
    }

    public BufferPool pool() {
        return pool;
    }

    public int timeline() {
        return timeline;
    }

    public RedoContext context() {
        return context;
    }

    /** Gives up memory and files, whatever fails meanwhile; writes nothing. */
    @Override
    public void close() {
        try (control;
                smgr;
                pool;
                modules;
                reader;
                AutoCloseable log = primary == null ? writer : primary) {
            // Closed from the last to the first.
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
