package org.pgkernel.recovery;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.bufmgr.BufferPool;

/** A reusable holder of one pinned, exclusively locked buffer during the redo of a record. */
public final class RedoBuffer {
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private BufferPool pool;
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

    void hold(BufferPool pool, int buffer) {
        assert this.buffer < 0 : "redo buffer held twice";
        this.pool = pool;
        this.buffer = buffer;
        pool.wrap(buffer, page);
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
