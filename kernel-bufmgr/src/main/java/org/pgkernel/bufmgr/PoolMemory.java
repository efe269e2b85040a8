package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.NativeMemory;

/**
 * The pool's memory: the blocks, and the metadata as parallel arrays. All of it is reserved, none
 * of it touched: it reads as zeros, and zeros are the state of a pool in which nothing was ever
 * read. So opening costs the same at any size.
 *
 * <p>Every metadata array stays below 2 GiB at {@link BufferPool#MAX_BUFFERS} and is wrapped once.
 */
final class PoolMemory {
    /**
     * Distance of two partition locks: two cache lines, so that neighbours do not disturb each
     * other.
     */
    static final int PARTITION_LOCK_SHIFT = 7;

    private static final long HUGE_PAGE = 2L << 20;

    /** Address of block 0. */
    final long blocks;

    /** State words, 8 bytes each. */
    final UnsafeBuffer states = new UnsafeBuffer(0L, 0);

    /** Tags, 20 bytes each. */
    final UnsafeBuffer tags = new UnsafeBuffer(0L, 0);

    /** Content locks, 8 bytes each. */
    final UnsafeBuffer contentLocks = new UnsafeBuffer(0L, 0);

    /** Mapping table: next buffer of the same bucket, coded; 4 bytes each. */
    final UnsafeBuffer chainNext = new UnsafeBuffer(0L, 0);

    /** Mapping table: first buffer of a bucket, coded; 4 bytes each. */
    final UnsafeBuffer chainHeads = new UnsafeBuffer(0L, 0);

    /** Free list links, 4 bytes each. */
    final UnsafeBuffer freeNext = new UnsafeBuffer(0L, 0);

    /** Queues of a replacement policy: next newer and next older buffer, coded; 4 bytes each. */
    final UnsafeBuffer newer = new UnsafeBuffer(0L, 0);

    final UnsafeBuffer older = new UnsafeBuffer(0L, 0);

    /** Pages that left, see {@link GhostTable}. */
    final UnsafeBuffer ghosts = new UnsafeBuffer(0L, 0);

    /** One bit a buffer, in 8-byte words, and their summary: see {@link DirtyBitmap}. */
    final UnsafeBuffer dirtyBits = new UnsafeBuffer(0L, 0);

    /** Mapping partitions' locks, {@code 1 << PARTITION_LOCK_SHIFT} bytes apart. */
    final UnsafeBuffer partitionLocks = new UnsafeBuffer(0L, 0);

    private final UnsafeBuffer[] arrays = {
        states,
        tags,
        contentLocks,
        chainNext,
        chainHeads,
        freeNext,
        dirtyBits,
        partitionLocks,
        newer,
        older,
        ghosts
    };
    private final long[] addresses = new long[arrays.length];
    private final int[] lengths = new int[arrays.length];
    private final long blockBytes;
    private boolean released;

    PoolMemory(int nbuffers, int buckets, int partitions) {
        this(nbuffers, buckets, partitions, Replacement.CLOCK_SWEEP);
    }

    PoolMemory(int nbuffers, int buckets, int partitions, Replacement policy) {
        blockBytes = (long) nbuffers * Page.SIZE;
        blocks = NativeMemory.reserve(blockBytes);
        lengths[0] = nbuffers * 8;
        lengths[1] = nbuffers * BufferTag.LENGTH;
        lengths[2] = nbuffers * 8;
        lengths[3] = nbuffers * 4;
        lengths[4] = buckets * 4;
        lengths[5] = nbuffers * 4;
        lengths[6] = DirtyBitmap.bytes(nbuffers);
        lengths[7] = partitions << PARTITION_LOCK_SHIFT;
        boolean queues = policy != Replacement.CLOCK_SWEEP;
        lengths[8] = queues ? nbuffers * 4 : 0;
        lengths[9] = queues ? nbuffers * 4 : 0;
        lengths[10] =
                policy == Replacement.S3_FIFO ? GhostTable.bytes(S3Fifo.remembered(nbuffers)) : 0;
        boolean complete = false;
        try {
            for (int i = 0; i < arrays.length; i++) {
                if (lengths[i] == 0) {
                    continue; // the policy does not need it
                }
                addresses[i] = NativeMemory.reserve(lengths[i]);
                if (lengths[i] >= HUGE_PAGE) {
                    NativeMemory.adviseHuge(addresses[i], lengths[i]);
                }
                arrays[i].wrap(addresses[i], lengths[i]);
            }
            complete = true;
        } finally {
            if (!complete) {
                release();
            }
        }
    }

    /** Gives the memory back; later use of the metadata is an index error, not a crash. */
    void release() {
        if (released) {
            return;
        }
        released = true;
        for (int i = 0; i < arrays.length; i++) {
            arrays[i].wrap(0L, 0);
            if (addresses[i] != 0) {
                NativeMemory.release(addresses[i], lengths[i]);
            }
        }
        NativeMemory.release(blocks, blockBytes);
    }
}
