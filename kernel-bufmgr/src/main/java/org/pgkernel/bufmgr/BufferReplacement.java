package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.LockRank;
import org.pgkernel.base.error.NoFreeBufferException;

/**
 * Chooses the next buffer to use: first one that a drop has freed, then one never used, then the
 * policy's choice.
 *
 * <p>A ring ({@link BufferAccessStrategy}) is asked before all of them; what it takes from itself
 * is no allocation.
 *
 * <p>PostgreSQL builds a list of all buffers at start; here a high-water mark stands for its
 * never-used part, so that start-up does not touch the descriptors. (PostgreSQL: StrategyGetBuffer,
 * StrategyFreeBuffer, StrategySyncStart, freelist.c.)
 */
class BufferReplacement {
    /** In {@code freeNext}: 0 not in the list, 1 last of it, else the next buffer plus 2. */
    private static final int END_OF_LIST = 1;

    private final BufferDescriptors descriptors;
    private final ReplacementPolicy policy;
    private final int nbuffers;

    /** Links of the free list. Under {@link #freeLock}. */
    private final UnsafeBuffer freeNext;

    private final ReentrantLock freeLock = new ReentrantLock();

    /**
     * First of the free list, coded like a link. Written under {@link #freeLock}; read without it
     * as a hint.
     */
    private volatile int firstFree = END_OF_LIST;

    /** Buffers from here on were never used. */
    private final AtomicInteger highWater = new AtomicInteger();

    /** Buffers handed out. Added to by everybody. */
    private final LongAdder allocations = new LongAdder();

    /** Who sleeps until the next allocation, or null. Whoever sets it to null wakes him. */
    private volatile Thread sleeper;

    BufferReplacement(
            PoolMemory memory,
            BufferDescriptors descriptors,
            ReplacementPolicy policy,
            int nbuffers) {
        this.descriptors = descriptors;
        this.policy = policy;
        this.freeNext = memory.freeNext;
        this.nbuffers = nbuffers;
    }

    ReplacementPolicy policy() {
        return policy;
    }

    /** Buffers from this one on were never used. */
    int highWater() {
        return Math.min(highWater.get(), nbuffers);
    }

    /**
     * A buffer that nobody had pinned, now pinned once by the caller; its old page may still be in
     * it, and dirty.
     *
     * @param hash of the tag that the buffer will get
     * @param ring asked first, and told what it did not have itself; or null
     * @throws NoFreeBufferException when the hand has gone round and met pinned buffers only
     */
    final int victim(int hash, BufferAccessStrategy ring) {
        if (ring == null) {
            return victim(hash);
        }
        int own = ring.next(descriptors);
        if (own >= 0) {
            return own;
        }
        int buffer = victim(hash);
        ring.add(buffer);
        return buffer;
    }

    /** The same without a ring. */
    int victim(int hash) {
        allocations.increment(); // before the sleeper is looked at, see wakeAtAllocation
        Thread waiting = sleeper;
        if (waiting != null) {
            sleeper = null; // twice is harmless: he looks again when woken
            LockSupport.unpark(waiting);
        }
        int buffer;
        while ((buffer = popFree()) >= 0 || (buffer = takeNew()) >= 0) {
            int state = descriptors.lockHeader(buffer);
            if ((state & (REFCOUNT_MASK | USAGECOUNT_MASK)) == 0) {
                descriptors.pinAndUnlockHeader(buffer, state);
                policy.taken(buffer, hash);
                return buffer;
            }
            descriptors.unlockHeader(
                    buffer, state); // the policy's hand was faster and it is in use again
        }
        return policy.victim(hash);
    }

    /** Where the hand is. For the background writer; see {@link SyncStart}. */
    SyncStart syncStart() {
        return new SyncStart(policy.hand(), policy.ticks(), allocations.sum());
    }

    /** The buffer that the hand will look at after this one, if nothing changes meanwhile. */
    int after(int buffer) {
        return policy.after(buffer);
    }

    /**
     * The next allocation wakes the thread, once. Null takes it back. A thread calls this, then
     * looks whether there was an allocation, then parks; an allocation counts itself, then looks
     * for a sleeper: so none is missed. (PostgreSQL: StrategyNotifyBgWriter.)
     */
    void wakeAtAllocation(Thread thread) {
        sleeper = thread;
    }

    /** Puts a buffer that holds no page at the head of the free list, unless it is in it. */
    void free(int buffer) {
        assert LockRank.FREE_LIST.enter();
        freeLock.lock();
        try {
            if (freeNext.getInt(buffer << 2) == 0) {
                freeNext.putInt(buffer << 2, firstFree);
                firstFree = buffer + 2;
            }
        } finally {
            freeLock.unlock();
            assert LockRank.FREE_LIST.leave();
        }
    }

    /** The buffer's link, only to bring it into the cache. */
    int link(int buffer) {
        return freeNext.getInt(buffer << 2);
    }

    private int popFree() {
        if (firstFree == END_OF_LIST) {
            return -1;
        }
        assert LockRank.FREE_LIST.enter();
        freeLock.lock();
        try {
            int buffer = firstFree - 2;
            if (buffer >= 0) {
                firstFree = freeNext.getInt(buffer << 2);
                freeNext.putInt(buffer << 2, 0);
            }
            return buffer;
        } finally {
            freeLock.unlock();
            assert LockRank.FREE_LIST.leave();
        }
    }

    private int takeNew() {
        for (; ; ) {
            int buffer = highWater.get();
            if (buffer >= nbuffers) {
                return -1;
            }
            if (highWater.compareAndSet(buffer, buffer + 1)) {
                return buffer;
            }
        }
    }

    /** Length of the free list, which is checked for loops. For the inspection. */
    int freeListLength() {
        assert LockRank.FREE_LIST.enter();
        freeLock.lock();
        try {
            int length = 0;
            for (int link = firstFree; link != END_OF_LIST; link = freeNext.getInt(link - 2 << 2)) {
                length++;
                assert length <= nbuffers : "loop in the free list";
            }
            return length;
        } finally {
            freeLock.unlock();
            assert LockRank.FREE_LIST.leave();
        }
    }

    boolean isInFreeList(int buffer) {
        assert LockRank.FREE_LIST.enter();
        freeLock.lock();
        try {
            return freeNext.getInt(buffer << 2) != 0;
        } finally {
            freeLock.unlock();
            assert LockRank.FREE_LIST.leave();
        }
    }
}
