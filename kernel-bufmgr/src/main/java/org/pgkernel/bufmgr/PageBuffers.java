package org.pgkernel.bufmgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * The shared pool's pages for code that uses them in the same way in redo, through the {@link
 * BufferPool} itself, and in a backend, through its {@link BackendBuffers}, which own its pins and
 * locks. The methods are explained there.
 */
public interface PageBuffers {
    /** The pool that holds the pages. */
    BufferPool pool();

    int read(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode);

    void release(int buffer);

    void lockShared(int buffer);

    void lockExclusive(int buffer);

    void unlock(int buffer);

    void markDirty(int buffer);

    void markDirtyHint(int buffer, boolean standardPage);
}
