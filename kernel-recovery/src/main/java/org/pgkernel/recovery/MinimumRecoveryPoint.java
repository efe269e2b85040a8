package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.bufmgr.DurabilityGate;

/**
 * What must be durable before a page is written or a file shrinks. While an archive or a standby's
 * WAL is replayed: the minimum recovery point in the control file, moved to the end of the record
 * being replayed, since a crash must replay at least that far before the data is consistent again.
 * In crash recovery: nothing, all WAL is replayed anyway. Afterwards: the WAL itself. Thread-safe.
 * (PostgreSQL: XLogFlush, UpdateMinRecoveryPoint, xlog.c.)
 */
final class MinimumRecoveryPoint implements DurabilityGate {
    private final ControlFileKeeper control;
    private final ReplayState state;

    /** What the control file has for sure; only grows. Written under this object's lock. */
    private volatile long known;

    private volatile boolean updates;

    /** What pages wait for once recovery is over; null until then. */
    private volatile DurabilityGate wal;

    MinimumRecoveryPoint(ControlFileKeeper control, ReplayState state) {
        this.control = control;
        this.state = state;
    }

    /** Archive recovery begins. */
    void startUpdating() {
        known = control.minRecoveryPoint();
        updates = true;
    }

    @Override
    public void beforeWrite(long pageLsn) {
        DurabilityGate after = wal;
        if (after != null) {
            after.beforeWrite(pageLsn);
        } else if (updates && Lsn.before(known, pageLsn)) {
            advance();
        }
    }

    @Override
    public boolean wouldFlush(long pageLsn) {
        DurabilityGate after = wal;
        return after != null ? after.wouldFlush(pageLsn) : updates && Lsn.before(known, pageLsn);
    }

    /**
     * Moves the point to the end of the record being replayed, not just to the page's LSN: fewer
     * writes, and a bogus LSN of a damaged page cannot set a point that no WAL reaches.
     */
    synchronized void advance() {
        if (updates) {
            control.advanceMinRecoveryPoint(state.replayEndLsn, state.replayEndTimeline);
            known = control.minRecoveryPoint();
        }
    }

    /** Recovery is over, pages wait for the WAL from now on; or for another one's. */
    synchronized void switchTo(DurabilityGate after) {
        updates = false;
        wal = after;
    }
}
