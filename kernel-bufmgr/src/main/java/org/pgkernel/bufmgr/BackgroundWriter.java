package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * Writes dirty pages that the clock hand will soon choose, so that who needs a buffer finds a clean
 * one. It walks ahead of the hand, looks only at what the hand would take (not pinned, no use left)
 * and writes what of that is dirty.
 *
 * <p>How far it walks in a round follows what was lately wanted: the allocations of a round,
 * smoothed so that a rise counts at once and a fall slowly, times a factor. How many buffers must
 * be looked at to find one the hand would take is smoothed too; so it knows about how many clean
 * ones already lie between the hand and itself, and adds what is missing. It never laps the hand,
 * writes only so many pages a round, and even with nothing going on walks the pool once in two
 * minutes. For that it reads a state word a buffer, in order; this and the checkpointed pages are
 * all it touches.
 *
 * <p>When it has come all round and nobody wants buffers, twice in a row, it rests fifty times as
 * long, or until the next allocation.
 *
 * <p>A page that changes while it is written stays dirty (C32). A page that could not be written
 * stays dirty too; the failure is thrown, and the next round begins with that buffer again. One
 * thread. (PostgreSQL: BgBufferSync, BackgroundWriterMain.)
 */
public final class BackgroundWriter implements Agent {
    /** Rounds over which the estimates are smoothed. */
    private static final double SMOOTHING_SAMPLES = 16;

    private static final double SCAN_WHOLE_POOL_NANOS = TimeUnit.MINUTES.toNanos(2);
    private static final int HIBERNATE_FACTOR = 50;

    private final BufferDescriptors descriptors;
    private final BufferReplacement replacement;
    private final WriteOut out;
    private final int nbuffers;
    private final BackgroundWriterOptions options;
    private final NanoClock clock;
    private final WriteBackHints hints;

    /** False until the first round. */
    private boolean started;

    private long lastTicks;
    private long lastAllocations;

    /** The buffer to look at next, and what the hand's ticks will be when it gets there. */
    private int next;

    private long nextTicks;

    private double smoothedAllocations;

    /** Buffers looked at for one that the hand would take. */
    private double smoothedDensity = 10;

    private long roundDue;
    private boolean mayHibernate;
    private boolean hibernating;
    private long written;
    private long roundsCut;

    BackgroundWriter(
            BufferDescriptors descriptors,
            BufferReplacement replacement,
            WriteOut out,
            int nbuffers,
            BackgroundWriterOptions options,
            NanoClock clock) {
        this.descriptors = descriptors;
        this.replacement = replacement;
        this.out = out;
        this.nbuffers = nbuffers;
        this.options = options;
        this.clock = clock;
        hints = out.hints(options.flushAfterPages());
        lastAllocations = replacement.syncStart().allocations();
        roundDue = clock.nanoTime();
    }

    @Override
    public String roleName() {
        return "background writer";
    }

    /**
     * A round if one is due, else nothing.
     *
     * @return pages written
     * @throws org.pgkernel.base.error.KernelException a page could not be written; it names
     *     relation, fork and block
     */
    @Override
    public int doWork() {
        long now = clock.nanoTime();
        if (now - roundDue < 0 && !(hibernating && isWanted())) {
            return 0;
        }
        hibernating = false;
        roundDue = now + options.delayNanos();
        long before = written;
        boolean idle = round();
        if (idle && mayHibernate) {
            hibernating = true;
            roundDue = now + options.delayNanos() * (1 + HIBERNATE_FACTOR);
        }
        mayHibernate = idle;
        return (int) (written - before);
    }

    /** True if somebody took a buffer since the last round. */
    private boolean isWanted() {
        return replacement.syncStart().allocations() != lastAllocations;
    }

