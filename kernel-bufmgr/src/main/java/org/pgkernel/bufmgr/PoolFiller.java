package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.DIRTY;
import static org.pgkernel.bufmgr.BufferState.TAG_VALID;
import static org.pgkernel.bufmgr.BufferState.VALID;

/**
 * Fills a pool's metadata without reading a page, <strong>for benchmarks</strong>: 100 GB of
 * buffers in a few seconds and a gigabyte of memory. Tags, mapping table, clock sweep and the
 * strategy's bookkeeping are changed by the very code that a read uses; only the page is never
 * filled and counts as valid, so a pool once filled like this is good for nothing but being dropped
 * from. One thread at a time.
 */
public final class PoolFiller {
    private final BufferPool pool;

    public PoolFiller(BufferPool pool) {
        this.pool = pool;
    }

    /**
     * Gives the block a buffer: one freed before, the last first, else one never used, else the
     * clock hand's choice, whose page goes.
     *
     * @return the buffer, not pinned
     */
    public int map(int spc, int db, int rel, int fork, int block) {
        int buffer = pool.allocator.allocate(spc, db, rel, fork, block);
        if (buffer < 0) {
            buffer = ~buffer;
            pool.io.terminate(buffer, false, VALID);
        }
        pool.allocator.unpin(buffer);
        return buffer;
    }

    /**
     * Takes the buffer's page away, as a drop would, and frees it. @return false when it had none
     */
    public boolean unmap(int buffer) {
        int state = pool.descriptors.lockHeader(buffer);
        if ((state & TAG_VALID) != 0) {
            return pool.allocator.invalidate(buffer, state);
        }
        pool.descriptors.unlockHeader(buffer, state);
        return false;
    }

    /** Marks the buffer's page dirty. It must have one. */
    public void dirty(int buffer) {
        pool.descriptors.pinAndUnlockHeader(buffer, pool.descriptors.lockHeader(buffer));
        pool.descriptors.markDirty(buffer);
        pool.allocator.unpin(buffer);
    }

    /** Makes the buffer's page clean, unwritten. */
    public void clean(int buffer) {
        pool.descriptors.cleanAndUnlockHeader(buffer, pool.descriptors.lockHeader(buffer));
    }

    /** How many buffers are dirty, by a look at every state word: what there is to compare with. */
    public int dirtyByLookingAtAll() {
        int dirty = 0;
        for (int buffer = 0; buffer < pool.nbuffers(); buffer++) {
            if ((pool.descriptors.state(buffer) & DIRTY) != 0) {
                dirty++;
            }
        }
        return dirty;
    }

    /** The buffer that holds the block, or -1. */
    public int find(int spc, int db, int rel, int fork, int block) {
        return pool.allocator.probe(spc, db, rel, fork, block);
    }

    /** Relation number of the buffer's page. */
    public int relNumber(int buffer) {
        return pool.descriptors.rel(buffer);
    }

    /** Block number of the buffer's page. */
    public int block(int buffer) {
        return pool.descriptors.block(buffer);
    }
}
