package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * The metadata of a pool, of which each test state gets a buffer of its own. Far more buffers than
 * states are alive at once, so one that comes round again is unused.
 */
final class Words {
    private static final int BUFFERS = 1 << 20;

    private static final PoolMemory MEMORY =
            new PoolMemory(BUFFERS, BufferTable.bucketsFor(BUFFERS), BufferTable.PARTITIONS);
    private static final AtomicInteger NEXT = new AtomicInteger();

    static final DirtyBitmap DIRTY_BITS = new DirtyBitmap(MEMORY.dirtyBits, BUFFERS);
    static final BufferDescriptors DESCRIPTORS = new BufferDescriptors(MEMORY, DIRTY_BITS);
    static final LockTable CONTENT = new LockTable(MEMORY.contentLocks, 3, new WaitTable(256));
    private static final WaitTable WAITS = new WaitTable(256);
    static final PinWaiters WAITERS =
            new PinWaiters(DESCRIPTORS, CONTENT, WAITS, retention(PinRetention.When.NEVER));

    private Words() {}

    static PinRetention retention(PinRetention.When when) {
        return new PinRetention(DESCRIPTORS, WAITS, when);
    }

    /** A buffer with a valid, clean page of block 1, pinned so often. */
    static int buffer(int pins) {
        int buffer = NEXT.getAndIncrement() & BUFFERS - 1;
        int state = DESCRIPTORS.lockHeader(buffer);
        DESCRIPTORS.setTag(buffer, 1, 1, 1, 0, 1);
        DESCRIPTORS.cleanAndUnlockHeader(
                buffer, state & LOCKED | VALID | TAG_VALID | PERMANENT | pins);
        return buffer;
    }
}
