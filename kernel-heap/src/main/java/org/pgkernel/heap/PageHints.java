package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.bufmgr.BackendBuffers;

/**
 * Hints set in a page of the pool: {@link #on} names the page, which the caller has pinned and
 * locked, shared at least, as long as hints are given. (PostgreSQL: SetHintBits.)
 */
final class PageHints implements HintBits {
    private final BackendBuffers buffers;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private int buffer;
    private boolean logged;

    PageHints(BackendBuffers buffers) {
        this.buffers = buffers;
    }

    /**
     * @param logged the relation survives a crash, and so must what its hints say
     */
    PageHints on(int buffer, boolean logged) {
        this.buffer = buffer;
        this.logged = logged;
        buffers.pool().wrap(buffer, page);
        return this;
    }

    @Override
    public boolean maySetAfter(long commitLsn) {
        return !logged || buffers.pool().pageLsn(buffer) >= commitLsn;
    }

    @Override
    public void set(int at, int bits) {
        int infomask = HeapTupleHeader.infomask(page, at);
        if ((infomask & bits) != bits) {
            HeapTupleHeader.setInfomask(page, at, infomask | bits);
            buffers.markDirtyHint(buffer, true);
        }
    }
}
