package org.pgkernel.bufmgr;

import java.util.function.LongSupplier;
import org.agrona.concurrent.NanoClock;
import org.pgkernel.base.error.RefusedException;

/**
 * Spreads a checkpoint over a part of the time until the next one, which comes when its time is
 * over or when so much WAL has been written, whichever is first: so the work must have got as far
 * as the time <em>and</em> as the WAL. In recovery the WAL position is the replayed one. Begins
 * when it is made; for one checkpoint. (PostgreSQL: IsCheckpointOnSchedule, checkpointer.c.)
 */
public final class SpreadSchedule implements CheckpointSchedule {
    /** PostgreSQL's checkpoint_completion_target. */
    public static final double DEFAULT_COMPLETION_TARGET = 0.9;

    private final NanoClock clock;
    private final long startNanos;
    private final long timeoutNanos;
    private final double completionTarget;
    private final LongSupplier walPosition;
    private final long startPosition;
    private final long walBytes;

    /**
     * The part that had to be done when it was last computed. Neither time nor WAL goes back, so
     * who has not got so far is late without computing it anew.
     */
    private double due;

    /**
     * @param timeoutNanos from the beginning of one checkpoint to that of the next
     *     (checkpoint_timeout)
     * @param completionTarget the part of it in which to write, above 0 and up to 1
     * @param walPosition where WAL is inserted, or replayed, in bytes
     * @param walBytes WAL between two checkpoints, see {@link #walBytes}
     */
    public SpreadSchedule(
            NanoClock clock,
            long timeoutNanos,
            double completionTarget,
            LongSupplier walPosition,
            long walBytes) {
        if (timeoutNanos <= 0
                || walBytes <= 0
                || !(completionTarget > 0 && completionTarget <= 1)) {
            throw new RefusedException(
                    "a checkpoint is spread over some time and WAL, and a part of it from 0 to 1"
                            + " checkpoint_timeout_nanos="
                            + timeoutNanos
                            + " wal_bytes="
                            + walBytes
                            + " checkpoint_completion_target="
                            + completionTarget);
        }
        this.clock = clock;
        this.startNanos = clock.nanoTime();
        this.timeoutNanos = timeoutNanos;
        this.completionTarget = completionTarget;
        this.walPosition = walPosition;
        this.startPosition = walPosition.getAsLong();
        this.walBytes = walBytes;
    }

    /**
     * How much WAL may be written between two checkpoints, so that with what is kept for the last
     * one and what the present one still adds {@code maxWalSize} is not exceeded. At least a
     * segment. (PostgreSQL: CalculateCheckpointSegments.)
     */
    public static long walBytes(long maxWalSize, int segmentSize, double completionTarget) {
        long segments = (long) (maxWalSize / (double) segmentSize / (1 + completionTarget));
        return Math.max(1, segments) * segmentSize;
    }

    @Override
    public boolean isOnSchedule(double progress) {
        double scaled = progress * completionTarget;
        if (scaled < due) {
            return false;
        }
        double byWal = (walPosition.getAsLong() - startPosition) / (double) walBytes;
        if (scaled < byWal) {
            due = byWal;
            return false;
        }
        double byTime = (clock.nanoTime() - startNanos) / (double) timeoutNanos;
        if (scaled < byTime) {
            due = byTime;
            return false;
        }
        return true;
    }
}
