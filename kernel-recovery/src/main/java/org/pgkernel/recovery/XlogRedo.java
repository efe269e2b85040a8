package org.pgkernel.recovery;

import org.agrona.DirectBuffer;
import org.pgkernel.base.CheckPointRecord;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.wal.WalRecord;

/**
 * Checkpoints, counters, parameters, timeline ends, and page images that stand alone. (PostgreSQL:
 * xlog_redo, xlog.c; xlogrecovery_redo, xlogrecovery.c.)
 */
final class XlogRedo extends AbstractResourceManager {
    static final int CHECKPOINT_SHUTDOWN = 0x00;
    static final int CHECKPOINT_ONLINE = 0x10;
    static final int NOOP = 0x20;
    static final int NEXTOID = 0x30;
    static final int SWITCH = 0x40;
    static final int BACKUP_END = 0x50;
    static final int PARAMETER_CHANGE = 0x60;
    static final int RESTORE_POINT = 0x70;
    static final int FPW_CHANGE = 0x80;
    static final int END_OF_RECOVERY = 0x90;
    static final int FPI_FOR_HINT = 0xA0;
    static final int FPI = 0xB0;
    static final int OVERWRITE_CONTRECORD = 0xD0;

    /** xl_end_of_recovery: time 8, this timeline 4, previous timeline 4. */
    static final int END_OF_RECOVERY_LENGTH = 16;

