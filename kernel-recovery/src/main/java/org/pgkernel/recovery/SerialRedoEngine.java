package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.EndOfWal;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * Reads a record, applies it, reads the next: the reference that every other engine must equal.
 * Allocates nothing per record. (PostgreSQL: PerformWalRecovery, ApplyWalRecord, xlogrecovery.c.)
 */
public final class SerialRedoEngine implements RedoEngine {
    /** Records between two calls of the listener. */
    static final int PROGRESS_INTERVAL = 4096;

    private final WalReader reader;
    private final RecoveryModules modules;
    private final RedoContext context;
    private final ReplayListener listener;
    private final TimelineSwitch timelineSwitch;
    private long startLsn;
    private long records;

    /**
     * @param reader positioned at the first record to apply
     */
    SerialRedoEngine(
            WalReader reader,
            RecoveryModules modules,
            RedoContext context,
            TimelineSwitch timelineSwitch,
            ReplayListener listener) {
        this.reader = reader;
        this.modules = modules;
        this.context = context;
        this.timelineSwitch = timelineSwitch;
        this.listener = listener;
        this.startLsn = context.state().lastReplayedEndLsn;
    }

    @Override
    public Outcome replay(long stopLsn) {
        reader.stopAt(stopLsn);
        try {
            WalRecord record;
            while ((record = reader.next()) != null) {
                apply(record);
                if ((++records & PROGRESS_INTERVAL - 1) == 0) {
                    report();
                }
            }
        } finally {
            report();
        }
        return reader.end().reason() == EndOfWal.Reason.STOP_POSITION
                ? Outcome.STOPPED
                : Outcome.END_OF_WAL;
    }

    @Override
    public long records() {
        return records;
    }

    private void report() {
        long lsn = context.state().lastReplayedEndLsn;
        listener.progress(lsn, lsn - startLsn, records);
    }

    private void apply(WalRecord record) {
        ReplayState state = context.state();
        int rmid = record.rmid();
        ResourceManager manager = modules.manager(rmid);
        if (manager == null || !manager.covers(record.info())) {
            throw new DamagedDataException(
                    "redo of "
                            + modules.identify(rmid, record.info())
                            + " records is not covered: lsn="
                            + Lsn.format(record.lsn()));
        }
        int xid = record.xid();
        if (xid != TransactionId.INVALID) {
            context.counters().advancePastXid(xid);
        }
        int timeline = state.lastReplayedTimeline;
        if (rmid == RmgrIds.XLOG) {
            timeline = timelineSwitch.timelineAfter(record, timeline);
        }
        // Set before the record is applied: a page written meanwhile makes this the minimum
        // recovery point.
        state.replayEndTimeline = timeline;
        state.replayEndLsn = record.endLsn();
        try {
            manager.redo(record, context);
        } catch (DamagedDataException e) {
            // A page's damage is found by the pool, which knows the page but not the record.
            throw e.getMessage().contains("lsn=")
                    ? e
                    : new DamagedDataException(
                            e.getMessage() + " lsn=" + Lsn.format(record.lsn()), e);
        } catch (IndexOutOfBoundsException e) {
            // Offsets and lengths of a record or page that contradict each other; the checks of the
            // buffers stopped the access.
            throw new DamagedDataException(
                    "a "
                            + modules.identify(rmid, record.info())
                            + " record does not fit the page it changes: "
                            + context.place(record, 0),
                    e);
        }
        assert context.holdsNothing()
                : "buffer left held by redo of "
                        + modules.identify(rmid, record.info())
                        + " at "
                        + Lsn.format(record.lsn());
        state.lastReplayedLsn = record.lsn();
        state.lastReplayedEndLsn = record.endLsn();
        if (!state.consistent) {
            context.checkConsistency();
        }
        if (timeline != state.lastReplayedTimeline) {
            state.lastReplayedTimeline = timeline;
            timelineSwitch.switched(record.endLsn(), timeline);
        }
    }
}
