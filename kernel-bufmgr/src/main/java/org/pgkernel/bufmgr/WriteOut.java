package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.atomic.AtomicReference;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.SystemNanoClock;
import org.pgkernel.smgr.StorageManager;

/**
 * Writes single dirty buffers for those who write many: checkpoint, background writer, flush. Each
 * pins the buffer and holds its content lock shared meanwhile, and waits for that lock.
 * (PostgreSQL: SyncOneBuffer.)
 */
final class WriteOut {
    private final BufferDescriptors descriptors;
    private final DirtyBitmap dirty;
    private final BufferReplacement replacement;
    private final BufferAllocator allocator;
    private final BufferIo io;
    private final LockTable content;
    private final StorageManager smgr;

    /** The last checkpoint's arrays, for the next. Taken and given back by anybody. */
    private final AtomicReference<WriteOrder> idle = new AtomicReference<>();

    WriteOut(
            BufferDescriptors descriptors,
            DirtyBitmap dirty,
            BufferReplacement replacement,
            BufferAllocator allocator,
            BufferIo io,
            LockTable content,
            StorageManager smgr) {
        this.descriptors = descriptors;
        this.dirty = dirty;
        this.replacement = replacement;
        this.allocator = allocator;
        this.io = io;
        this.content = content;
        this.smgr = smgr;
    }

    /**
     * Writes every buffer that is dirty at the beginning, sorted, without a rest. Stops at the
     * first failure. @return buffers written by this call
     */
    int all() {
        CheckpointWrite write =
                checkpoint(
                        CheckpointSchedule.IMMEDIATE,
                        SystemNanoClock.INSTANCE,
                        CheckpointWrite.DEFAULT_FLUSH_AFTER_PAGES);
        while (!write.isDone()) {
            write.doWork();
        }
        return write.written();
    }

    CheckpointWrite checkpoint(CheckpointSchedule schedule, NanoClock clock, int flushAfterPages) {
        WriteOrder order = idle.getAndSet(null);
        if (order == null) {
            order = new WriteOrder();
        }
        order.clear();
        return new CheckpointWrite(this, order, schedule, clock, hints(flushAfterPages));
    }

    void giveBack(WriteOrder order) {
        idle.set(order);
    }

    WriteBackHints hints(int flushAfterPages) {
        return new WriteBackHints(smgr, flushAfterPages);
    }

    /** Marks every dirty buffer as the checkpoint's and adds it to {@code order}. */
    void markDirtyBuffers(WriteOrder order) {
        int end = replacement.highWater();
        for (int buffer = dirty.next(0, end); buffer >= 0; buffer = dirty.next(buffer + 1, end)) {
            int state = descriptors.lockHeader(buffer);
            if ((state & DIRTY) == 0) {
                dirty.clear(buffer); // set late for a page that had been written already
                descriptors.unlockHeader(buffer, state);
                continue;
            }
            int spc = descriptors.spc(buffer);
            int rel = descriptors.rel(buffer);
            int fork = descriptors.fork(buffer);
            int block = descriptors.block(buffer);
            descriptors.unlockHeader(buffer, state | CHECKPOINT_NEEDED);
            order.add(buffer, spc, rel, fork, block); // may allocate, so without the header lock
        }
    }

    /** Writes a buffer that {@link #markDirtyBuffers} has marked, unless another has done so. */
    boolean writeMarked(int buffer, WriteBackHints hints) {
        if ((descriptors.state(buffer) & CHECKPOINT_NEEDED) == 0) {
            return false;
        }
        int state = descriptors.lockHeader(buffer);
        if ((state & CHECKPOINT_NEEDED) == 0) {
            descriptors.unlockHeader(buffer, state);
            return false;
        }
        return writeLocked(buffer, state, WriteOrigin.CHECKPOINTER, hints);
    }

    /**
     * Writes a buffer whose header the caller has locked, and which is unlocked on return.
     *
     * @param hints null when there are none to be given
     * @return false when it was not dirty, or another has written it
     */
    boolean writeLocked(int buffer, int state, WriteOrigin origin, WriteBackHints hints) {
        if (!has(state, VALID | DIRTY)) {
            descriptors.unlockHeader(buffer, state);
            return false;
        }
        descriptors.pinAndUnlockHeader(buffer, state);
        boolean written;
        int spc;
        int db;
        int rel;
        int fork;
        int block;
        try {
            content.lockShared(buffer);
            try {
                written = io.flush(buffer, origin);
            } finally {
                content.unlock(buffer);
            }
            spc = descriptors.spc(buffer);
            db = descriptors.db(buffer);
            rel = descriptors.rel(buffer);
            fork = descriptors.fork(buffer);
            block = descriptors.block(buffer);
        } finally {
            allocator.unpin(buffer);
        }
        if (written && hints != null) {
            hints.add(spc, db, rel, fork, block);
        }
        return written;
    }
}
