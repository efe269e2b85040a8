package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.TAG_VALID;

import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Looks at every descriptor of the pool, in order: first at the tag without a lock, then, if it
 * matches, again under the header lock. The first look cannot miss one, as no buffer can come to
 * hold a page of the relation meanwhile.
 *
 * <p>Always all {@code nbuffers}, never-used ones too: this is the reference whose cost is
 * published. (PostgreSQL: DropRelFileNodeBuffers, DropRelFileNodesAllBuffers, DropDatabaseBuffers,
 * bufmgr.c.)
 */
non-sealed class FullScanDropper implements RelationDropper {
    /**
     * With more relations than this each tag is looked up by binary search. (PostgreSQL:
     * RELS_BSEARCH_THRESHOLD.)
     */
    static final int BSEARCH_THRESHOLD = 20;

    private final BufferDescriptors descriptors;
    private final BufferAllocator allocator;
    private final int nbuffers;

    FullScanDropper(BufferDescriptors descriptors, BufferAllocator allocator, int nbuffers) {
        this.descriptors = descriptors;
        this.allocator = allocator;
        this.nbuffers = nbuffers;
    }

    @Override
    public int dropForks(
            SmgrRelation relation,
            ForkNumber[] forks,
            int[] firstBlocks,
            int count,
            DropWork work) {
        begin(work);
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        int dropped = 0;
        for (int buffer = next(0, spc, db, rel);
                buffer < nbuffers;
                buffer = next(buffer + 1, spc, db, rel)) {
            int state = descriptors.lockHeader(buffer);
            if ((state & TAG_VALID) != 0
                    && descriptors.isOfRelation(buffer, spc, db, rel)
                    && isFrom(buffer, forks, firstBlocks, count)) {
                if (allocator.invalidate(buffer, state)) {
                    dropped++;
                }
            } else {
                descriptors.unlockHeader(buffer, state);
            }
        }
        return dropped;
    }

    private int next(int from, int spc, int db, int rel) {
        return descriptors.nextOfRelation(from, nbuffers, spc, db, rel);
    }

    boolean isFrom(int buffer, ForkNumber[] forks, int[] firstBlocks, int count) {
        int fork = descriptors.fork(buffer);
        for (int i = 0; i < count; i++) {
            if (forks[i].ordinal() == fork
                    && Integer.compareUnsigned(descriptors.block(buffer), firstBlocks[i]) >= 0) {
                return true;
            }
        }
        return false;
    }

    @Override
    public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
        begin(work);
        work.take(relations, count, count > BSEARCH_THRESHOLD);
        int dropped = 0;
        for (int buffer = next(0, nbuffers, work, count);
                buffer < nbuffers;
                buffer = next(buffer + 1, nbuffers, work, count)) {
            int state = descriptors.lockHeader(buffer);
            // The buffer may have got another page, even one of another relation, since the first
            // look.
            if ((state & TAG_VALID) != 0 && next(buffer, buffer + 1, work, count) == buffer) {
                if (allocator.invalidate(buffer, state)) {
                    dropped++;
                }
            } else {
                descriptors.unlockHeader(buffer, state);
            }
        }
        return dropped;
    }

    private int next(int from, int end, DropWork work, int count) {
        if (count == 1) {
            return descriptors.nextOfRelation(from, end, work.spcs[0], work.dbs[0], work.rels[0]);
        }
        return count <= BSEARCH_THRESHOLD
                ? descriptors.nextOfAny(from, end, work.spcs, work.dbs, work.rels, count)
                : descriptors.nextOfSorted(from, end, work.spcs, work.dbs, work.rels, count);
    }

    @Override
    public int dropDatabase(int db, DropWork work) {
        begin(work);
        int dropped = 0;
        for (int buffer = descriptors.nextOfDatabase(0, nbuffers, db);
                buffer < nbuffers;
                buffer = descriptors.nextOfDatabase(buffer + 1, nbuffers, db)) {
            int state = descriptors.lockHeader(buffer);
            if ((state & TAG_VALID) != 0 && descriptors.db(buffer) == db) {
                if (allocator.invalidate(buffer, state)) {
                    dropped++;
                }
            } else {
                descriptors.unlockHeader(buffer, state);
            }
        }
        return dropped;
    }

    private void begin(DropWork work) {
        work.ended(DropPath.FULL_SCAN, DropStopReason.SCAN_COMPLETE);
        work.bytesScanned += (long) nbuffers * BufferTag.LENGTH;
    }

    @Override
    public String explain(SmgrRelation relation) {
        return "FULL_SCAN looks at "
                + nbuffers
                + " tags, "
                + (long) nbuffers * BufferTag.LENGTH
                + " bytes";
    }
}
