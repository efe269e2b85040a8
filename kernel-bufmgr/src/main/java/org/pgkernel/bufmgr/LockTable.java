package org.pgkernel.bufmgr;

import org.agrona.concurrent.AtomicBuffer;
import org.pgkernel.base.LockRank;

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

    /** Of all locks of the table; null when nobody is to check it. */
    private final LockRank rank;

    LockTable(AtomicBuffer words, int shift, WaitTable waits) {
        this(words, shift, waits, null);
    }

    LockTable(AtomicBuffer words, int shift, WaitTable waits, LockRank rank) {
        this.words = words;
        this.shift = shift;
        this.waits = waits;
        this.rank = rank;
    }

    boolean tryLockShared(int index) {
        assert rank == null || rank.enterTried();
        boolean locked = takeShared(index);
        assert locked || rank == null || rank.leave();
        return locked;
    }

    boolean tryLockExclusive(int index) {
        assert rank == null || rank.enterTried();
        boolean locked = takeExclusive(index);
        assert locked || rank == null || rank.leave();
        return locked;
    }

    private boolean takeShared(int index) {
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

    private boolean takeExclusive(int index) {
        int offset = index << shift;
        return words.getLongVolatile(offset) == 0 && words.compareAndSetLong(offset, 0, mine());
    }

    void lockShared(int index) {
        assert !heldExclusivelyByMe(index) : "lock taken twice by one thread";
        assert rank == null || rank.enter();
        for (int i = 0; i < SPINS; i++) {
            if (takeShared(index)) {
                return;
            }
            Thread.onSpinWait();
        }
        waits.enter(index);
        try {
            while (!takeShared(index)) {
                waits.await(index);
            }
        } finally {
            waits.leave(index);
        }
    }

    void lockExclusive(int index) {
        assert !heldExclusivelyByMe(index) : "lock taken twice by one thread";
        assert rank == null || rank.enter();
        awaitExclusive(index);
    }

    /**
     * Exclusive, for a page that nobody else can have reached: its lock is free, so it may be taken
     * out of order.
     */
    void lockUnreachable(int index) {
        assert rank == null || rank.enterTried();
        awaitExclusive(index);
    }

    private void awaitExclusive(int index) {
        for (int i = 0; i < SPINS; i++) {
            if (takeExclusive(index)) {
                return;
            }
            Thread.onSpinWait();
        }
        waits.enter(index);
        try {
            while (!takeExclusive(index)) {
                waits.await(index);
            }
        } finally {
            waits.leave(index);
        }
    }

    void unlock(int index) {
        int offset = index << shift;
        long word = words.getLongVolatile(offset);
        assert rank == null || rank.leave();
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

    /** Reads the lock's word, only to bring it into the cache. */
    int touch(int index) {
        return words.getInt(index << shift);
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
