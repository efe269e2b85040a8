package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.LockRank;

/**
 * SIEVE (Zhang and others, NSDI 2024): one queue in the order of arrival and a hand that goes from
 * the oldest page to the newest and then begins anew. A page that was used since the hand's last
 * visit keeps its place and loses its uses; the first that was not is the victim. A new page is put
 * at the newest end whatever the hand's place, so between the hand and that end there are pages
 * that were never tested: those used once are sifted out in one pass, while the survivors before
 * the hand are left in peace.
 *
 * <p>"Was used" is a usage count above 0: a page comes with none, each pin adds one. So hits do
 * nothing that the clock sweep's hits do not do.
 *
 * <p>Every buffer that was ever taken is in the queue, always: also one whose page was dropped, at
 * the place where it was, until it is taken again and becomes the newest. So no buffer can get lost
 * between a drop and its next use. A victim that its taker gives up again stays the newest: it was
 * given up because somebody uses it.
 *
 * <p>The queue is changed and the hand moved under one lock, which is given up after {@link #BATCH}
 * buffers, as after a time of hits only the hand may have far to go. Header locks are taken under
 * it, one at a time; their holders take no lock. Nothing else is, but for the wake-up of a cleanup
 * waiter whose page had an idle pin; and nobody who holds a header lock or a partition lock comes
 * here.
 */
final class Sieve implements ReplacementPolicy {
    private static final int BATCH = 256;

    private final BufferDescriptors descriptors;
    private final PinRetention retention;
    private final BufferQueue queue;
    private final int nbuffers;
    private final ReentrantLock lock = new ReentrantLock();

    /** Where the hand goes on; NONE: at the oldest. Written under {@link #lock}. */
    private volatile int hand = BufferQueue.NONE;

    /** Written under {@link #lock}. */
    private volatile long ticks;

    Sieve(PoolMemory memory, BufferDescriptors descriptors, PinRetention retention, int nbuffers) {
        this.descriptors = descriptors;
        this.retention = retention;
        this.nbuffers = nbuffers;
        queue = new BufferQueue(memory.newer, memory.older, 0);
    }

    @Override
    public int victim(int hash) {
        int pinned = 0; // in a row
        for (; ; ) {
            assert LockRank.REPLACEMENT.enter();
            lock.lock();
            try {
                int found = walk(pinned);
                if (found >= 0) {
                    makeNewest(found);
                    return found;
                }
                pinned = ~found;
                if (pinned >= queue.size()) {
                    throw ClockSweep.noneUnpinned(nbuffers);
                }
            } finally {
                lock.unlock();
                assert LockRank.REPLACEMENT.leave();
            }
        }
    }

    /**
     * Moves the hand until it finds a victim, or {@link #BATCH} times, or over pinned buffers only
     * for one round.
     *
     * @param before how many buffers the caller found pinned just before this
     * @return the victim, pinned, or {@code ~} the pinned ones in a row
     */
    private int walk(int before) {
        int pinned = before;
        int at = hand >= 0 ? hand : queue.tail();
        int moves = 0;
        int victim = BufferQueue.NONE;
        while (victim < 0 && moves < BATCH && pinned < queue.size()) {
            int state = descriptors.lockHeader(at);
            if (refcount(state) != 0) {
                descriptors.unlockHeader(at, state);
                pinned = retention.takeBack(at) != 0 ? 0 : pinned + 1;
            } else if (usageCount(state) != 0) {
                descriptors.unlockHeader(at, state & ~USAGECOUNT_MASK);
                pinned = 0;
            } else {
                descriptors.pinAndUnlockHeader(at, state);
                victim = at;
            }
            moves++;
            int next = queue.newer(at);
            at = next >= 0 || victim >= 0 ? next : queue.tail();
        }
        hand = at;
        ticks += moves;
        return victim >= 0 ? victim : ~pinned;
    }

    private void makeNewest(int buffer) {
        if (hand == buffer) {
            hand = queue.newer(buffer);
        }
        queue.remove(buffer);
        queue.add(buffer);
    }

    @Override
    public void taken(int buffer, int hash) {
        assert LockRank.REPLACEMENT.enter();
        lock.lock();
        try {
            if (queue.contains(buffer)) {
                makeNewest(buffer);
            } else {
                queue.add(buffer);
            }
        } finally {
            lock.unlock();
            assert LockRank.REPLACEMENT.leave();
        }
    }

    @Override
    public int firstUses() {
        return 0;
    }

    @Override
    public long ticks() {
        return ticks;
    }

    @Override
    public int hand() {
        int at = hand >= 0 ? hand : queue.tail();
        return Math.max(at, 0);
    }

    @Override
    public int after(int buffer) {
        int next = queue.newer(buffer);
        return next >= 0 ? next : Math.max(queue.tail(), 0);
    }

    @Override
    public String fault(int used) {
        assert LockRank.REPLACEMENT.enter();
        lock.lock();
        try {
            return queue.size() != used ? "a used buffer is not in the queue" : queue.fault();
        } finally {
            lock.unlock();
            assert LockRank.REPLACEMENT.leave();
        }
    }
}
