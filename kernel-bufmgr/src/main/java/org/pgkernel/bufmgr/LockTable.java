package org.pgkernel.bufmgr;

import org.agrona.concurrent.AtomicBuffer;

/**
 * Shared/exclusive locks, one 8-byte word each: spin shortly, then park. Zero is free. Not
 * reentrant; the thread that locks unlocks. As with PostgreSQL's lightweight locks a newcomer may
 * overtake a parked thread.
 *
 * <pre>
 *  63             32 31  30  29                 0
 *  +----------------+---+---+--------------------+
 *  | owner thread   | 0 | X | shared holders     |
 *  +----------------+---+---+--------------------+
 * </pre>
 *
 * The owner (low half of its thread id) is set while X is. (PostgreSQL: lwlock.c.)
 */
final class LockTable {
    private static final long EXCLUSIVE = 1L << 30;
    private static final long SHARED_MASK = EXCLUSIVE - 1;
    private static final int SPINS = 64;

    private final AtomicBuffer words;
    private final int shift;
    private final WaitTable waits;

    LockTable(AtomicBuffer words, int shift, WaitTable waits) {
        this.words = words;
        this.shift = shift;
        this.waits = waits;
    }

    boolean tryLockShared(int index) {
        int offset = index << shift;
        for (; ; ) {
            long word = words.getLongVolatile(offset);
            if ((word & EXCLUSIVE) != 0) {
                return false;
            }
            if (words.compareAndSetLong(offset, word, word + 1)) {
                return true;
            }
        }
    }

    boolean tryLockExclusive(int index) {
        int offset = index << shift;
        return words.getLongVolatile(offset) == 0 && words.compareAndSetLong(offset, 0, mine());
    }

    void lockShared(int index) {
        assert !heldExclusivelyByMe(index) : "lock taken twice by one thread";
        for (int i = 0; i < SPINS; i++) {
            if (tryLockShared(index)) {
                return;
            }
            Thread.onSpinWait();
        }
        waits.enter(index);
        try {
            while (!tryLockShared(index)) {
                waits.await(index);
            }
        } finally {
            waits.leave(index);
        }
    }

    void lockExclusive(int index) {
        assert !heldExclusivelyByMe(index) : "lock taken twice by one thread";
        for (int i = 0; i < SPINS; i++) {
            if (tryLockExclusive(index)) {
                return;
            }
            Thread.onSpinWait();
        }
        waits.enter(index);
        try {
            while (!tryLockExclusive(index)) {
                waits.await(index);
            }
        } finally {
            waits.leave(index);
        }
    }

    void unlock(int index) {
        int offset = index << shift;
        long word = words.getLongVolatile(offset);
        if ((word & EXCLUSIVE) != 0) {
            assert word == mine() : "exclusive lock released by another thread";
            words.putLongVolatile(offset, 0);
            waits.wake(index);
        } else {
            assert (word & SHARED_MASK) != 0 : "lock released that nobody holds";
            if (words.getAndAddLong(offset, -1) == 1) {
                waits.wake(index);
            }
        }
    }

    boolean heldExclusivelyByMe(int index) {
        return words.getLongVolatile(index << shift) == mine();
    }

    /** True if anybody holds it, in any mode. */
    boolean isHeld(int index) {
        return words.getLongVolatile(index << shift) != 0;
    }

    private static long mine() {
        return Thread.currentThread().threadId() << 32 | EXCLUSIVE;
    }
}
