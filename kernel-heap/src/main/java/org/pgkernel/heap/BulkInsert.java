package org.pgkernel.heap;

import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferAccessStrategy;

/**
 * For many inserts in a row into one relation: keeps the page that takes rows pinned from row to
 * row, and uses a ring of buffers, so that the load does not push everything else out of the pool.
 *
 * <p>R07: what it remembers is one relation's; with another one it begins anew. One backend's, used
 * in the buffer scope it was made in. (PostgreSQL: BulkInsertStateData.)
 */
public final class BulkInsert implements AutoCloseable {
    private static final int NONE = -1;

    private final BackendBuffers buffers;
    final BufferAccessStrategy ring;
    private HeapRelation relation;
    private int buffer = NONE;

    public BulkInsert(HeapBackend backend) {
        buffers = backend.buffers;
        ring =
                BufferAccessStrategy.of(
                        BufferAccessStrategy.Type.BULK_WRITE, backend.pool.nbuffers());
    }

    /** The page of the last row, pinned, or -1. */
    int current(HeapRelation of) {
        if (relation != of) {
            close();
            relation = of;
        }
        return buffer;
    }

    /** Keeps a pin of its own on the page that rows go to. */
    void keep(int next) {
        if (next != buffer) {
            close();
            buffers.pinAgain(next);
            buffer = next;
        }
    }

    /** Lets the page go; the next row may go on. (PostgreSQL: ReleaseBulkInsertStatePin.) */
    @Override
    public void close() {
        if (buffer != NONE) {
            int last = buffer;
            buffer = NONE;
            buffers.release(last);
        }
    }
}
