package org.pgkernel.fsm;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Free space where small heaps have no map on disk. What both policies share: a relation gets its
 * fork when it has outgrown the threshold, or rather when something is first recorded after that; a
 * fork that exists is kept up to date and asked first whatever the size, since a relation that was
 * cut keeps its own. What a policy says of a small relation comes after that. (PostgreSQL:
 * fsm_allow_writes, of commit b0eaa4c51bb.)
 */
abstract class SmallTableFreeSpace implements FreeSpace {
    final FreeSpaceMap map = new FreeSpaceMap();
    final int threshold;

    SmallTableFreeSpace(int threshold) {
        this.threshold = threshold;
    }

    static int blocks(SmgrRelation relation) {
        return relation.nblocks(ForkNumber.MAIN);
    }

    boolean isSmall(int heapBlocks) {
        return Integer.compareUnsigned(heapBlocks, threshold) <= 0;
    }

    /** True if the relation has a fork, or may have one. */
    boolean usesMap(SmgrRelation relation, int heapBlock, int heapBlocks) {
        return Integer.compareUnsigned(heapBlock, threshold) >= 0
                || !isSmall(heapBlocks)
                || relation.exists(ForkNumber.FSM);
    }

    @Override
    public int firstPage(PageBuffers buffers, SmgrRelation relation, int heapBlocks, int bytes) {
        int found = map.pageWithFreeSpace(buffers, relation, bytes);
        if (found != BlockNumber.INVALID) {
            return found;
        }
        return isSmall(heapBlocks) ? firstOfSmall(relation, heapBlocks, bytes) : heapBlocks - 1;
    }

    @Override
    public int recordAndFind(
            PageBuffers buffers, SmgrRelation relation, int oldBlock, int oldFree, int bytes) {
        int heapBlocks = blocks(relation);
        boolean isSmall = isSmall(heapBlocks);
        if (isSmall) {
            tried(relation, oldBlock, oldFree, bytes);
        }
        if (usesMap(relation, oldBlock, heapBlocks)) {
            beforeMapIsUsed(buffers, relation, heapBlocks);
            int found = map.recordAndFind(buffers, relation, oldBlock, oldFree, bytes);
            if (found != BlockNumber.INVALID || !isSmall) {
                return found;
            }
        }
        return nextOfSmall(relation, heapBlocks, bytes);
    }

    @Override
    public void record(PageBuffers buffers, SmgrRelation relation, int heapBlock, int freeBytes) {
        int heapBlocks = blocks(relation);
        if (usesMap(relation, heapBlock, heapBlocks)) {
            beforeMapIsUsed(buffers, relation, heapBlocks);
            map.record(buffers, relation, heapBlock, freeBytes);
        }
        if (isSmall(heapBlocks)) {
            recordSmall(relation, heapBlock, freeBytes);
        }
    }

    @Override
    public int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        return map.recordedFree(buffers, relation, heapBlock);
    }

    @Override
    public void vacuumRange(PageBuffers buffers, SmgrRelation relation, int start, int end) {
        map.vacuumRange(buffers, relation, start, end);
    }

    /**
     * A search of a small relation begins, without a target.
     *
     * @param heapBlocks may be 0
     */
    abstract int firstOfSmall(SmgrRelation relation, int heapBlocks, int bytes);

    /** A page had too little room; it may be the target, and the first that was tried. */
    abstract void tried(SmgrRelation relation, int block, int free, int bytes);

    /** The search goes on. */
    abstract int nextOfSmall(SmgrRelation relation, int heapBlocks, int bytes);

    void recordSmall(SmgrRelation relation, int heapBlock, int freeBytes) {}

    /** Something is going to be recorded in the fork, which may come to be by that. */
    void beforeMapIsUsed(PageBuffers buffers, SmgrRelation relation, int heapBlocks) {}
}
