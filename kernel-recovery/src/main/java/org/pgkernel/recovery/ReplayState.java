package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;

/**
 * How far replay is and what it learnt on the way. Written by the replaying thread only; the
 * volatile fields may be read by any. (PostgreSQL: XLogRecoveryCtlData, xlogrecovery.c;
 * lastFullPageWrites, xlog.c.)
 */
final class ReplayState {
    /**
     * End of the record being replayed, set before it is applied: what a page written meanwhile
     * needs. (replayEndRecPtr)
     */
    volatile long replayEndLsn;

    volatile int replayEndTimeline;

    /** End of the last record that was applied wholly. (lastReplayedEndRecPtr) */
    volatile long lastReplayedEndLsn;

    /** Its start; {@link Lsn#INVALID} before the first. */
    long lastReplayedLsn;

    int lastReplayedTimeline;

    /** A missing page is an error from here on. (reachedConsistency) */
    boolean consistent;

    /**
     * Replay past this position makes the data consistent; {@link Lsn#INVALID} in crash recovery,
     * where only the end of WAL does.
     */
    long consistencyLsn;

    /** What the checkpoint and FPW_CHANGE records said last. */
    boolean fullPageWrites;

    /**
     * The newest checkpoint record from which recovery could start anew: its start, its end, its
     * redo point.
     */
    long safeCheckpointLsn;

    long safeCheckpointEndLsn;

    /** Its bytes, null before the first. */
    byte[] safeCheckpoint;

    /** Takes up the position from which replay starts. */
    void start(long lastLsn, long endLsn, int timeline) {
        lastReplayedLsn = lastLsn;
        lastReplayedEndLsn = endLsn;
        lastReplayedTimeline = timeline;
        replayEndLsn = endLsn;
        replayEndTimeline = timeline;
    }
}
