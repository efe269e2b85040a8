package org.pgkernel.bufmgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Walks the lists of {@link BufferLists}: needs no size and looks at nothing but the forks' own
 * buffers. Databases are scanned for, as in the thread's patch.
 */
non-sealed class ListDropper implements RelationDropper {
    private final BufferAllocator allocator;
    private final BufferDescriptors descriptors;
    private final BufferLists lists;
    private final FullScanDropper scan;

    ListDropper(
            BufferDescriptors descriptors,
            BufferAllocator allocator,
            BufferLists lists,
            FullScanDropper scan) {
        this.descriptors = descriptors;
        this.allocator = allocator;
        this.lists = lists;
        this.scan = scan;
    }

    @Override
    public int dropForks(
            SmgrRelation relation,
            ForkNumber[] forks,
            int[] firstBlocks,
            int count,
            DropWork work) {
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            dropped += dropFork(relation, forks[i].ordinal(), firstBlocks[i], work);
        }
        return dropped;
    }

    @Override
    public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
                dropped += dropFork(relations[i], fork, 0, work);
            }
        }
        return dropped;
    }

    @Override
    public int dropDatabase(int db, DropWork work) {
        return scan.dropDatabase(db, work);
    }

    private int dropFork(SmgrRelation relation, int fork, int first, DropWork work) {
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        int count = lists.copy(spc, db, rel, fork, work);
        if (count != 0) {
            work.ended(DropPath.LIST_WALK, DropStopReason.LIST_ENDED);
        }
        int dropped = 0;
        for (int i = 0; i < count; i++) {
            int buffer = work.buffers[i];
            int state = descriptors.lockHeader(buffer);
            // Whoever has left the list since it was copied has lost the page.
            if ((state & BufferState.TAG_VALID) != 0
                    && descriptors.fork(buffer) == fork
                    && descriptors.isOfRelation(buffer, spc, db, rel)
                    && Integer.compareUnsigned(descriptors.block(buffer), first) >= 0) {
                if (allocator.invalidate(buffer, state)) {
                    dropped++;
                }
            } else {
                descriptors.unlockHeader(buffer, state);
            }
        }
        return dropped;
    }

    @Override
    public String explain(SmgrRelation relation) {
        StringBuilder text = new StringBuilder("DLIST walks ");
        for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
            text.append(fork == 0 ? "" : ", ")
                    .append(Place.fork(fork))
                    .append(' ')
                    .append(
                            lists.length(
                                    relation.spcOid(),
                                    relation.dbOid(),
                                    relation.relNumber(),
                                    fork));
        }
        return text.append(" buffers").toString();
    }
}
