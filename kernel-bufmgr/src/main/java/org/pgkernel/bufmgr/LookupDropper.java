package org.pgkernel.bufmgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Probes the mapping table for each block, if every existing fork's size is remembered and accurate
 * and the blocks together are fewer than a part of the pool (a 32nd, in PostgreSQL); else scans. A
 * page past the size would be missed, and its later write would fail for ever: therefore one fork
 * of unknown size sends the whole call to the scan. (PostgreSQL 14 and later:
 * DropRelFileNodeBuffers, DropRelFileNodesAllBuffers, FindAndDropRelFileNodeBuffers,
 * BUF_DROP_FULL_SCAN_THRESHOLD.)
 */
non-sealed class LookupDropper implements RelationDropper {
    private final BufferAllocator allocator;
    private final FullScanDropper scan;
    private final long threshold;

    /**
     * @param threshold lookups are made for fewer blocks than this
     */
    LookupDropper(BufferAllocator allocator, long threshold, FullScanDropper scan) {
        this.allocator = allocator;
        this.scan = scan;
        this.threshold = threshold;
    }

    @Override
    public int dropForks(
            SmgrRelation relation,
            ForkNumber[] forks,
            int[] firstBlocks,
            int count,
            DropWork work) {
        work.ensureBlocks(count);
        long total = 0;
        for (int i = 0; i < count; i++) {
            int blocks = blocks(relation, forks[i]);
            if (blocks == UNKNOWN) {
                work.reason = DropReason.UNKNOWN_SIZE;
                return scan.dropForks(relation, forks, firstBlocks, count, work);
            }
            work.blocks[i] = blocks;
            total += blocksToDrop(blocks, firstBlocks[i]);
        }
        if (!probingPays(total, threshold)) {
            work.reason = DropReason.ABOVE_THRESHOLD;
            return scan.dropForks(relation, forks, firstBlocks, count, work);
        }
        looksUp(work);
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
                    work.reason = DropReason.UNKNOWN_SIZE;
                    return scan.dropRelations(relations, count, work);
                }
                work.blocks[work.index(i, fork)] = blocks;
                total += blocksToDrop(blocks, 0);
            }
        }
        if (!probingPays(total, threshold)) {
            work.reason = DropReason.ABOVE_THRESHOLD;
            return scan.dropRelations(relations, count, work);
        }
        looksUp(work);
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            for (int f = 0; f < ForkNumber.COUNT; f++) {
                ForkNumber fork = ForkNumber.of(f);
                dropped += dropFork(relations[i], fork, 0, work.blocks[work.index(i, fork)], work);
            }
        }
        return dropped;
    }

    static final int UNKNOWN = BlockNumber.INVALID;

    /**
     * The fork's size if that is certain: remembered and accurate, or 0 for a fork that does not
     * exist; else {@link #UNKNOWN}.
     */
    int blocks(SmgrRelation relation, ForkNumber fork) {
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

    int dropFork(SmgrRelation relation, ForkNumber fork, int first, int blocks, DropWork work) {
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        long end = BlockNumber.toLong(blocks);
        int dropped = 0;
        for (long block = BlockNumber.toLong(first); block < end; block++) {
            work.probes++;
            if (allocator.drop(spc, db, rel, fork.ordinal(), (int) block)) {
                dropped++;
            }
        }
        return dropped;
    }

    private static void looksUp(DropWork work) {
        work.reason = DropReason.FEW_BLOCKS;
        work.ended(DropPath.LOOKUP, DropStopReason.RANGE_COVERED);
    }

    /** Databases have no blocks to look up. */
    @Override
    public int dropDatabase(int db, DropWork work) {
        return scan.dropDatabase(db, work);
    }

    @Override
    public String explain(SmgrRelation relation) {
        StringBuilder text = new StringBuilder("LOOKUP: ");
        long total = 0;
        for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
            int blocks = blocks(relation, ForkNumber.of(fork));
            if (blocks == UNKNOWN) {
                return text.append("the size of the ")
                        .append(Place.fork(fork))
                        .append(" fork is unknown: full scan")
                        .toString();
            }
            total += BlockNumber.toLong(blocks);
        }
        return text.append(total)
                .append(" blocks, limit ")
                .append(threshold)
                .append(probingPays(total, threshold) ? ": lookup" : ": full scan")
                .toString();
    }
}
