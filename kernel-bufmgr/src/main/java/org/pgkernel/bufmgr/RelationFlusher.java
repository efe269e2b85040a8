package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Writes the dirty buffers of relations or of a database, sorted, and nothing else. Others may
 * read, change and replace pages meanwhile, of the victims too: everything that was dirty when the
 * call began is in its file when it returns, written by it or by another.
 *
 * <p>There are up to three ways to find them, all right, and the one estimated to be cheapest
 * ({@link DropCosts}) is taken: to walk the dirty buffers of the whole pool; and where {@link
 * ResidentForks} are kept, to ask the mapping table for each block below the ends of the victims'
 * resident pages, or to scan the fingerprints. When no page of the victims is in the pool, or
 * nothing is dirty, it is done at once.
 *
 * <p>Why each finds them, with others at work. Say a page was dirty when the call began; then it
 * had been mapped and its dirty bit set before. If it stays in its buffer and dirty, then its bit
 * can be found, its fork's end is past it, its key is in the mapping table and its fingerprint set
 * from before the search to its end, so each search meets it. If not, somebody has written it, or a
 * drop has thrown it away: there is nothing to do. Unlike a drop, a flush never stops because as
 * many pages as the fork had were met: others may have come in meanwhile.
 *
 * <p>A buffer found may hold another page when its turn comes. Its tag is looked at again under the
 * header lock: so nothing but victims is written. (PostgreSQL: FlushRelationBuffers,
 * FlushRelationsAllBuffers, FlushDatabaseBuffers, each a walk over all descriptors.)
 */
class RelationFlusher {
    private final BufferDescriptors descriptors;
    private final DirtyBitmap dirty;
    private final BufferReplacement replacement;
    private final BufferAllocator allocator;
    private final WriteOut out;

    /** Null when the drop strategy keeps none. */
    private final ResidentForks resident;

    private final DropCosts costs;

    RelationFlusher(
            BufferDescriptors descriptors,
            DirtyBitmap dirty,
            BufferReplacement replacement,
            BufferAllocator allocator,
            WriteOut out,
            ResidencyTracker tracker,
            DropCosts costs) {
        this.descriptors = descriptors;
        this.dirty = dirty;
        this.replacement = replacement;
        this.allocator = allocator;
        this.out = out;
        this.resident = tracker instanceof ResidentForks forks ? forks : null;
        this.costs = costs;
    }

    void relations(SmgrRelation[] relations, int count, FlushStatistics statistics) {
        flush(FlushWork.of(relations, count), statistics);
    }

    void database(int db, FlushStatistics statistics) {
        flush(FlushWork.ofDatabase(db), statistics);
    }

    private void flush(FlushWork work, FlushStatistics statistics) {
        FlushPath path = find(work);
        work.order.sort();
        int written = 0;
        try {
            for (int i = 0; i < work.order.count(); i++) {
                if (write(work.order.buffer(i), work)) {
                    written++;
                }
            }
        } finally {
            synchronized (statistics) {
                statistics.add(path, work, written);
            }
        }
    }

    private boolean write(int buffer, FlushWork work) {
        int state = descriptors.lockHeader(buffer);
        if (isVictim(buffer, work)) {
            return out.writeLocked(buffer, state, WriteOrigin.FLUSH, null);
        }
        descriptors.unlockHeader(buffer, state);
        return false;
    }

    /** Under the header lock, or to be repeated under it. */
    boolean isVictim(int buffer, FlushWork work) {
        return work.isVictim(
                descriptors.spc(buffer), descriptors.db(buffer), descriptors.rel(buffer));
    }

    /** Puts the victims' dirty buffers into the work's order. */
    private FlushPath find(FlushWork work) {
        int groups = dirty.groupsNotEmpty();
        if (groups == 0) {
            return FlushPath.NOTHING_TO_DO;
        }
        FlushPath path = choose(work, groups);
        switch (path) {
            case NOTHING_TO_DO -> {}
            case DIRTY_BITMAP -> walkDirty(work);
            case LOOKUP -> lookUp(work);
            case FINGERPRINT_SCAN -> scan(work);
        }
        return path;
    }

