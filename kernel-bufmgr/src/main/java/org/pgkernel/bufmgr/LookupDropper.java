package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.TAG_VALID;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Probes the mapping table for each block, if every existing fork's size is remembered and accurate and the blocks together are fewer
 * than a 32nd of the pool; else scans. A page past the size would be missed, and its later write would fail for ever: therefore one
 * fork of unknown size sends the whole call to the scan. (PostgreSQL 14 and later: DropRelFileNodeBuffers,
 * DropRelFileNodesAllBuffers, FindAndDropRelFileNodeBuffers, BUF_DROP_FULL_SCAN_THRESHOLD.)
 */
final class LookupDropper implements RelationDropper {
    private static final int THRESHOLD_DIVISOR = 32;

    private final BufferDescriptors descriptors;
    private final BufferAllocator allocator;
    private final FullScanDropper scan;
    private final long threshold;

    LookupDropper(BufferDescriptors descriptors, BufferAllocator allocator, int nbuffers, FullScanDropper scan) {
        this.descriptors = descriptors;
        this.allocator = allocator;
        this.scan = scan;
        this.threshold = nbuffers / THRESHOLD_DIVISOR;
    }

    @Override
    public int dropForks(SmgrRelation relation, ForkNumber[] forks, int[] firstBlocks, int count, DropWork work) {
        work.ensureBlocks(count);
        long total = 0;
        for (int i = 0; i < count; i++) {
            int blocks = blocks(relation, forks[i]);
            if (blocks == UNKNOWN) {
                return scan.dropForks(relation, forks, firstBlocks, count, work);
            }
            work.blocks[i] = blocks;
            total += blocksToDrop(blocks, firstBlocks[i]);
        }
        if (!probingPays(total, threshold)) {
            return scan.dropForks(relation, forks, firstBlocks, count, work);
        }
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            dropped += dropFork(relation, forks[i], firstBlocks[i], work.blocks[i], work);
        }
        return dropped;
    }

    @Override
    public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
        work.ensureBlocks(count * ForkNumber.COUNT);
        long total = 0;
        for (int i = 0; i < count; i++) {
            for (int f = 0; f < ForkNumber.COUNT; f++) {
                ForkNumber fork = ForkNumber.of(f);
                int blocks = blocks(relations[i], fork);
                if (blocks == UNKNOWN) {
                    return scan.dropRelations(relations, count, work);
                }
                work.blocks[work.index(i, fork)] = blocks;
                total += blocksToDrop(blocks, 0);
            }
        }
        if (!probingPays(total, threshold)) {
            return scan.dropRelations(relations, count, work);
        }
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            for (int f = 0; f < ForkNumber.COUNT; f++) {
                ForkNumber fork = ForkNumber.of(f);
                dropped += dropFork(relations[i], fork, 0, work.blocks[work.index(i, fork)], work);
            }
        }
        return dropped;
    }

    private static final int UNKNOWN = BlockNumber.INVALID;

    /** The fork's size if that is certain: remembered and accurate, or 0 for a fork that does not exist; else {@link #UNKNOWN}. */
    private static int blocks(SmgrRelation relation, ForkNumber fork) {
        long size = relation.rememberedSize(fork);
        if (ForkSize.isKnown(size) && ForkSize.isAccurate(size)) {
            return ForkSize.blocks(size);
        }
        return relation.exists(fork) ? UNKNOWN : 0;
    }

    /** Blocks at and after {@code first}; none when the fork ends before it. All unsigned. */
    static long blocksToDrop(int blocks, int first) {
        return Math.max(0, BlockNumber.toLong(blocks) - BlockNumber.toLong(first));
    }

    static boolean probingPays(long blocks, long threshold) {
        return blocks < threshold;
    }

    private int dropFork(SmgrRelation relation, ForkNumber fork, int first, int blocks, DropWork work) {
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        long end = BlockNumber.toLong(blocks);
        int dropped = 0;
        for (long block = BlockNumber.toLong(first); block < end; block++) {
            work.probes++;
            int buffer = allocator.probe(spc, db, rel, fork.ordinal(), (int) block);
            if (buffer < 0) {
                continue;
            }
            // Somebody may have given the buffer to another page since the probe.
            int state = descriptors.lockHeader(buffer);
            if ((state & TAG_VALID) != 0 && descriptors.hasTag(buffer, spc, db, rel, fork.ordinal(), (int) block)) {
                if (allocator.invalidate(buffer, state)) {
                    dropped++;
                }
            } else {
                descriptors.unlockHeader(buffer, state);
            }
        }
        return dropped;
    }
}
