package org.pgkernel.wal;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The insertion locks: who inserts holds one, and it tells from where on his bytes may still be
 * missing.
 *
 * <p>A slot's word is 0 when free, else 1 + a position at or before the holder's first byte that is
 * not yet in the ring. A holder reads the reservation's position, takes the slot with it by a CAS,
 * and only then reserves. Who asks how far the ring is complete reads the reservation first and the
 * slots after it. A record whose room lies before the position he read was reserved before he
 * looked at the slot, hence he finds the slot held, with a bound at or before the record, or its
 * bytes are there. Bounds only err towards too early.
 *
 * <p>To hold all slots, one takes them in their order; between those who want all, a lock decides
 * first, so there is no cycle. While somebody wants all, nobody takes a single one, or he might
 * wait for ever. A holder never waits for a slot; he may wait for the ring, for which no slot is
 * needed. (PostgreSQL: WALInsertLocks, WALInsertLockAcquire, WaitXLogInsertionsToFinish, xlog.c.)
 */
class InsertionSlots {
    private static final long FREE = 0;

    /** Held by one who holds all and tells his position in the last slot. */
    private static final long NOTHING_MISSING = Long.MAX_VALUE;

    /** Words between two slots: two cache lines. */
    private static final int STRIDE = 16;

    private final InsertReservation reservation;
    private final int count;
    private final AtomicLongArray words;
    private final ReentrantLock exclusive = new ReentrantLock();

    /** Written under {@link #exclusive}. */
    private volatile boolean allWanted;

    InsertionSlots(InsertReservation reservation, int count) {
        assert Integer.bitCount(count) == 1 : "slots " + count;
        this.reservation = reservation;
        this.count = count;
        words = new AtomicLongArray((count + 1) * STRIDE);
    }

    /** Takes a slot, the same one for the same thread unless it is held. */
    int acquire() {
        int slot = (int) Thread.currentThread().threadId() & count - 1;
        for (int tries = 0; ; tries++) {
            if (!allWanted && words.compareAndSet(index(slot), FREE, reservation.position() + 1)) {
                return slot;
            }
            slot = slot + 1 & count - 1;
            if (tries >= count) {
                pause(tries - count);
            }
        }
    }

    /** The holder's bytes before the position are in the ring. */
    void progress(int slot, long position) {
        words.setRelease(index(slot), position + 1);
    }

    /** All of the holder's bytes are in the ring. */
    void release(int slot) {
        words.setRelease(index(slot), FREE);
    }

    /** Takes all slots. @return the one that tells progress */
    int acquireAll() {
        exclusive.lock();
        allWanted = true;
        int last = count - 1;
        for (int slot = 0; slot < count; slot++) {
            int tries = 0;
            while (!words.compareAndSet(
                    index(slot),
                    FREE,
                    slot == last ? reservation.position() + 1 : NOTHING_MISSING)) {
                pause(tries++);
            }
        }
        return last;
    }

    void releaseAll() {
        for (int slot = 0; slot < count; slot++) {
            release(slot);
        }
        allWanted = false;
        exclusive.unlock();
    }

    /** Up to here every reserved byte is in the ring. */
    long completeTo() {
        long position = reservation.position();
        for (int slot = 0; slot < count; slot++) {
            long word = words.get(index(slot));
            if (word != FREE && word - 1 < position) {
                position = word - 1;
            }
        }
        return position;
    }

    /** Waits a little for another thread that is at work; longer, the more often it was called. */
    static void pause(int times) {
        if (times < 100) {
            Thread.onSpinWait();
        } else if (times < 120) {
            Thread.yield();
        } else {
            LockSupport.parkNanos(20_000);
        }
    }

    private static int index(int slot) {
        return (slot + 1) * STRIDE - 1;
    }
}
