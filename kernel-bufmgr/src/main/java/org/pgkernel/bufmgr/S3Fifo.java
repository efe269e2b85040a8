package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.LockRank;

/**
 * S3-FIFO (Yang and others, SOSP 2023): a small queue that new pages go through, a main queue of
 * those that proved themselves, and a memory of the pages that the small queue let go.
 *
 * <ul>
 *   <li>While the small queue has a tenth of the pool or more, its oldest is looked at: used twice
 *       or more, it moves to the main queue and its uses are taken away; else it is the victim and
 *       is remembered.
 *   <li>Otherwise the main queue's oldest: if it was used it becomes the newest there, with one use
 *       less, of three at most; else it is the victim.
 *   <li>A page that comes and is remembered goes to the main queue at once, any other to the small
 *       one. As many are remembered as the main queue has room for.
 * </ul>
 *
 * Uses are the usage count of the state word: a page comes with none. A pinned buffer at a queue's
 * end becomes its newest; when a whole queue was found pinned in a row, the other is looked at.
 *
 * <p>Every buffer that was ever taken is in one of the queues, always, as in {@link Sieve}, whose
 * words on locks hold here too.
 */
final class S3Fifo implements ReplacementPolicy {
    private static final int BATCH = 256;
    private static final int MOST_USES = 3;

    private final BufferDescriptors descriptors;
    private final PinRetention retention;
    private final int nbuffers;
    private final ReentrantLock lock = new ReentrantLock();
    private final BufferQueue small;
    private final BufferQueue main;
    private final GhostTable ghosts;

    /** The small queue's share: when it has as many, it gives the victim. */
    private final int smallTarget;

    // Found pinned in a row, by the walk that has the lock.
    private int pinnedSmall;
    private int pinnedMain;

    /** Written under {@link #lock}. */
    private volatile long ticks;

    S3Fifo(PoolMemory memory, BufferDescriptors descriptors, PinRetention retention, int nbuffers) {
        this.descriptors = descriptors;
        this.retention = retention;
        this.nbuffers = nbuffers;
        smallTarget = Math.max(1, nbuffers / 10);
        small = new BufferQueue(memory.newer, memory.older, 0);
        main = new BufferQueue(memory.newer, memory.older, 1 << 30);
        ghosts = new GhostTable(memory.ghosts, remembered(nbuffers));
    }

    static int remembered(int nbuffers) {
        return nbuffers - nbuffers / 10;
    }

    @Override
    public int victim(int hash) {
        int pinnedInSmall = 0;
        int pinnedInMain = 0;
        for (; ; ) {
            assert LockRank.REPLACEMENT.enter();
            lock.lock();
            try {
                pinnedSmall = pinnedInSmall;
                pinnedMain = pinnedInMain;
                for (int moves = 0; moves < BATCH; moves++) {
                    int victim = move(hash);
                    if (victim >= 0) {
                        return victim;
                    }
                }
                pinnedInSmall = pinnedSmall;
                pinnedInMain = pinnedMain;
            } finally {
                lock.unlock();
                assert LockRank.REPLACEMENT.leave();
            }
        }
    }

    /**
     * Looks at one buffer. @return it, pinned and the newest of its new queue, if it is the victim
     */
    private int move(int hash) {
        boolean smallIsPinned = pinnedSmall >= small.size();
        boolean mainIsPinned = pinnedMain >= main.size();
        if (smallIsPinned && mainIsPinned) {
            throw ClockSweep.noneUnpinned(nbuffers);
        }
        boolean fromSmall = mainIsPinned || !smallIsPinned && small.size() >= smallTarget;
        BufferQueue queue = fromSmall ? small : main;
        int buffer = queue.tail();
        ticks++;
        int state = descriptors.lockHeader(buffer);
        if (refcount(state) != 0) {
            descriptors.unlockHeader(buffer, state);
            if (retention.takeBack(buffer) != 0) {
                pinnedSmall = 0;
                pinnedMain = 0;
            } else if (fromSmall) {
                pinnedSmall++;
            } else {
                pinnedMain++;
            }
            queue.remove(buffer);
            queue.add(buffer);
            return BufferQueue.NONE;
        }
        int uses = usageCount(state);
        if (uses > (fromSmall ? 1 : 0)) {
            int left = fromSmall ? 0 : Math.min(uses, MOST_USES) - 1;
            descriptors.unlockHeader(buffer, state & ~USAGECOUNT_MASK | left << USAGECOUNT_SHIFT);
            pinnedMain = 0; // it has an unpinned buffer now
            if (fromSmall) {
                pinnedSmall = 0;
            }
            queue.remove(buffer);
            main.add(buffer);
            return BufferQueue.NONE;
        }
        descriptors.pinAndUnlockHeader(buffer, state);
        if (fromSmall && (state & TAG_VALID) != 0) {
            ghosts.add(descriptors.hash(buffer)); // pinned, so it keeps its tag
        }
        queue.remove(buffer);
        enter(buffer, hash);
        return buffer;
    }

    private void enter(int buffer, int hash) {
        (ghosts.remove(hash) ? main : small).add(buffer);
    }

    @Override
    public void taken(int buffer, int hash) {
        assert LockRank.REPLACEMENT.enter();
        lock.lock();
        try {
            if (small.contains(buffer)) {
                small.remove(buffer);
            } else if (main.contains(buffer)) {
                main.remove(buffer);
            }
            enter(buffer, hash);
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
        int small = this.small.tail();
        return Math.max(small >= 0 ? small : main.tail(), 0);
    }

    /** As if the small queue were looked at first and then the main one. */
    @Override
    public int after(int buffer) {
        int next = small.newer(buffer); // the links are the same for both
        if (next >= 0) {
            return next;
        }
        next = small.contains(buffer) ? main.tail() : small.tail();
        return next >= 0 ? next : hand();
    }

    @Override
    public String fault(int used) {
        assert LockRank.REPLACEMENT.enter();
        lock.lock();
        try {
            if (small.size() + main.size() != used) {
                return "a used buffer is in no queue";
            }
            String fault = small.fault();
            return fault != null ? fault : main.fault();
        } finally {
            lock.unlock();
            assert LockRank.REPLACEMENT.leave();
        }
    }
}
