package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.PriorityQueue;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * The writing part of one checkpoint: every page that is dirty when it begins reaches its file.
 * Nothing is synced here; the caller does that afterwards, then moves the redo pointer.
 *
 * <p>A step is one call of {@link #doWork}. The first finds the dirty buffers, marks them and sorts
 * them by tablespace, relation, fork and block. Each further one writes one page, or does nothing
 * while it rests: a tenth of a second after each page that has brought the work as far as its
 * {@link CheckpointSchedule} asks (so ten pages a second at least). Tablespaces are written side by
 * side: next is always the one that has come least far, measured by the part of its own work, so
 * that all end together, whatever their shares.
 *
 * <p>Which pages: those whose dirty flag was set before {@link #doWork} was called first. Who
 * changes a page marks it dirty before he logs the change; the redo point lies before what is
 * logged later; so what is marked later need not be written. A page that another writes meanwhile
 * (a flush, the background writer, who needs its buffer) loses its mark when that write ends well,
 * and is left out; a page that changes during a write keeps flag and mark (C32). A mark that a
 * failed checkpoint leaves behind is found again by the next: its page is dirty.
 *
 * <p>The first failure ends it: {@link #doWork} throws it, the page stays dirty, and the object is
 * of no more use. Used by one thread; any number of these may be at work in a pool. (PostgreSQL:
 * BufferSync, CheckpointWriteDelay. There backends' sync requests wait in a queue that this loop
 * has to empty now and then; here whoever writes enters them at once.)
 */
public final class CheckpointWrite implements Agent {
    /** PostgreSQL's checkpoint_flush_after: 256 kB. */
    public static final int DEFAULT_FLUSH_AFTER_PAGES = 32;

    /** How long a writer who is early rests before he looks again. */
    static final long NAP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private enum Phase {
        BEFORE,
        WRITING,
        DONE,
        FAILED
    }

    /** A tablespace's stretch of the order. */
    private static final class Tablespace implements Comparable<Tablespace> {
        final int first;
        final int count;
        int done;

        Tablespace(int first, int count) {
            this.first = first;
            this.count = count;
        }

        /** The one that has come least far; of equals the first. */
        @Override
        public int compareTo(Tablespace other) {
            int c = Long.compare((long) done * other.count, (long) other.done * count);
            return c == 0 ? Integer.compare(first, other.first) : c;
        }
    }

    private final WriteOut out;
    private final WriteOrder order;
    private final CheckpointSchedule schedule;
    private final NanoClock clock;
    private final WriteBackHints hints;
    private final PriorityQueue<Tablespace> tablespaces = new PriorityQueue<>();
    private Phase phase = Phase.BEFORE;
    private long napUntil;
    private boolean napping;
    private int processed;
    private int written;

    /** Set by anybody. */
    private volatile boolean hurried;

    CheckpointWrite(
            WriteOut out,
            WriteOrder order,
            CheckpointSchedule schedule,
            NanoClock clock,
            WriteBackHints hints) {
        this.out = out;
        this.order = order;
        this.schedule = schedule;
        this.clock = clock;
        this.hints = hints;
    }

    @Override
    public String roleName() {
        return "checkpoint write-out";
    }

    /**
     * One step.
     *
     * @return 1 when something was done; 0 while resting, and when done
     * @throws org.pgkernel.base.error.KernelException a page could not be written; it names
     *     relation, fork and block
     */
    @Override
    public int doWork() {
        switch (phase) {
            case DONE -> {
                return 0;
            }
            case FAILED ->
                    throw new IllegalStateException(
                            "this checkpoint's write-out has failed; another has to begin anew");
            case BEFORE, WRITING -> {}
        }
        if (napping && !hurried && clock.nanoTime() - napUntil < 0) {
            return 0;
        }
        napping = false;
        Phase next = Phase.FAILED;
        try {
            next = phase == Phase.BEFORE ? find() : writeNext();
        } finally {
            phase = next;
        }
        return 1;
    }

    private Phase find() {
        out.markDirtyBuffers(order);
        order.sort();
        for (int i = 0; i < order.tablespaces(); i++) {
            int first = order.tablespaceStart(i);
            tablespaces.add(new Tablespace(first, order.tablespaceStart(i + 1) - first));
        }
        return tablespaces.isEmpty() ? done() : Phase.WRITING;
    }

    private Phase writeNext() {
        Tablespace tablespace = tablespaces.poll();
        int buffer = order.buffer(tablespace.first + tablespace.done);
        if (out.writeMarked(buffer, hints)) {
            written++;
        }
        // Whether it had to be written or not, or tablespaces would drift apart.
        tablespace.done++;
        processed++;
        if (tablespace.done < tablespace.count) {
            tablespaces.add(tablespace);
        } else if (tablespaces.isEmpty()) {
            return done();
        }
        if (!hurried && schedule.isOnSchedule(processed / (double) order.count())) {
            napping = true;
            napUntil = clock.nanoTime() + NAP_NANOS;
        }
        return Phase.WRITING;
    }

    private Phase done() {
        hints.issue();
        out.giveBack(order);
        return Phase.DONE;
    }

    /** Somebody waits for this checkpoint now: no more rests. By any thread. */
    public void hurry() {
        hurried = true;
    }

    public boolean isDone() {
        return phase == Phase.DONE;
    }

    /** Pages written by this checkpoint itself. */
    public int written() {
        return written;
    }

    /** Pages that were dirty at the beginning and are dealt with, by whomever. */
    public int processed() {
        return processed;
    }
}
