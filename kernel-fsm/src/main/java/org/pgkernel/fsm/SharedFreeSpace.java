package org.pgkernel.fsm;

import java.util.concurrent.atomic.AtomicInteger;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Policy {@link FsmPolicy#SMALL_TABLES_SHARED}: what any backend saw of a small relation's pages is
 * in one word that all share, {@link SmgrRelation#hint}, a byte a block, block 0 lowest:
 *
 * <pre>
 *   0        nothing is known: the page is worth a try
 *   1 to 255 category of free space + 1; the two top categories share a value
 * </pre>
 *
 * <p>It is changed by compare and set, so no lock is held and no record is lost. Who finds a page
 * full writes that down before he tries another one: a full page is found full once, not once by
 * every backend. What vacuum frees is found at once, without upper levels. The word is invalidated,
 * which means 0: by a truncation ({@link RelationTruncation}), with the relation's handle (drop,
 * new files, restart), and when the relation has outgrown it: then whoever comes first carries it
 * into the map.
 *
 * <p>Backends begin their searches at different pages, so that they spread. A page that is not
 * known is tried when no known one has room.
 */
class SharedFreeSpace extends SmallTableFreeSpace {
    static final int UNKNOWN = 0;

    /** The greatest category that a byte tells apart. */
    private static final int TOP = 254;

    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private final int number;

    SharedFreeSpace(int threshold) {
        this(threshold, NUMBERS.getAndIncrement());
    }

    /**
     * @param number decides where its searches begin
     */
    SharedFreeSpace(int threshold, int number) {
        super(threshold);
        this.number = number & Integer.MAX_VALUE;
    }

    @Override
    public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
        int found = map.pageWithFreeSpace(buffers, relation, bytes);
        if (found != BlockNumber.INVALID) {
            return found;
        }
        int heapBlocks = blocks(relation);
        return isSmall(heapBlocks)
                ? firstOfSmall(relation, heapBlocks, bytes)
                : BlockNumber.INVALID;
    }

    @Override
    int firstOfSmall(SmgrRelation relation, int heapBlocks, int bytes) {
        return find(relation.hint(), heapBlocks, needed(bytes));
    }

    /** The page is too full for this request, whatever its category is rounded to. */
    @Override
    void tried(SmgrRelation relation, int block, int free, int bytes) {
        int category = FreeSpaceMap.category(free);
        put(relation, block, free < bytes ? Math.min(category, needed(bytes) - 1) : category);
    }

    @Override
    int nextOfSmall(SmgrRelation relation, int heapBlocks, int bytes) {
        return firstOfSmall(relation, heapBlocks, bytes);
    }

    @Override
    void recordSmall(SmgrRelation relation, int heapBlock, int freeBytes) {
        put(relation, heapBlock, FreeSpaceMap.category(freeBytes));
    }

    private static int needed(int bytes) {
        return Math.min(FreeSpaceMap.categoryNeeded(bytes), TOP);
    }

    void put(SmgrRelation relation, int block, int category) {
        if (Integer.compareUnsigned(block, threshold) >= 0) {
            return;
        }
        for (; ; ) {
            long seen = relation.hint();
            long changed = with(seen, block, category);
            if (changed == seen || relation.replaceHint(seen, changed)) {
                return;
            }
        }
    }

    static long with(long word, int block, int category) {
        int shift = block * Byte.SIZE;
        return word & ~(0xFFL << shift) | Math.min(category, TOP) + 1L << shift;
    }

    static int value(long word, int block) {
        return (int) (word >>> block * Byte.SIZE) & 0xFF;
    }

    private int find(long word, int heapBlocks, int needed) {
        if (heapBlocks == 0) {
            return BlockNumber.INVALID;
        }
        int unknown = BlockNumber.INVALID;
        int block = heapBlocks - 1 - number % heapBlocks;
        for (int i = 0; i < heapBlocks; i++) {
            int value = value(word, block);
            if (value > needed) {
                return block;
            }
            if (value == UNKNOWN && unknown == BlockNumber.INVALID) {
                unknown = block;
            }
            block = block == 0 ? heapBlocks - 1 : block - 1;
        }
        return unknown;
    }

    @Override
    public int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        if (Integer.compareUnsigned(heapBlock, threshold) < 0) {
            int value = value(relation.hint(), heapBlock);
            if (value != UNKNOWN) {
                return FreeSpaceMap.freeBytes(value - 1);
            }
        }
        return super.recordedFree(buffers, relation, heapBlock);
    }

    /**
     * The relation has grown out of the word: what is known goes to the map, once, by whoever comes
     * first.
     */
    @Override
    void beforeMapIsUsed(PageBuffers buffers, SmgrRelation relation, int heapBlocks) {
        long word = relation.hint();
        if (word == 0 || isSmall(heapBlocks) || !relation.replaceHint(word, 0)) {
            return;
        }
        for (int block = 0; block < threshold; block++) {
            int value = value(word, block);
            if (value != UNKNOWN) {
                map.record(buffers, relation, block, FreeSpaceMap.freeBytes(value - 1));
            }
        }
    }

    /** For {@link RelationTruncation}: nothing is known of the relation any more. */
    static void invalidate(SmgrRelation relation) {
        for (long seen = relation.hint(); seen != 0; seen = relation.hint()) {
            relation.replaceHint(seen, 0);
        }
    }
}