    /**
     * @param groups of the dirty bitmap that are not empty
     */
    FlushPath choose(FlushWork work, int groups) {
        if (resident == null) {
            return FlushPath.DIRTY_BITMAP;
        }
        addForks(work);
        DropWork victims = work.victims;
        if (victims.forks == 0) {
            return FlushPath.NOTHING_TO_DO;
        }
        long probes = 0;
        long pages = 0;
        for (int i = 0; i < victims.forks; i++) {
            probes += BlockNumber.toLong(victims.end(i));
            pages += victims.left(i);
        }
        long lookups = costs.lookups(probes);
        if (lookups <= costs.estimate(groups)) {
            return FlushPath.LOOKUP;
        }
        long estimate = dirty.estimate();
        long walk = costs.dirtyWalk(estimate >>> 32, estimate & 0xFFFFFFFFL);
        long scan = costs.scan(replacement.highWater(), victims.forks, pages);
        if (walk <= lookups && walk <= scan) {
            return FlushPath.DIRTY_BITMAP;
        }
        return lookups <= scan ? FlushPath.LOOKUP : FlushPath.FINGERPRINT_SCAN;
    }

    private void addForks(FlushWork work) {
        DropWork victims = work.victims;
        if (work.relations < 0) {
            resident.addDatabase(work.db, victims);
            return;
        }
        for (int i = 0; i < work.relations; i++) {
            int spc = victims.spcs[i];
            int db = victims.dbs[i];
            int rel = victims.rels[i];
            int relationHash = ForkTable.relationHash(spc, db, rel);
            for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
                int hash = ForkTable.hash(relationHash, fork);
                long residents = resident.residents(hash, spc, db, rel, fork);
                if (residents != 0) {
                    victims.addFork(
                            hash,
                            spc,
                            db,
                            rel,
                            fork,
                            0,
                            end(residents),
                            ResidentForks.pages(residents));
                }
            }
        }
    }

    /** For the tests to get wrong. */
    int end(long residents) {
        return ResidentForks.end(residents);
    }

    private void walkDirty(FlushWork work) {
        int end = replacement.highWater();
        for (int buffer = dirty.next(0, end); buffer >= 0; buffer = dirty.next(buffer + 1, end)) {
            work.dirtySeen++;
            addIfDirtyVictim(buffer, work);
        }
    }

    private void lookUp(FlushWork work) {
        DropWork victims = work.victims;
        for (int i = 0; i < victims.forks; i++) {
            int spc = victims.forkSpc(i);
            int db = victims.forkDb(i);
            int rel = victims.forkRel(i);
            int fork = victims.forkNumber(i);
            long end = BlockNumber.toLong(victims.end(i));
            long block = 0;
            while (block < end) {
                int batch = (int) Math.min(BufferAllocator.TOUCHED_AT_ONCE, end - block);
                allocator.touch(
                        spc,
                        db,
                        rel,
                        fork,
                        (int) block,
                        batch,
                        victims.hashes,
                        victims.heads,
                        null);
                for (int k = 0; k < batch; k++) {
                    int buffer =
                            allocator.probe(victims.hashes[k], spc, db, rel, fork, (int) block++);
                    // The bit decides alike, and the bits are a sixty-fourth of the state words.
                    if (buffer >= 0 && descriptors.mayBeDirty(buffer)) {
                        addIfDirtyVictim(buffer, work);
                    }
                }
            }
            work.probes += end;
        }
    }

    private void scan(FlushWork work) {
        DropWork victims = work.victims;
        Fingerprints fingerprints = resident.fingerprints();
        victims.prepareScan(fingerprints);
        int end = replacement.highWater();
        int buffer = 0;
        while ((buffer = nextOf(victims, fingerprints, buffer, end)) < end) {
            addIfDirtyVictim(buffer, work);
            buffer++;
        }
        work.bytesScanned += 2L * end;
    }

    private static int nextOf(DropWork victims, Fingerprints fingerprints, int from, int end) {
        return victims.fingerprintCount == 1
                ? fingerprints.next(from, end, victims.fingerprints[0])
                : fingerprints.nextOfSet(
                        from, end, victims.members, victims.fingerprints, victims.fingerprintCount);
    }

    void addIfDirtyVictim(int buffer, FlushWork work) {
        if ((descriptors.state(buffer) & DIRTY) == 0 || !isVictim(buffer, work)) {
            return;
        }
        int state = descriptors.lockHeader(buffer);
        boolean add = has(state, VALID | DIRTY) && isVictim(buffer, work);
        int spc = descriptors.spc(buffer);
        int rel = descriptors.rel(buffer);
        int fork = descriptors.fork(buffer);
        int block = descriptors.block(buffer);
        descriptors.unlockHeader(buffer, state);
        if (add) {
            work.order.add(buffer, spc, rel, fork, block); // may allocate: no lock is held
        }
    }
}