    XlogRedo() {
        super(
                RmgrIds.XLOG,
                "CHECKPOINT_SHUTDOWN",
                "CHECKPOINT_ONLINE",
                "NOOP",
                "NEXTOID",
                "SWITCH",
                "BACKUP_END",
                "PARAMETER_CHANGE",
                "RESTORE_POINT",
                "FPW_CHANGE",
                "END_OF_RECOVERY",
                "FPI_FOR_HINT",
                "FPI",
                null,
                "OVERWRITE_CONTRECORD");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case CHECKPOINT_SHUTDOWN -> shutdownCheckpoint(record, context);
            case CHECKPOINT_ONLINE -> onlineCheckpoint(record, context);
            case NEXTOID -> {
                requireLength(record, 4);
                // Believed exactly: a maximum would be wrong once the counter has wrapped.
                context.counters().nextOid(record.data().getInt(0));
            }
            case PARAMETER_CHANGE -> parameterChange(record, context);
            case FPW_CHANGE -> {
                requireLength(record, 1);
                context.state().fullPageWrites = record.data().getByte(0) != 0;
            }
            case END_OF_RECOVERY -> {
                requireLength(record, END_OF_RECOVERY_LENGTH);
                requireTimeline(record, record.data().getInt(8), context);
            }
            case FPI, FPI_FOR_HINT -> images(record, context);
            // The reader has checked an overwritten record's LSN; a base backup's end matters to
            // backups only, which are refused.
            case NOOP, SWITCH, BACKUP_END, RESTORE_POINT, OVERWRITE_CONTRECORD -> {}
            default -> throw unknown(record);
        }
    }

    /** Nothing ran at a shutdown: its counters are exact. */
    private void shutdownCheckpoint(WalRecord record, RedoContext context) {
        requireLength(record, CheckPointRecord.SIZE);
        DirectBuffer body = record.data();
        RecoveredCounters counters = context.counters();
        counters.nextFullXid(CheckPointRecord.nextXid(body, 0));
        counters.nextOid(CheckPointRecord.nextOid(body, 0));
        counters.nextMulti(
                CheckPointRecord.nextMulti(body, 0), CheckPointRecord.nextMultiOffset(body, 0));
        advanceOldestMulti(body, counters);
        counters.oldestXid(
                CheckPointRecord.oldestXid(body, 0), CheckPointRecord.oldestXidDb(body, 0));
        afterCheckpoint(record, body, context);
    }

    /**
     * An online checkpoint's counters were read while others moved them on: the xid is a minimum,
     * and the object id is ignored, because a NEXTOID record before this one may already have gone
     * further (R04).
     */
    private void onlineCheckpoint(WalRecord record, RedoContext context) {
        requireLength(record, CheckPointRecord.SIZE);
        DirectBuffer body = record.data();
        RecoveredCounters counters = context.counters();
        long nextXid = CheckPointRecord.nextXid(body, 0);
        if (Long.compareUnsigned(counters.nextFullXid(), nextXid) < 0) {
            counters.nextFullXid(nextXid);
        }
        counters.advanceNextMulti(
                CheckPointRecord.nextMulti(body, 0), CheckPointRecord.nextMultiOffset(body, 0));
        advanceOldestMulti(body, counters);
        if (TransactionId.precedes(counters.oldestXid(), CheckPointRecord.oldestXid(body, 0))) {
            counters.oldestXid(
                    CheckPointRecord.oldestXid(body, 0), CheckPointRecord.oldestXidDb(body, 0));
        }
        afterCheckpoint(record, body, context);
    }

    /** (PostgreSQL: MultiXactAdvanceOldest.) */
    private static void advanceOldestMulti(DirectBuffer body, RecoveredCounters counters) {
        int oldest = CheckPointRecord.oldestMulti(body, 0);
        // Multixact ids are ordered modulo 2^32 without special ids.
        if (counters.oldestMulti() - oldest < 0) {
            counters.oldestMulti(oldest, CheckPointRecord.oldestMultiDb(body, 0));
        }
    }

    private static void afterCheckpoint(WalRecord record, DirectBuffer body, RedoContext context) {
        requireTimeline(record, CheckPointRecord.thisTimeLineId(body, 0), context);
        if (context.control() != null) {
            context.control().checkPointNextXid(CheckPointRecord.nextXid(body, 0));
        }
        ReplayState state = context.state();
        // A restart from here would not see what made the entries: then they could never be
        // checked. (C26)
        if (context.missingPages() > 0) {
            return;
        }
        if (state.safeCheckpoint == null) {
            state.safeCheckpoint = new byte[CheckPointRecord.SIZE];
        }
        body.getBytes(0, state.safeCheckpoint);
        state.safeCheckpointLsn = record.lsn();
        state.safeCheckpointEndLsn = record.endLsn();
    }

    private static void requireTimeline(WalRecord record, int timeline, RedoContext context) {
        int replayed = context.state().replayEndTimeline;
        // 0: a standalone context does not follow timelines.
        if (replayed != 0 && timeline != replayed) {
            throw new DamagedDataException(
                    "an XLOG record is of timeline "
                            + Integer.toUnsignedString(timeline)
                            + " where replay is on "
                            + Integer.toUnsignedString(replayed)
                            + ": info="
                            + record.info()
                            + " lsn="
                            + Lsn.format(record.lsn()));
        }
    }

    private static void images(WalRecord record, RedoContext context) {
        RedoBuffer buffer = context.buffer(0);
        for (int id = 0; id <= record.maxBlockId(); id++) {
            if (!record.hasBlock(id) || !record.hasImage(id)) {
                if (record.type() == FPI) {
                    throw new DamagedDataException(
                            "XLOG/FPI record without an image: " + context.place(record, id));
                }
                // full_page_writes was off when the hint was logged.
                continue;
            }
            if (context.read(record, id, buffer) != RedoAction.RESTORED) {
                buffer.release();
                throw new DamagedDataException(
                        "the image of an XLOG record is not meant to be restored: "
                                + context.place(record, id));
            }
            buffer.release();
        }
    }

    /**
     *
     *
     * <pre>
     *  0 max_connections | 4 max_worker_processes | 8 max_wal_senders | 12 max_prepared_transactions | 16 max_locks_per_transaction
     *  20 wal_level | 24 wal_log_hints 1 | 25 track_commit_timestamp 1
     * </pre>
     */
    private void parameterChange(WalRecord record, RedoContext context) {
        requireLength(record, 26);
        DirectBuffer data = record.data();
        boolean track = data.getByte(25) != 0;
        if (context.state().consistencyLsn != Lsn.INVALID
                && data.getInt(20) < ControlFile.WAL_LEVEL_REPLICA) {
            throw new RefusedException(
                    "from here on the WAL was written with wal_level minimal, which leaves out changes that a standby needs: lsn="
                            + Lsn.format(record.lsn()));
        }
        context.counters().trackCommitTimestamp(track);
        if (context.control() != null) {
            context.control()
                    .parametersChanged(
                            data.getInt(0),
                            data.getInt(4),
                            data.getInt(8),
                            data.getInt(12),
                            data.getInt(16),
                            data.getInt(20),
                            data.getByte(24) != 0,
                            track,
                            record.endLsn(),
                            context.state().replayEndTimeline);
        }
    }
}
