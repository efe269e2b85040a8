package org.pgkernel.bufmgr;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.LockRank;

/**
 * Where threads park until a word in the pool's memory changes. A word hashes to one of a few
 * stripes; a wake-up wakes the whole stripe, and whoever still cannot go on parks again. Allocates
 * nothing unless somebody parks; unaffected by interrupts.
 *
 * <p>No wake-up is lost: a waiter announces itself ({@link #enter}) before it looks at the word for
 * the last time; a waker changes the word by a volatile write before it looks whether anybody
 * announced itself ({@link #wake}). Both are sequentially consistent, so one of the two sees the
 * other; and between that last look and the parking the waiter holds the stripe's lock, which the
 * waker needs.
 */
class WaitTable {
    private static final class Stripe {
        final ReentrantLock lock = new ReentrantLock();
        final Condition changed = lock.newCondition();
    }

    private final Stripe[] stripes;

    /**
     * Waiters of each stripe: all that most wakers look at, so close together; who wakes hundreds
     * of words one after the other would else wait for memory at each.
     */
    private final AtomicIntegerArray waiters;

    private final int mask;

    /**
     * @param count a power of two
     */
    WaitTable(int count) {
        stripes = new Stripe[count];
        for (int i = 0; i < count; i++) {
            stripes[i] = new Stripe();
        }
        waiters = new AtomicIntegerArray(count);
        mask = count - 1;
    }

    /**
     * Announces a waiter for word {@code index}; then look at the word, {@link #await} while it
     * does not suit, and {@link #leave}.
     */
    void enter(int index) {
        assert !LockRank.HEADER.isHeld() : "parks under a header lock";
        stripes[index & mask].lock.lock();
        waiters.incrementAndGet(index & mask);
    }

    void await(int index) {
        stripes[index & mask].changed.awaitUninterruptibly();
    }

    void leave(int index) {
        waiters.decrementAndGet(index & mask);
        stripes[index & mask].lock.unlock();
    }

    /**
     * Wakes whoever waits for word {@code index}; the word was changed before, by a volatile write
     * or a CAS. The caller holds no header lock, as it may have to wait for the stripe's.
     */
    void wake(int index) {
        assert !LockRank.HEADER.isHeld() : "wakes under a header lock";
        if (waiters.get(index & mask) != 0) {
            Stripe stripe = stripes[index & mask];
            stripe.lock.lock();
            try {
                stripe.changed.signalAll();
            } finally {
                stripe.lock.unlock();
            }
        }
    }
}
