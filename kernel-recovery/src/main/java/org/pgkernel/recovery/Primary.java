package org.pgkernel.recovery;

import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.CheckpointSchedule;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalWriter;

/**
 * A cluster in production whose transactions write: WAL from many threads, online checkpoints
 * beside them. Pages wait for this WAL from now on, and hints are logged in it where the control
 * file asks for that. Made by {@link Recovery#startPrimary}, which owns it. Thread-safe but for
 * checkpoints, of which one runs at a time.
 */
public final class Primary implements AutoCloseable {
    private final WalInserter wal;
    private final CheckpointWal checkpointWal;
    private final CheckpointRun.Setting setting;
    private final RecoveryModules modules;
    private final Checkpoints checkpoints;

    private Primary(
            WalInserter wal,
            CheckpointRun.Setting setting,
            RecoveryModules modules,
            Checkpoints checkpoints) {
        this.wal = wal;
        this.setting = setting;
        this.modules = modules;
        this.checkpoints = checkpoints;
        checkpointWal = CheckpointWal.of(wal);
    }

    /**
     * @param end stands where the log goes on, flushed; to be closed after
     */
    static Primary start(
            PrimaryOptions options,
            WalWriter end,
            Disk disk,
            String walDirectory,
            CheckpointRun.Setting setting,
            BufferPool pool,
            RecoveryModules modules,
            Checkpoints checkpoints) {
        ControlFile control = checkpoints.control.snapshot();
        WalInserter wal =
                new WalInserter(
                        disk,
                        walDirectory,
                        setting.timeline(),
                        control.xlogSegSize(),
                        control.systemIdentifier(),
                        end.flushedLsn(),
                        end.lastRecord(),
                        0,
                        control.checkPointRedo(),
                        options.walBuffers());
        wal.fullPageWrites(setting.fullPageWrites());
        pool.hintImageLog(
                new HintImages(wal, checkpoints.delay, options.compression(), options.relations()));
        return new Primary(wal, setting, modules, checkpoints);
    }

    /** Tells the log when full_page_writes is not what it said last. (UpdateFullPageWrites) */
    void begin(boolean saidLast) {
        if (setting.fullPageWrites() != saidLast) {
            UnsafeBuffer on = new UnsafeBuffer(new byte[1]);
            on.putByte(0, (byte) (setting.fullPageWrites() ? 1 : 0));
            wal.flush(
                    wal.insert(
                            new WalRecordBuilder()
                                    .begin(RmgrIds.XLOG, XlogRedo.FPW_CHANGE, TransactionId.INVALID)
                                    .data(on, 0, 1)));
        }
    }

    public WalInserter wal() {
        return wal;
    }

    CheckpointWal checkpointWal() {
        return checkpointWal;
    }

    /** How writers hold a checkpoint back for a moment. */
    public CheckpointDelay checkpointDelay() {
        return checkpoints.delay;
    }

    /** The modules that took part in recovery, with what they know now. */
    public RecoveryModules modules() {
        return modules;
    }

    /** A copy of the control file's contents. */
    public ControlFile control() {
        return checkpoints.control.snapshot();
    }

    /**
     * An online checkpoint, to be driven by the caller, not beside another one.
     *
     * @param schedule its pace
     */
    public CheckpointRun beginCheckpoint(CheckpointSchedule schedule, NanoClock clock) {
        return new CheckpointRun(
                checkpoints, Checkpoints.Kind.ONLINE, checkpointWal, setting, schedule, clock);
    }

    /** By {@link Recovery}: frees the log's memory. What is not flushed is lost. */
    @Override
    public void close() {
        wal.close();
    }
}
