package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.pgkernel.smgr.SmgrRelation;

/**
 * Writes many dirty buffers: of the pool, of a database, of a relation. Finds them in the dirty
 * bitmap. (PostgreSQL: BufferSync and others.)
 */
final class WriteOut {
    private final BufferDescriptors descriptors;
    private final DirtyBitmap dirty;
    private final BufferReplacement replacement;
    private final BufferAllocator allocator;
    private final BufferIo io;
    private final LockTable content;
    private final WriteOrder order = new WriteOrder();

    WriteOut(
            BufferDescriptors descriptors,
            DirtyBitmap dirty,
            BufferReplacement replacement,
            BufferAllocator allocator,
            BufferIo io,
            LockTable content) {
        this.descriptors = descriptors;
        this.dirty = dirty;
        this.replacement = replacement;
        this.allocator = allocator;
        this.io = io;
        this.content = content;
    }

    /**
     * Writes every buffer that is dirty at the beginning, sorted. Buffers that become dirty
     * meanwhile are the next checkpoint's. One caller at a time. Stops at the first failure.
     *
     * @return buffers written by this call
     */
    synchronized int all() {
        order.clear();
        int end = replacement.highWater();
        for (int buffer = dirty.next(0, end); buffer >= 0; buffer = dirty.next(buffer + 1, end)) {
            int state = descriptors.lockHeader(buffer);
            if ((state & DIRTY) == 0) {
                descriptors.unlockHeader(buffer, state);
                continue;
            }
            order.add(
                    buffer,
                    descriptors.spc(buffer),
                    descriptors.rel(buffer),
                    descriptors.fork(buffer),
                    descriptors.block(buffer));
            descriptors.unlockHeader(buffer, state | CHECKPOINT_NEEDED);
        }
        order.sort();
        int written = 0;
        for (int i = 0; i < order.count(); i++) {
            int buffer = order.buffer(i);
            // Gone when somebody else has written it since.
            if ((descriptors.state(buffer) & CHECKPOINT_NEEDED) != 0) {
                int state = descriptors.lockHeader(buffer);
                if ((state & CHECKPOINT_NEEDED) != 0
                        && writeLocked(buffer, state, WriteOrigin.CHECKPOINTER)) {
                    written++;
                }
                if ((state & CHECKPOINT_NEEDED) == 0) {
                    descriptors.unlockHeader(buffer, state);
                }
            }
        }
        return written;
    }

    void database(int db) {
        int end = replacement.highWater();
        for (int buffer = dirty.next(0, end); buffer >= 0; buffer = dirty.next(buffer + 1, end)) {
            if (descriptors.db(buffer) == db) {
                int state = descriptors.lockHeader(buffer);
                if (descriptors.db(buffer) == db) {
                    writeLocked(buffer, state, WriteOrigin.FLUSH);
                } else {
                    descriptors.unlockHeader(buffer, state);
                }
            }
        }
    }

    void relation(SmgrRelation relation) {
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        int end = replacement.highWater();
        for (int buffer = dirty.next(0, end); buffer >= 0; buffer = dirty.next(buffer + 1, end)) {
            if (descriptors.isOfRelation(buffer, spc, db, rel)) {
                int state = descriptors.lockHeader(buffer);
                if (descriptors.isOfRelation(buffer, spc, db, rel)) {
                    writeLocked(buffer, state, WriteOrigin.FLUSH);
                } else {
                    descriptors.unlockHeader(buffer, state);
                }
            }
        }
    }

    /**
     * Writes a buffer whose header the caller has locked, and which is unlocked on return. @return
     * false when it was not dirty, or another has written it
     */
    private boolean writeLocked(int buffer, int state, WriteOrigin origin) {
        if (!has(state, VALID | DIRTY)) {
            descriptors.unlockHeader(buffer, state);
            return false;
        }
        descriptors.pinAndUnlockHeader(buffer, state);
        try {
            content.lockShared(buffer);
            try {
                return io.flush(buffer, origin);
            } finally {
                content.unlock(buffer);
            }
        } finally {
            allocator.unpin(buffer);
        }
    }
}
