package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * The mapping table: which buffer holds which block. Buckets of buffers chained through one link a buffer, so the table is never full
 * and an entry is its buffer. A bucket belongs to one of {@link #PARTITIONS} partitions, each with its own lock:
 *
 * <pre>
 *  bucket = hash &amp; (buckets - 1)       partition = hash &amp; 127
 *  heads[bucket] = buffer + 1 or 0     next[buffer] = buffer + 1 or 0
 * </pre>
 *
 * Looking up needs the partition's lock, shared; changing it exclusive. Two partition locks are taken in ascending order
 * ({@link #lockBoth}). (PostgreSQL: buf_table.c, BufMappingPartitionLock.)
 */
final class BufferTable {
    static final int PARTITIONS = 128;

    private final BufferDescriptors descriptors;
    private final UnsafeBuffer heads;
    private final UnsafeBuffer next;
    private final int mask;
    private final LockTable locks;

    BufferTable(PoolMemory memory, BufferDescriptors descriptors, int buckets) {
        this.descriptors = descriptors;
        this.heads = memory.chainHeads;
        this.next = memory.chainNext;
        this.mask = buckets - 1;
        this.locks = new LockTable(memory.partitionLocks, PoolMemory.PARTITION_LOCK_SHIFT, new WaitTable(PARTITIONS));
    }

    /** A power of two, at least one bucket a buffer and one a partition. */
    static int bucketsFor(int nbuffers) {
        return Math.max(PARTITIONS, Integer.highestOneBit(nbuffers - 1) << 1);
    }

    static int partition(int hash) {
        return hash & PARTITIONS - 1;
    }

    void lockShared(int partition) {
        locks.lockShared(partition);
    }

    void lockExclusive(int partition) {
        locks.lockExclusive(partition);
    }

    void unlock(int partition) {
        locks.unlock(partition);
    }

    /** Locks two partitions, which may be the same one, exclusively: the lower first, always. */
    void lockBoth(int one, int other) {
        locks.lockExclusive(Math.min(one, other));
        if (one != other) {
            locks.lockExclusive(Math.max(one, other));
        }
    }

    void unlockBoth(int one, int other) {
        locks.unlock(one);
        if (one != other) {
            locks.unlock(other);
        }
    }

    /** @return the buffer, or -1 */
    int lookup(int hash, int spc, int db, int rel, int fork, int block) {
        int buffer = heads.getInt((hash & mask) << 2) - 1;
        while (buffer >= 0 && !descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
            buffer = next.getInt(buffer << 2) - 1;
        }
        return buffer;
    }

    void insert(int hash, int buffer) {
        assert locks.heldExclusivelyByMe(partition(hash)) : "mapping changed without its lock";
        int head = (hash & mask) << 2;
        next.putInt(buffer << 2, heads.getInt(head));
        heads.putInt(head, buffer + 1);
    }

    void remove(int hash, int buffer) {
        assert locks.heldExclusivelyByMe(partition(hash)) : "mapping changed without its lock";
        int head = (hash & mask) << 2;
        int entry = heads.getInt(head);
        if (entry == buffer + 1) {
            heads.putInt(head, next.getInt(buffer << 2));
        } else {
            int before = entry;
            while ((entry = next.getInt(before - 1 << 2)) != buffer + 1) {
                assert entry != 0 : "buffer not in its chain";
                before = entry;
            }
            next.putInt(before - 1 << 2, next.getInt(buffer << 2));
        }
        next.putInt(buffer << 2, 0);
    }

    // For the inspection only: a table at rest.

    int buckets() {
        return mask + 1;
    }

    int firstOf(int bucket) {
        return heads.getInt(bucket << 2) - 1;
    }

    int nextOf(int buffer) {
        return next.getInt(buffer << 2) - 1;
    }

    boolean anyLockHeld() {
        for (int i = 0; i < PARTITIONS; i++) {
            if (locks.isHeld(i)) {
                return true;
            }
        }
        return false;
    }
}
