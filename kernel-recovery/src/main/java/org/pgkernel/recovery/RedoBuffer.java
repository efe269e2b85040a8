package org.pgkernel.recovery;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.smgr.SmgrRelation;

/** A reusable holder of one pinned, exclusively locked buffer during the redo of a record. */
public final class RedoBuffer {
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private BufferPool pool;
    private SmgrRelation relation;
    private ForkNumber fork;
    private int buffer = -1;

    RedoBuffer() {}

    /** True while a buffer is held. */
    public boolean isValid() {
        return buffer >= 0;
    }

    /** The page, 8192 bytes from index 0. Only while {@link #isValid}. */
    public UnsafeBuffer page() {
        return page;
    }

    /** The pool's number of the buffer. */
    public int buffer() {
        return buffer;
    }

    /** Block number of the page. */
    public int block() {
        return pool.block(buffer);
    }

    /** Takes over a buffer that is pinned and exclusively locked. */
    void hold(BufferPool pool, SmgrRelation relation, ForkNumber fork, int buffer) {
        assert this.buffer < 0 : "redo buffer held twice";
        this.pool = pool;
        this.relation = relation;
        this.fork = fork;
        this.buffer = buffer;
        pool.wrap(buffer, page);
    }

    /**
     * Brings back what the file holds, zeros when the fork does not reach that far: undoes a change
     * given up half-way.
     */
    void revert() {
        int block = pool.block(buffer);
        if (Integer.compareUnsigned(block, relation.nblocks(fork)) < 0) {
            relation.read(fork, block, pool.pageAddress(buffer));
        } else {
            page.setMemory(0, Page.SIZE, (byte) 0);
        }
    }

    public void markDirty() {
        pool.markDirty(buffer);
    }

    /** Unlocks and unpins; nothing when no buffer is held. (PostgreSQL: UnlockReleaseBuffer.) */
    public void release() {
        if (buffer >= 0) {
            int held = buffer;
            buffer = -1;
            pool.unlock(held);
            pool.release(held);
        }
    }
}
