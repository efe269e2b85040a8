package org.pgkernel.heap;

import java.util.function.Function;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferAccessStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.RelationTruncation;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Cuts off the empty pages at a relation's end, after its vacuum. It needs the relation for itself
 * but nobody shall wait for that: the lock is asked for, never waited for; and when somebody else
 * waits while the end is looked through, what was found empty so far is cut and the lock given up,
 * to try again for the rest.
 *
 * <p>That the pages are empty is looked at again under the lock: others may have used them since.
 * One backend's. (PostgreSQL: lazy_truncate_heap, count_nondeletable_pages, vacuumlazy.c.)
 */
public final class HeapTruncation {
    /** So many pages are worth it, or this part of all. (PostgreSQL: REL_TRUNCATE_MINIMUM, ...) */
    static final int LEAST_PAGES = 1000;

    static final int LEAST_FRACTION = 16;

    private static final long MILLI = 1_000_000;

    /** (PostgreSQL: VACUUM_TRUNCATE_LOCK_WAIT_INTERVAL, _TIMEOUT, _CHECK_INTERVAL.) */
    static final long RETRY_NANOS = 50 * MILLI;

    static final int MOST_RETRIES = 100;
    static final long LOOK_FOR_WAITERS_NANOS = 20 * MILLI;

    /** The clock is asked once in so many blocks. */
    private static final int CLOCK_BLOCKS = 32;

    /** A power of two. (PostgreSQL: PREFETCH_SIZE.) */
    private static final int PREFETCH_BLOCKS = 32;

    private final HeapBackend backend;
    private final BackendBuffers buffers;
    private final RelationTruncation truncation;
    private final Function<HeapRelation, TruncationLock> locks;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    /** What {@link #countNonDeletable} met. */
    private boolean somebodyWaits;

    /**
     * @param truncation cuts the files
     * @param locks of this backend
     */
    public HeapTruncation(
            HeapBackend backend,
            RelationTruncation truncation,
            Function<HeapRelation, TruncationLock> locks) {
        this.backend = backend;
        buffers = backend.buffers;
        this.truncation = truncation;
        this.locks = locks;
    }

    /**
     * @param pages of the relation, unsigned
     * @param nonEmptyPages up to the last page that had something on it, unsigned. (PostgreSQL:
     *     should_attempt_truncation.)
     */
    static boolean isWorthIt(int pages, int nonEmptyPages) {
        int freeable = pages - nonEmptyPages;
        int fraction = Integer.divideUnsigned(pages, LEAST_FRACTION);
        return freeable != 0
                && (Integer.compareUnsigned(freeable, LEAST_PAGES) >= 0
                        || Integer.compareUnsigned(freeable, fraction) >= 0);
    }

    /** Tries; the relation may stay as it is. */
    void truncate(VacuumState state, BufferAccessStrategy ring) {
        TruncationLock lock = locks.apply(state.relation);
        boolean more = true;
        while (more) {
            if (!tryLock(lock)) {
                state.listener.message(
                        "stopping truncate due to conflicting lock request rel=" + state.relation);
                return;
            }
            try {
                more = truncateLocked(state, lock, ring);
            } finally {
                lock.unlock();
            }
        }
    }

    private static boolean tryLock(TruncationLock lock) {
        for (int retries = 0; !lock.tryLock(); retries++) {
            if (retries == MOST_RETRIES) {
                return false;
            }
            lock.sleep(RETRY_NANOS);
        }
        return true;
    }

    /**
     * @return true when there is more to cut, once those who wait had their turn
     */
    private boolean truncateLocked(
            VacuumState state, TruncationLock lock, BufferAccessStrategy ring) {
        SmgrRelation storage = state.relation.storage();
        if (storage.nblocks(ForkNumber.MAIN) != state.pages) {
            // It has grown; the new pages will have rows.
            return false;
        }
        int keep = countNonDeletable(state, lock, ring);
        if (keep == state.pages) {
            return false;
        }
        backend.forget(state.relation);
        truncation.truncate(buffers, storage, keep, state.relation.isLogged());
        state.listener.message(
                "truncated "
                        + BlockNumber.toString(state.pages)
                        + " to "
                        + BlockNumber.toString(keep)
                        + " pages rel="
                        + state.relation);
        state.removedPages += state.pages - keep;
        state.pages = keep;
        return somebodyWaits && Integer.compareUnsigned(keep, state.nonEmptyPages) > 0;
    }

    /**
     * Looks through the end, backwards, until a page that is not empty, or the last one that was
     * not when the vacuum came by.
     *
     * @return how many blocks must stay
     */
    private int countNonDeletable(
            VacuumState state, TruncationLock lock, BufferAccessStrategy ring) {
        SmgrRelation storage = state.relation.storage();
        long looked = lock.nanoTime();
        int prefetchedFrom = state.pages;
        somebodyWaits = false;
        for (int block = state.pages; block != state.nonEmptyPages; ) {
            if (Integer.remainderUnsigned(block, CLOCK_BLOCKS) == 0) {
                long now = lock.nanoTime();
                if (now - looked >= LOOK_FOR_WAITERS_NANOS) {
                    if (lock.hasWaiters()) {
                        state.listener.message(
                                "suspending truncate due to conflicting lock request rel="
                                        + state.relation);
                        somebodyWaits = true;
                        return block;
                    }
                    looked = now;
                }
            }
            block--;
            if (Integer.compareUnsigned(block, prefetchedFrom) < 0) {
                prefetchedFrom = block & -PREFETCH_BLOCKS;
                int count = block + 1 - prefetchedFrom;
                backend.pool.prefetch(storage, ForkNumber.MAIN, prefetchedFrom, count);
            }
            if (hasItems(storage, block, ring)) {
                return block + 1;
            }
        }
        return state.nonEmptyPages;
    }

    /** Even a dead line pointer: an index may lead to it. */
    private boolean hasItems(SmgrRelation storage, int block, BufferAccessStrategy ring) {
        int buffer = buffers.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL, ring);
        backend.pool.wrap(buffer, page);
        buffers.lockShared(buffer);
        boolean found = false;
        int last = Page.isNew(page) ? 0 : Page.maxOffsetNumber(page);
        for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last && !found; offset++) {
            found = Page.lpIsUsed(Page.itemId(page, offset));
        }
        buffers.unlock(buffer);
        buffers.release(buffer);
        return found;
    }
}
