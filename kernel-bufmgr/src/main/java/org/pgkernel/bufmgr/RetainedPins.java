package org.pgkernel.bufmgr;

import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLongArray;
import org.pgkernel.bufmgr.PinRetention.When;

/**
 * The slots in which one backend keeps pins that it has released; see {@link PinRetention}.
 *
 * <pre>
 *  63       33 32            1   0
 *  +----------+---------------+----+
 *  |    0     |  buffer + 1   | 1  |  active: the backend uses the page
 *  |    0     |  buffer + 1   | 0  |  idle: it does not, and anybody may take the pin back
 *  |    0     |      0        | 0  |  empty
 *  +----------+---------------+----+
 * </pre>
 *
 * The owner is one thread at a time, as its backend; {@link #takeBack}, {@link #giveBackIdle} and
 * what only looks are for everybody.
 */
class RetainedPins {
    /** So few that asking them costs a read next to nothing; a power of two. */
    static final int SLOTS = 4;

    /** Longs before the slots and behind them: nothing else is on their cache lines. */
    private static final int PADDING = 16;

    private static final int END = PADDING + SLOTS;
    private static final long EMPTY = 0;
    private static final long ACTIVE = 1;

    private final PinRetention retention;
    private final BufferDescriptors descriptors;
    private final AtomicLongArray slots = new AtomicLongArray(PADDING + SLOTS + PADDING);

    /** The next backend in the list. Written under the retention's monitor. */
    volatile RetainedPins next;

    /** In the list. The owner's. */
    private boolean joined;

    /** The slot that made room last. The owner's. */
    private int turn = END - 1;

    RetainedPins(PinRetention retention, BufferDescriptors descriptors) {
        this.retention = retention;
        this.descriptors = descriptors;
    }

    private static long idleSlot(int buffer) {
        return buffer + 1L << 1;
    }

    private static int bufferOf(long slot) {
        return (int) (slot >>> 1) - 1;
    }

    private static boolean isIdle(long slot) {
        return slot != EMPTY && (slot & ACTIVE) == 0;
    }

    /** Pins the page through an idle pin of it. @return the buffer, whose page is valid, or -1 */
    final int pin(int spc, int db, int rel, int fork, int block) {
        if (joined) {
            for (int i = PADDING; i < END; i++) {
                long slot = slots.getPlain(i); // ours, unless it was taken: then the CAS fails
                if (isIdle(slot)
                        && descriptors.hasTag(bufferOf(slot), spc, db, rel, fork, block)
                        && activate(i, slot)) {
                    return bufferOf(slot);
                }
            }
        }
        return -1;
    }

    /** Makes an idle pin of the buffer active again. @return false when there is none */
    final boolean pin(int buffer) {
        if (joined) {
            long idle = idleSlot(buffer);
            for (int i = PADDING; i < END; i++) {
                if (slots.getPlain(i) == idle && activate(i, idle)) {
                    return true;
                }
            }
        }
        return false;
    }

    boolean activate(int i, long idle) {
        VarHandle.acquireFence(); // the reads of the tag come before the CAS
        return change(i, idle, idle | ACTIVE);
    }

    /**
     * Releases the backend's last pin of the buffer: makes it idle if it is in a slot already, or
     * if others are at the state word too; else gives it back.
     */
    final void release(int buffer) {
        if (joined) {
            long idle = idleSlot(buffer);
            for (int i = PADDING; i < END; i++) {
                if (slots.getPlain(i) == (idle | ACTIVE)) {
                    makeIdle(i, idle);
                    return;
                }
            }
        }
        if (!retention.isWanted(buffer)) {
            if (retention.when() == When.NEVER) {
                retention.unpin(buffer);
                return;
            }
            if (retention.unpinUnlessContended(buffer)) {
                return;
            }
            retention.met(buffer);
        }
        retain(buffer);
    }

    private void retain(int buffer) {
        int i = (descriptors.state(buffer) & BufferState.VALID) != 0 ? emptySlot() : -1;
        if (i < 0) {
            retention.unpin(buffer);
            return;
        }
        if (!joined) {
            joined = true;
            retention.join(this); // before the slot is filled: see the essay
        }
        makeIdle(i, idleSlot(buffer));
    }

    /** The store of the slot comes before the look at the flag, for everybody. */
    void makeIdle(int i, long idle) {
        put(i, idle);
        if (isAwaited(bufferOf(idle))) {
            giveBack(i, idle);
        }
    }

    /** True if somebody waits for the buffer's cleanup lock. */
    final boolean isAwaited(int buffer) {
        return (descriptors.state(buffer) & BufferState.PIN_COUNT_WAITER) != 0;
    }

    /** An empty slot, if need be by giving back an idle pin, each in its turn; -1: all active. */
    private int emptySlot() {
        for (int i = PADDING; i < END; i++) {
            if (slots.get(i) == EMPTY) {
                return i;
            }
        }
        for (int tries = 0; tries < SLOTS; tries++) {
            turn = turn + 1 < END ? turn + 1 : PADDING;
            long slot = slots.get(turn);
            if ((slot & ACTIVE) == 0) {
                giveBack(turn, slot);
                return turn;
            }
        }
        return -1;
    }

    /** Takes the pin in an idle slot back. @return false when somebody was faster */
    boolean giveBack(int i, long idle) {
        if (idle == EMPTY || !change(i, idle, EMPTY)) {
            return false;
        }
        retention.unpin(bufferOf(idle));
        return true;
    }

    /** For everybody. @return how many idle pins of the buffer were taken back */
    final int takeBack(int buffer) {
        int taken = 0;
        long idle = idleSlot(buffer);
        for (int i = PADDING; i < END; i++) {
            if (get(i) == idle && giveBack(i, idle)) {
                taken++;
            }
        }
        return taken;
    }

    /** For everybody: takes all idle pins back. */
    final void giveBackIdle() {
        for (int i = PADDING; i < END; i++) {
            long slot = get(i);
            if (isIdle(slot)) {
                giveBack(i, slot);
            }
        }
    }

    /** The end of the backend, which has released all its pins. */
    void close() {
        giveBackIdle();
        if (joined) {
            joined = false;
            retention.leave(this);
        }
    }

    /** Idle pins of the buffer. */
    final int idle(int buffer) {
        int idle = 0;
        for (int i = PADDING; i < END; i++) {
            idle += slots.get(i) == idleSlot(buffer) ? 1 : 0;
        }
        return idle;
    }

    /** Slots that name the buffer. */
    final int slots(int buffer) {
        int named = 0;
        for (int i = PADDING; i < END; i++) {
            named += (slots.get(i) & ~ACTIVE) == idleSlot(buffer) ? 1 : 0;
        }
        return named;
    }

    // The steps of the algorithm, between which tests come in.

    long get(int i) {
        return slots.get(i);
    }

    void put(int i, long slot) {
        slots.set(i, slot);
    }

    boolean change(int i, long from, long to) {
        return slots.compareAndSet(i, from, to);
    }
}
