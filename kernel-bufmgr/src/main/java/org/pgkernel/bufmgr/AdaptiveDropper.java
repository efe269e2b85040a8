package org.pgkernel.bufmgr;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Drops what {@link ResidentForks} says is there. Forks without pages are done at once. For the
 * others together, whichever is estimated to be cheaper ({@link DropCosts}): lookups of every block
 * from the first to drop to the end of the resident pages, or one scan of the fingerprints for all
 * of them. Either stops as soon as as many pages were thrown away as the forks had.
 *
 * <p>When the scan would be cheaper but the pages are very few, a few blocks from the first on are
 * looked up before: a fork read only in part is mostly read from its beginning (an index's
 * metapage, a map's root). This costs a sixteenth of the scan at most.
 *
 * <p>No size is asked, so none can be wrong. Nothing is left afterwards because of one of these: as
 * many buffers were thrown away as there were pages of the forks when the drop began, and none came
 * since; every block below the end was looked up, and no page is at or past it; or every buffer in
 * use was scanned. Sizes would add nothing: a right one is not below the end.
 *
 * <p>A truncation does not know how many of the fork's pages are past its first block: the count of
 * the whole fork is its limit too, but it is reached only if nothing is to stay.
 */
non-sealed class AdaptiveDropper implements RelationDropper {
    private final BufferDescriptors descriptors;
    private final BufferAllocator allocator;
    private final BufferReplacement replacement;
    private final ResidentForks resident;

    /** The resident ones' own: one object less on the way. */
    private final ForkTable forks;

    private final Fingerprints fingerprints;
    private final DropCosts costs;

    AdaptiveDropper(
            BufferDescriptors descriptors,
            BufferAllocator allocator,
            BufferReplacement replacement,
            ResidentForks resident,
            DropCosts costs) {
        this.descriptors = descriptors;
        this.allocator = allocator;
        this.replacement = replacement;
        this.resident = resident;
        this.forks = resident.forks();
        this.fingerprints = resident.fingerprints();
        this.costs = costs;
    }

    @Override
    public int dropForks(
            SmgrRelation relation,
            ForkNumber[] forks,
            int[] firstBlocks,
            int count,
            DropWork work) {
        int hash = hash(relation);
        for (int i = 0; i < count; i++) {
            add(hash, relation, forks[i].ordinal(), firstBlocks[i], work);
        }
        int dropped = drop(work);
        for (int i = 0; i < count; i++) {
            if (firstBlocks[i] != 0) { // of a fork dropped whole nothing is kept
                resident.lowerEnd(
                        relation.spcOid(),
                        relation.dbOid(),
                        relation.relNumber(),
                        forks[i].ordinal(),
                        firstBlocks[i]);
            }
        }
        return dropped;
    }

    @Override
    public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
        for (int i = 0; i < count; i++) {
            SmgrRelation relation = relations[i];
            int hash = hash(relation);
            // Not a loop over all forks: unrolled, it would be four times as much code to fetch.
            for (int present = forks.present(hash); present != 0; present &= present - 1) {
                int fork = Integer.numberOfTrailingZeros(present) ^ hash & ForkNumber.COUNT - 1;
                add(hash, relation, fork, 0, work);
            }
        }
        return drop(work);
    }

    private static int hash(SmgrRelation relation) {
        return ForkTable.relationHash(relation.spcOid(), relation.dbOid(), relation.relNumber());
    }

    @Override
    public int dropDatabase(int db, DropWork work) {
        resident.addDatabase(db, work);
        return drop(work);
    }

    private void add(int relationHash, SmgrRelation relation, int fork, int first, DropWork work) {
        int hash = ForkTable.hash(relationHash, fork);
        if (resident.certainlyNone(hash)) {
            return;
        }
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        long residents = resident.residents(hash, spc, db, rel, fork);
        int end = ResidentForks.end(residents);
        if (residents != 0 && Integer.compareUnsigned(first, end) < 0) {
            work.addFork(hash, spc, db, rel, fork, first, end, ResidentForks.pages(residents));
        }
    }

    private int drop(DropWork work) {
        if (work.forks == 0) {
            work.reason = DropReason.COUNT_IS_ZERO;
            return work.ended(DropPath.NOTHING_RESIDENT, DropStopReason.NOTHING_TO_DO);
        }
        if (work.forks == 1 && work.end(0) - work.first(0) == 1 && dropBlock(work)) {
            return 1;
        }
        long probes = 0;
        long pages = 0;
        int relations = 0;
        for (int i = 0; i < work.forks; i++) {
            probes += expectedProbes(work, i);
            pages += work.left(i);
            if (i == 0 || work.forkRel(i) != work.forkRel(i - 1)) {
                relations++;
            }
        }
        // Every block is there: then a scan, which looks up what it finds, is never cheaper.
        long scanNanos =
                probes <= pages
                        ? Long.MAX_VALUE
                        : costs.scan(replacement.highWater(), relations, pages);
        if (costs.lookups(probes) <= scanNanos) {
            work.reason = DropReason.FEW_BLOCKS;
            int dropped = lookUp(work, Long.MAX_VALUE);
            return work.forks == 0 ? dropped : dropped + scan(work, DropReason.COUNT_NOT_REACHED);
        }
        long trial = costs.trialProbes(scanNanos);
        if (pages > trial) {
            return scan(work, DropReason.ABOVE_THRESHOLD);
        }
        work.reason = DropReason.FEW_BLOCKS;
        int dropped = lookUp(work, Math.max(1, trial / work.forks));
        return work.forks == 0 ? dropped : dropped + scan(work, DropReason.COUNT_NOT_REACHED);
    }

    /**
     * One fork of one block, as every new table's or index's: nothing to weigh up and nothing to
     * overlap, and little code to fetch. @return false when the block was not there: then what the
     * fork's count has is looked for as ever
     */
    private boolean dropBlock(DropWork work) {
        int hash = work.forkHash(0);
        int spc = work.forkSpc(0);
        int db = work.forkDb(0);
        int rel = work.forkRel(0);
        int fork = work.forkNumber(0);
        int block = work.first(0);
        int blockHash = BufferTag.hash(spc, db, rel, fork, block);
        if (!allocator.dropCounted(blockHash, spc, db, rel, fork, block, fingerprints)) {
            return false;
        }
        resident.dropped(hash, spc, db, rel, fork, 1);
        work.probes = 1;
        work.reason = DropReason.FEW_BLOCKS;
        work.ended(DropPath.LOOKUP, DropStopReason.RANGE_COVERED);
        return true;
    }

    /**
     * Pages spread evenly over a fork that is dropped whole are all found a little before its end.
     */
    private static long expectedProbes(DropWork work, int i) {
        long blocks = BlockNumber.toLong(work.end(i)) - BlockNumber.toLong(work.first(i));
        return work.first(i) == 0 && blocks > work.left(i)
                ? blocks - blocks / (work.left(i) + 1L)
                : blocks;
    }

    /**
     * Looks up the forks' blocks, {@code most} of each. Forks that have certainly no page left are
     * taken out of the work.
     *
     * @return buffers dropped
     */
    private int lookUp(DropWork work, long most) {
        work.ended(DropPath.LOOKUP, DropStopReason.RANGE_COVERED);
        int dropped = 0;
        int kept = 0;
        for (int i = 0; i < work.forks; i++) {
            long first = BlockNumber.toLong(work.first(i));
            long end = BlockNumber.toLong(work.end(i));
            long limit = most < end - first ? first + most : end;
            long next;
            try {
                next = lookUp(work, i, first, limit);
            } finally {
                dropped += discount(work, i);
            }
            if (next < end && work.left(i) == 0) {
                work.stop = DropStopReason.COUNT_REACHED;
            }
            if (!isDone(work, i, next == end)) {
                work.moveFork(i, kept++);
            }
        }
        work.forks = kept;
        return dropped;
    }

    /**
     * @return the block after the last one looked up
     */
    private long lookUp(DropWork work, int i, long first, long limit) {
        int spc = work.forkSpc(i);
        int db = work.forkDb(i);
        int rel = work.forkRel(i);
        int fork = work.forkNumber(i);
        long block = first;
        while (block < limit && work.left(i) > 0) {
            int batch = (int) Math.min(BufferAllocator.TOUCHED_AT_ONCE, limit - block);
            allocator.touch(
                    spc, db, rel, fork, (int) block, batch, work.hashes, work.heads, fingerprints);
            for (int k = 0; k < batch && work.left(i) > 0; k++) {
                drop(work, i, work.hashes[k], (int) block++);
            }
        }
        return block;
    }

    private void drop(DropWork work, int i, int hash, int block) {
        work.probes++;
        if (allocator.dropCounted(
                hash,
                work.forkSpc(i),
                work.forkDb(i),
                work.forkRel(i),
                work.forkNumber(i),
                block,
                fingerprints)) {
            work.found(i);
        }
    }

    /** Tells the count what was thrown away; so once for many pages. @return how many */
    private int discount(DropWork work, int i) {
        int gone = work.takeGone(i);
        if (gone != 0) {
            resident.dropped(
                    work.forkHash(i),
                    work.forkSpc(i),
                    work.forkDb(i),
                    work.forkRel(i),
                    work.forkNumber(i),
                    gone);
        }
        return gone;
    }

    /** Tells the counts of the forks that a scan has met. */
    private void tell(DropWork work) {
        while (work.untold > 0) {
            discount(work, work.untoldForks[--work.untold]);
        }
    }

    /**
     * What is left may have been evicted meanwhile. A truncation's pages end where the fork's did,
     * whatever is left below.
     */
    private boolean isDone(DropWork work, int i, boolean covered) {
        if (work.left(i) == 0 || covered && work.first(i) != 0) {
            return true;
        }
        long now =
                resident.residents(
                        work.forkSpc(i), work.forkDb(i), work.forkRel(i), work.forkNumber(i));
        return now == 0;
    }

    /** Scans for all forks in the work. @return buffers dropped */
    private int scan(DropWork work, DropReason reason) {
        work.reason = reason;
        work.ended(DropPath.FINGERPRINT_SCAN, DropStopReason.SCAN_COMPLETE);
        work.prepareScan(fingerprints);
        long left = 0;
        for (int i = 0; i < work.forks; i++) {
            left += work.left(i);
        }
        try {
            return scan(work, left);
        } finally {
            tell(work);
        }
    }

    private int scan(DropWork work, long left) {
        int dropped = 0;
        int end =
                replacement.highWater(); // buffers from here on have no page, or get one of another
        // relation
        int[] found = work.found;
        int scanned = 0;
        while (scanned < end) {
            int count = 0;
            // Not more at once than are left, so that the scan stops where the last one is.
            int most = (int) Math.min(found.length, left - dropped);
            while (count < most && (scanned = next(scanned, end, work)) < end) {
                found[count++] = scanned++;
            }
            allocator.touchBuffers(found, count, work.hashes, work.heads, fingerprints);
            for (int i = 0; i < count; i++) {
                if (dropIfVictim(found[i], work)) {
                    dropped++;
                }
            }
            if (dropped == left) {
                work.stop =
                        scanned < end ? DropStopReason.COUNT_REACHED : DropStopReason.SCAN_COMPLETE;
                break;
            }
        }
        work.bytesScanned += 2L * scanned;
        return dropped;
    }

    private int next(int from, int end, DropWork work) {
        return work.fingerprintCount == 1
                ? fingerprints.next(from, end, work.fingerprints[0])
                : fingerprints.nextOfSet(
                        from, end, work.members, work.fingerprints, work.fingerprintCount);
    }

    /**
     * Reads the tag without a lock, and takes it for no more than a hint: whoever changes a tag
     * meanwhile puts no page of a victim there (nobody maps such pages), so one that looks like a
     * victim's is looked at again under the locks, and one that does not is none, or is one no
     * more.
     */
    private boolean dropIfVictim(int buffer, DropWork work) {
        int spc = descriptors.spc(buffer);
        int db = descriptors.db(buffer);
        int rel = descriptors.rel(buffer);
        int number = descriptors.fork(buffer);
        int block = descriptors.block(buffer);
        int fork = victim(spc, db, rel, number, block, work);
        if (fork < 0) {
            return false;
        }
        int hash = BufferTag.hash(spc, db, rel, number, block);
        if (!allocator.invalidate(buffer, hash, spc, db, rel, number, block, fingerprints)) {
            return false;
        }
        if (work.met(fork)) {
            tell(work);
        }
        return true;
    }

    /**
     * The fork to drop that the block is of, by its number in the work, or -1. The fingerprint that
     * led here may be another relation's too, or late.
     */
    int victim(int spc, int db, int rel, int fork, int block, DropWork work) {
        int at = work.forkOf(spc, db, rel, fork);
        if (at >= 0) {
            return Integer.compareUnsigned(block, work.first(at)) >= 0 ? at : -1;
        }
        if (!work.hasRelation(spc, db, rel)) {
            work.collisions++;
        }
        return -1;
    }

    @Override
    public String explain(SmgrRelation relation) {
        DropWork work = DropWork.begin();
        StringBuilder text = new StringBuilder("ADAPTIVE");
        long probes = 0;
        long pages = 0;
        for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
            add(hash(relation), relation, fork, 0, work);
        }
        if (work.forks == 0) {
            return text.append(": nothing resident, nothing to do").toString();
        }
        for (int i = 0; i < work.forks; i++) {
            probes += expectedProbes(work, i);
            pages += work.left(i);
            text.append(i == 0 ? ": " : ", ")
                    .append(Place.fork(work.forkNumber(i)))
                    .append(" fork ")
                    .append(work.left(i))
                    .append(" resident below block ")
                    .append(BlockNumber.toString(work.end(i)));
        }
        long scanNanos = costs.scan(replacement.highWater(), 1, pages);
        return text.append("; about ")
                .append(probes)
                .append(" probes, ")
                .append(costs.lookups(probes))
                .append(" ns, against a fingerprint scan of ")
                .append(2L * replacement.highWater())
                .append(" bytes, ")
                .append(scanNanos)
                .append(
                        costs.lookups(probes) <= scanNanos
                                ? " ns: lookup"
                                : " ns: fingerprint scan")
                .toString();
    }
}
