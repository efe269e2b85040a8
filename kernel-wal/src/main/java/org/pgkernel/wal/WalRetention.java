package org.pgkernel.wal;

import java.util.function.LongSupplier;

/**
 * How much WAL stays: removes and recycles segments after each checkpoint, and tells how much WAL
 * may be written before the next one must begin.
 *
 * <pre>
 *   oldest kept                  redo point   end        last recycled
 *   |-- keepSize, others' needs --|------------|-----------|
 *                                 |--- at least minSize ---|        in segments, from the redo point
 *                                 |------- at most maxSize ------------|
 * </pre>
 *
 * A removed segment becomes a future one as long as the next checkpoint is expected to need it: the
 * distance between two checkpoints is estimated by the longest lately seen, which sinks slowly. One
 * thread, the checkpointer. (PostgreSQL: RemoveOldXlogFiles, XLOGfileslop, KeepLogSeg,
 * UpdateCheckPointDistanceEstimate, CalculateCheckpointSegments, xlog.c.)
 */
public final class WalRetention {
    /**
     * PostgreSQL's settings of these names.
     *
     * @param minSize bytes, below which segments are recycled and not removed (min_wal_size)
     * @param maxSize bytes that the WAL should stay below (max_wal_size); what is needed is kept
     *     nevertheless
     * @param keepSize bytes kept behind the end in any case, for standbys (wal_keep_size)
     * @param recycle whether old segments become future ones (wal_recycle)
     * @param completionTarget part of the time between two checkpoints that one takes
     *     (checkpoint_completion_target)
     */
    public record Settings(
            long minSize, long maxSize, long keepSize, boolean recycle, double completionTarget) {
        /** PostgreSQL 15's defaults. */
        public static final Settings DEFAULT = new Settings(80L << 20, 1L << 30, 0, true, 0.9);
    }

    /** What a removal did, in segments. */
    public record Removal(int removed, int recycled) {}

    private static final double MARGIN = 1.1;

    /** Part that an estimate keeps when the last distance was shorter. */
    private static final double SINKS = 0.9;

    private final WalInserter wal;
    private final Settings settings;
    private final LongSupplier neededFrom;

    /** Bytes of WAL between two checkpoints. */
    private double distance;

    /** 0 before the first removal. */
    private long lastRedo;

    public WalRetention(WalInserter wal, Settings settings) {
        this(wal, settings, () -> Long.MAX_VALUE);
    }

    /**
     * @param neededFrom lowest LSN that somebody else, a standby or a backup, has yet to read;
     *     Long.MAX_VALUE when there is none
     */
    public WalRetention(WalInserter wal, Settings settings, LongSupplier neededFrom) {
        this.wal = wal;
        this.settings = settings;
        this.neededFrom = neededFrom;
    }

    /**
     * Removes what no recovery needs. Durable on return.
     *
     * @param redoLsn redo point of a checkpoint that the control file names already
     * @throws org.pgkernel.base.error.DiskException a file could not be removed or renamed; the
     *     next checkpoint tries again
     */
    public Removal removeOldSegments(long redoLsn) {
        if (lastRedo != 0) {
            double latest = redoLsn - lastRedo;
            distance = distance < latest ? latest : SINKS * distance + (1 - SINKS) * latest;
        }
        lastRedo = redoLsn;
        long end = wal.insertLsn();
        return wal.segments().remove(keepFrom(redoLsn, end), end, lastToRecycle(redoLsn));
    }

    /** Bytes of WAL after which a checkpoint should begin, so that the WAL stays below maxSize. */
    public long checkpointDistance() {
        int segmentSize = wal.segmentSize();
        double segments = settings.maxSize / segmentSize / (1 + settings.completionTarget);
        return Math.max(1, (long) segments) * segmentSize;
    }

    /** First segment that stays. (PostgreSQL: KeepLogSeg.) */
    private long keepFrom(long redoLsn, long end) {
        int size = wal.segmentSize();
        long current = WalSegmentName.segmentOf(end, size);
        long byNeed = WalSegmentName.segmentOf(Math.min(neededFrom.getAsLong(), end), size);
        long bySize = Math.max(1, current - settings.keepSize / size);
        return Math.min(WalSegmentName.segmentOf(redoLsn, size), Math.min(byNeed, bySize));
    }

    /** Last segment worth having ahead of time; 0 for none. (PostgreSQL: XLOGfileslop.) */
    private long lastToRecycle(long redoLsn) {
        if (!settings.recycle) {
            return 0;
        }
        int size = wal.segmentSize();
        long first = WalSegmentName.segmentOf(redoLsn, size);
        double ahead = (1 + settings.completionTarget) * distance * MARGIN;
        long wanted = (long) Math.ceil((redoLsn + ahead) / size);
        wanted = Math.max(wanted, first + settings.minSize / size - 1);
        return Math.min(wanted, first + settings.maxSize / size - 1);
    }
}