    /**
     * Parks the calling thread until a round is due, or, in the long rest, until somebody takes a
     * buffer. May return early.
     */
    public void rest() {
        if (!hibernating) {
            LockSupport.parkNanos(nanosUntilDue());
            return;
        }
        replacement.wakeAtAllocation(Thread.currentThread());
        if (!isWanted()) {
            LockSupport.parkNanos(nanosUntilDue());
        }
        replacement.wakeAtAllocation(null);
    }

    /** How long {@link #doWork} will do nothing, if nobody takes a buffer; not above 0: none. */
    public long nanosUntilDue() {
        return roundDue - clock.nanoTime();
    }

    /** True in the long rest. */
    public boolean isHibernating() {
        return hibernating;
    }

    /** Pages written so far. */
    public long written() {
        return written;
    }

    /** Rounds that ended because they had written as much as a round may. */
    public long roundsCut() {
        return roundsCut;
    }

    /**
     * @return true when there is nothing to do until somebody takes a buffer
     */
    private boolean round() {
        SyncStart start = replacement.syncStart();
        long allocations = start.allocations() - lastAllocations;
        lastAllocations = start.allocations();
        if (options.maxPages() == 0) {
            return true;
        }
        int untilLapped = follow(start, allocations);
        int readyAlready = (int) ((nbuffers - untilLapped) / smoothedDensity);
        int wanted = wanted(allocations, readyAlready);
        int left = untilLapped;
        int ready = readyAlready;
        int pages = 0;
        while (left > 0 && ready < wanted) {
            int state = descriptors.state(next);
            boolean takeable = (state & (REFCOUNT_MASK | USAGECOUNT_MASK)) == 0;
            boolean cleaned = takeable && has(state, VALID | DIRTY) && clean(next);
            next = replacement.after(next);
            nextTicks++;
            left--;
            if (takeable) {
                ready++;
            }
            if (cleaned && ++pages >= options.maxPages()) {
                roundsCut++;
                break;
            }
        }
        density(untilLapped - left, ready - readyAlready);
        return untilLapped == 0 && allocations == 0;
    }

    /**
     * Goes to the hand if it has overtaken us. @return how many buffers we may look at until we
     * have come all round to it
     */
    private int follow(SyncStart start, long allocations) {
        long ahead = nextTicks - start.ticks();
        if (started) {
            density(start.ticks() - lastTicks, allocations);
        }
        if (!started || ahead < 0) {
            next = start.buffer();
            nextTicks = start.ticks();
            ahead = 0;
        }
        started = true;
        lastTicks = start.ticks();
        return (int) Math.max(0, nbuffers - ahead);
    }

    /** Takes into account that so many buffers were looked at to find so many. */
    private void density(long lookedAt, long found) {
        if (lookedAt > 0 && found > 0) {
            smoothedDensity += ((double) lookedAt / found - smoothedDensity) / SMOOTHING_SAMPLES;
        }
    }

    /**
     * @return how many buffers that the hand would take are to lie ahead of it after this round
     */
    private int wanted(long allocations, int readyAlready) {
        if (smoothedAllocations <= allocations) {
            smoothedAllocations = allocations;
        } else {
            smoothedAllocations += (allocations - smoothedAllocations) / SMOOTHING_SAMPLES;
        }
        int wanted = (int) Math.min(nbuffers, smoothedAllocations * options.multiplier());
        if (wanted == 0) {
            smoothedAllocations = 0; // or it would shrink for ever
        }
        int least = (int) (nbuffers / (SCAN_WHOLE_POOL_NANOS / options.delayNanos()));
        return Math.max(wanted, least + readyAlready);
    }

    /** Writes the page unless somebody has begun to use it. */
    private boolean clean(int buffer) {
        int state = descriptors.lockHeader(buffer);
        if ((state & (REFCOUNT_MASK | USAGECOUNT_MASK)) != 0) {
            descriptors.unlockHeader(buffer, state);
            return false;
        }
        if (out.writeLocked(buffer, state, WriteOrigin.BACKGROUND_WRITER, hints)) {
            written++;
            return true;
        }
        return false;
    }
}
