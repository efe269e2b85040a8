package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

/**
 * What the pool holds, buffer by buffer, while others use it. Nothing is stopped: each row is true
 * of its buffer at one moment, since it is taken under the buffer's header lock, and different rows
 * are of different moments; so a page that moves may be seen twice or not at all. Walks the buffers
 * that were ever used and no more, which is the one look at the pool that does walk them. Allocates
 * nothing.
 *
 * <p>(PostgreSQL: pg_buffercache_pages; of 16, pg_buffercache_summary.)
 */
public final class PoolSnapshot {
    /** Gets the rows, in the order of the buffers; called with no lock held. */
    @FunctionalInterface
    public interface Rows {
        /**
         * One buffer that holds a page.
         *
         * @param block unsigned
         * @param pins how many have it pinned (a backend counts once, and not for a pin that it
         *     only retains; one that is being retained or used again just now may count either way)
         */
        void row(
                int buffer,
                int spcOid,
                int dbOid,
                int relNumber,
                int fork,
                int block,
                boolean dirty,
                int usageCount,
                int pins);
    }

    /**
     * Sums over the pool.
     *
     * @param used buffers that hold a page
     * @param unused all others, never used ones included
     * @param averageUsage of the used ones; not a number when there are none
     */
    public record Summary(int used, int unused, int dirty, int pinned, double averageUsage) {}

    private final BufferDescriptors descriptors;
    private final BufferReplacement replacement;
    private final PinRetention retention;
    private final int nbuffers;

    PoolSnapshot(
            BufferDescriptors descriptors,
            BufferReplacement replacement,
            PinRetention retention,
            int nbuffers) {
        this.descriptors = descriptors;
        this.replacement = replacement;
        this.retention = retention;
        this.nbuffers = nbuffers;
    }

    /** Tells every buffer that holds a valid page. */
    public void forEach(Rows rows) {
        int end = replacement.highWater();
        for (int buffer = 0; buffer < end; buffer++) {
            if (!has(descriptors.state(buffer), VALID | TAG_VALID)) {
                continue;
            }
            int state = descriptors.lockHeader(buffer);
            int spc = descriptors.spc(buffer);
            int db = descriptors.db(buffer);
            int rel = descriptors.rel(buffer);
            int fork = descriptors.fork(buffer);
            int block = descriptors.block(buffer);
            descriptors.unlockHeader(buffer, state);
            int pins = retention.used(buffer, refcount(state)); // of a moment later
            if (has(state, VALID | TAG_VALID)) {
                boolean dirty = (state & DIRTY) != 0;
                rows.row(buffer, spc, db, rel, fork, block, dirty, usageCount(state), pins);
            }
        }
    }

    /** Buffers that somebody has pinned; idle pins do not count. */
    int pinned() {
        int pinned = 0;
        int end = replacement.highWater();
        for (int buffer = 0; buffer < end; buffer++) {
            if (retention.used(buffer, refcount(descriptors.state(buffer))) != 0) {
                pinned++;
            }
        }
        return pinned;
    }

    /** Adds up the state words, each read once, without a lock. */
    public Summary summary() {
        int used = 0;
        int dirty = 0;
        int pinned = 0;
        long usage = 0;
        int end = replacement.highWater();
        for (int buffer = 0; buffer < end; buffer++) {
            int state = descriptors.state(buffer);
            if (has(state, VALID | TAG_VALID)) {
                used++;
                usage += usageCount(state);
                if ((state & DIRTY) != 0) {
                    dirty++;
                }
            }
            if (retention.used(buffer, refcount(state)) != 0) {
                pinned++;
            }
        }
        return new Summary(used, nbuffers - used, dirty, pinned, (double) usage / used);
    }
}
