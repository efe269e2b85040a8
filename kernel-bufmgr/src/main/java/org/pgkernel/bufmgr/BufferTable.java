package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.LockRank;

/**
 * The mapping table: which buffer holds which block. Buckets of buffers chained through one link a
 * buffer, so the table is never full and an entry is its buffer. A bucket belongs to one of {@link
 * #PARTITIONS} partitions, each with its own lock:
 *
 * <pre>
 *  bucket = hash &amp; (buckets - 1)       partition = hash &amp; 127
 *  heads[bucket], next[buffer]: 0 no chain, 1 end of the chain, else the buffer plus 2
 * </pre>
 *
 * Looking up needs the partition's lock, shared; changing it exclusive. Two partition locks are
 * taken in ascending order ({@link #lockBoth}). {@link OptimisticLookup} follows chains without a
 * lock and says why it may; so that it gets no nonsense, links are written whole, a buffer's own
 * before the one that leads to it. (PostgreSQL: buf_table.c, BufMappingPartitionLock.)
 *
 * <p>Not final: tests come in between two steps of a lookup.
 */
class BufferTable {
    static final int PARTITIONS = 128;

    private static final int NONE = 0;
    private static final int END = 1;
    private static final int FIRST = 2;

    private final BufferDescriptors descriptors;
    private final UnsafeBuffer heads;
    private final UnsafeBuffer next;
    private final int mask;
    private final int partitions;
    private final LockTable locks;

    BufferTable(PoolMemory memory, BufferDescriptors descriptors, int buckets) {
        this(memory, descriptors, buckets, PARTITIONS);
    }

    /**
     * @param partitions a power of two, {@link #PARTITIONS} at most; fewer only in tests
     */
    BufferTable(PoolMemory memory, BufferDescriptors descriptors, int buckets, int partitions) {
        this.descriptors = descriptors;
        this.partitions = partitions;
        this.heads = memory.chainHeads;
        this.next = memory.chainNext;
        this.mask = buckets - 1;
        this.locks =
                new LockTable(
                        memory.partitionLocks,
                        PoolMemory.PARTITION_LOCK_SHIFT,
                        new WaitTable(partitions),
                        LockRank.MAPPING_PARTITION);
    }

    /** A power of two, at least one bucket a buffer and one a partition. */
    static int bucketsFor(int nbuffers) {
        return Math.max(PARTITIONS, Integer.highestOneBit(nbuffers - 1) << 1);
    }

    final int partition(int hash) {
        return hash & partitions - 1;
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

    /**
     * @return the buffer, or -1
     */
    int lookup(int hash, int spc, int db, int rel, int fork, int block) {
        int link = heads.getInt((hash & mask) << 2);
        while (link > END) {
            int buffer = link - FIRST;
            if (descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
                return buffer;
            }
            link = next.getInt(buffer << 2);
        }
        return -1;
    }

    /** The first buffer of the hash's bucket, or less than 0: read without a lock, so a hint. */
    int firstUnlocked(int hash) {
        return heads.getIntAcquire((hash & mask) << 2) - FIRST;
    }

    /** The buffer after this one in whatever chain it is in, or less than 0: as a hint. */
    int nextUnlocked(int buffer) {
        return next.getIntAcquire(buffer << 2) - FIRST;
    }

    /** True if the hash's bucket is empty now; read without a lock. */
    boolean isEmptyBucket(int hash) {
        return heads.getIntVolatile((hash & mask) << 2) <= END;
    }

    /** The first buffer of the hash's bucket, or -1: read without a lock, so perhaps wrong. */
    int headHint(int hash) {
        return Math.max(-1, heads.getInt((hash & mask) << 2) - FIRST);
    }

    /** The hash's partition's lock word, only to bring it into the cache. */
    int touchLock(int hash) {
        return locks.touch(partition(hash));
    }

    /** The buffer after this one in its chain, or -1: read without a lock, so perhaps wrong. */
    int nextHint(int buffer) {
        return Math.max(-1, next.getInt(buffer << 2) - FIRST);
    }

    /** The buffer's link, only to bring it into the cache. */
    int link(int buffer) {
        return next.getInt(buffer << 2);
    }

    void insert(int hash, int buffer) {
        assert locks.heldExclusivelyByMe(partition(hash)) : "mapping changed without its lock";
        assert next.getInt(buffer << 2) == NONE : "BUF-5: buffer in two chains";
        int head = (hash & mask) << 2;
        next.putInt(buffer << 2, Math.max(heads.getInt(head), END));
        heads.putIntRelease(head, buffer + FIRST);
    }

    /**
     * Under the buffer's header lock too: once that is given up, somebody else may put the buffer
     * into another chain.
     */
    void remove(int hash, int buffer) {
        assert locks.heldExclusivelyByMe(partition(hash)) : "mapping changed without its lock";
        int after = next.getInt(buffer << 2);
        int head = (hash & mask) << 2;
        int link = heads.getInt(head);
        if (link == buffer + FIRST) {
            heads.putIntRelease(head, after);
        } else {
            int before;
            do {
                assert link > END : "BUF-5: buffer not in its chain";
                before = link - FIRST;
                link = next.getInt(before << 2);
            } while (link != buffer + FIRST);
            next.putIntRelease(before << 2, after);
        }
        next.putIntOpaque(buffer << 2, NONE);
    }

    // For the inspection only: a table at rest.

    int buckets() {
        return mask + 1;
    }

    int firstOf(int bucket) {
        return Math.max(-1, heads.getInt(bucket << 2) - FIRST);
    }

    int nextOf(int buffer) {
        return Math.max(-1, next.getInt(buffer << 2) - FIRST);
    }

    boolean isChained(int buffer) {
        return next.getInt(buffer << 2) != NONE;
    }

    boolean anyLockHeld() {
        for (int i = 0; i < partitions; i++) {
            if (locks.isHeld(i)) {
                return true;
            }
        }
        return false;
    }
}
