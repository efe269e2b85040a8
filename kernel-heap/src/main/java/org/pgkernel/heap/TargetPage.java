package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SmgrRelation;

/** Finds the page that a new row goes to. One backend's. */
final class TargetPage {
    private final HeapBackend backend;

    /** The page that was found. */
    final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    TargetPage(HeapBackend backend) {
        this.backend = backend;
    }

    /**
     * A page with room for a tuple: the one of the last row, one that the free space map knows, the
     * last one, a new one. (PostgreSQL: RelationGetBufferForTuple, hio.c.)
     *
     * @param length the tuple's bytes
     * @return its buffer, pinned and exclusively locked, in {@link #page}
     * @throws RefusedException when no page could take the tuple
     */
    int find(HeapRelation relation, int length) {
        int size = Page.maxAlign(length);
        if (size > HeapTupleHeader.MAX_TUPLE_SIZE) {
            throw new RefusedException(
                    "row is too big: size "
                            + size
                            + ", maximum size "
                            + HeapTupleHeader.MAX_TUPLE_SIZE
                            + " rel="
                            + relation);
        }
        SmgrRelation storage = relation.storage();
        RelationState state = backend.state(relation);
        int wanted = size + relation.reservedSpace();
        int block = state.targetBlock;
        if (block == BlockNumber.INVALID) {
            block = backend.freeSpace.pageWithFreeSpace(backend.buffers, storage, wanted);
        }
        if (block == BlockNumber.INVALID && storage.nblocks(ForkNumber.MAIN) != 0) {
            block = storage.nblocks(ForkNumber.MAIN) - 1;
        }
        while (block != BlockNumber.INVALID) {
            int buffer = backend.buffers.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL);
            backend.buffers.lockExclusive(buffer);
            backend.pool.wrap(buffer, page);
            if (Page.isNew(page)) {
                Page.init(page, 0);
                backend.buffers.markDirty(buffer);
            }
            int free = PageItems.heapFreeSpace(page);
            if (wanted <= free) {
                state.targetBlock = block;
                return buffer;
            }
            backend.buffers.unlock(buffer);
            backend.buffers.release(buffer);
            block = backend.freeSpace.recordAndFind(backend.buffers, storage, block, free, wanted);
        }
        int buffer = backend.buffers.extend(storage, ForkNumber.MAIN, true);
        backend.pool.wrap(buffer, page);
        Page.init(page, 0);
        backend.buffers.markDirty(buffer);
        state.targetBlock = backend.pool.block(buffer);
        return buffer;
    }
}
