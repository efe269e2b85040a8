package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.VALID;

/**
 * Finds the buffer that holds a block and pins it. What every kind of it promises:
 *
 * <ol>
 *   <li>A buffer that is returned is pinned once more by this call, holds the block, and will hold
 *       it until that pin is given up.
 *   <li>{@link #ABSENT} means that at some moment during the call no buffer held the block. It may
 *       have come since: whoever maps it looks again, under the partition's exclusive lock.
 *   <li>No lock stays, nothing waits for the disk, nothing is allocated.
 * </ol>
 *
 * The caller holds no partition lock and no header lock.
 */
abstract sealed class PageLookup permits OptimisticLookup, PartitionLockLookup {
    static final int ABSENT = -1;

    /**
     * Added to the buffer in the answer: its page is not valid; somebody reads it, or failed to.
     */
    static final int PENDING = 1 << 30;

    static PageLookup of(LookupStyle style, BufferDescriptors descriptors, BufferTable table) {
        PartitionLockLookup locked = new PartitionLockLookup(descriptors, table);
        return switch (style) {
            case OPTIMISTIC -> new OptimisticLookup(descriptors, table, locked);
            case PARTITION_LOCK -> locked;
        };
    }

    /**
     * @param hash of the tag
     * @param most the pin is a use too, up to so many
     * @return the buffer; plus {@link #PENDING} when its page is not valid; or {@link #ABSENT}
     */
    abstract int pin(int hash, int spc, int db, int rel, int fork, int block, int most);

    static int answer(int buffer, int state) {
        return (state & VALID) != 0 ? buffer : buffer | PENDING;
    }
}
