package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.BufferTag;

/**
 * Descriptors, mapping table and a lookup, without pages: blocks are mapped and unmapped by hand,
 * in the steps that the allocator takes.
 */
class LookupParts implements AutoCloseable {
    static final int SPC = 1663;
    static final int DB = 5;
    static final int REL = 16384;
    static final int FORK = 0;

    final PoolMemory memory;
    final BufferDescriptors descriptors;
    final BufferTable table;
    final PageLookup lookup;
    final int nbuffers;

    LookupParts(int nbuffers, LookupStyle style) {
        this.nbuffers = nbuffers;
        memory = memory(nbuffers);
        descriptors = new BufferDescriptors(memory, new DirtyBitmap(memory.dirtyBits, nbuffers));
        table = new BufferTable(memory, descriptors, BufferTable.bucketsFor(nbuffers));
        lookup = PageLookup.of(style, descriptors, table);
    }

    LookupParts(
            int nbuffers,
            PoolMemory memory,
            BufferDescriptors descriptors,
            BufferTable table,
            PageLookup lookup) {
        this.nbuffers = nbuffers;
        this.memory = memory;
        this.descriptors = descriptors;
        this.table = table;
        this.lookup = lookup;
    }

    static PoolMemory memory(int nbuffers) {
        return new PoolMemory(nbuffers, BufferTable.bucketsFor(nbuffers), BufferTable.PARTITIONS);
    }

    static int hash(int block) {
        return BufferTag.hash(SPC, DB, REL, FORK, block);
    }

    /** The first {@code count} blocks that share a bucket of a small pool with block 0. */
    static int[] collidingBlocks(int count) {
        List<Integer> found = new ArrayList<>();
        for (int block = 0; found.size() < count; block++) {
            if (((hash(block) ^ hash(0)) & BufferTable.PARTITIONS - 1) == 0) {
                found.add(block);
            }
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }

    int pin(int block) {
        return lookup.pin(hash(block), SPC, DB, REL, FORK, block, MAX_USAGE_COUNT);
    }

    boolean holds(int buffer, int block) {
        return (descriptors.state(buffer) & TAG_VALID) != 0
                && descriptors.hasTag(buffer, SPC, DB, REL, FORK, block);
    }

    /**
     * Gives the buffer to the block, which no buffer holds, as a replacement does: its old page
     * goes.
     *
     * @return false when somebody has the buffer pinned
     */
    boolean map(int buffer, int block) {
        int hash = hash(block);
        for (; ; ) {
            // Its tag may be changed by others until we have the locks that belong to it.
            boolean tagged = (descriptors.state(buffer) & TAG_VALID) != 0;
            int oldHash = tagged ? descriptors.hash(buffer) : hash;
            table.lockBoth(table.partition(oldHash), table.partition(hash));
            int state = descriptors.lockHeader(buffer);
            boolean same =
                    tagged == ((state & TAG_VALID) != 0)
                            && (!tagged || descriptors.hash(buffer) == oldHash);
            boolean free = same && refcount(state) == 0;
            if (free) {
                if (tagged) {
                    table.remove(oldHash, buffer);
                }
                descriptors.setTag(buffer, SPC, DB, REL, FORK, block);
                descriptors.unlockHeader(buffer, TAG_VALID | VALID | USAGECOUNT_ONE);
                table.insert(hash, buffer);
            } else {
                descriptors.unlockHeader(buffer, state);
            }
            table.unlockBoth(table.partition(oldHash), table.partition(hash));
            if (same) {
                return free;
            }
        }
    }

    /**
     * Takes the buffer's page away, as a drop does.
     *
     * @return false when somebody has the buffer pinned, or it holds another block
     */
    boolean unmap(int buffer, int block) {
        int hash = hash(block);
        int partition = table.partition(hash);
        table.lockExclusive(partition);
        int state = descriptors.lockHeader(buffer);
        boolean free =
                refcount(state) == 0
                        && (state & TAG_VALID) != 0
                        && descriptors.hasTag(buffer, SPC, DB, REL, FORK, block);
        if (free) {
            table.remove(hash, buffer);
            descriptors.setTag(buffer, 0, 0, 0, 0, 0);
            descriptors.cleanAndUnlockHeader(buffer, 0);
        } else {
            descriptors.unlockHeader(buffer, state);
        }
        table.unlock(partition);
        return free;
    }

    int pins() {
        int pins = 0;
        for (int buffer = 0; buffer < nbuffers; buffer++) {
            pins += refcount(descriptors.state(buffer));
        }
        return pins;
    }

    @Override
    public void close() {
        memory.release();
    }
}
