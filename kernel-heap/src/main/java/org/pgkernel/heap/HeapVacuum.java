package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferAccessStrategy;
import org.pgkernel.bufmgr.BufferScope;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.xact.FreezeLimits;
import org.pgkernel.xact.Horizons;

/**
 * Vacuums one relation while others use it: removes what nobody sees, freezes what is old, records
 * free space and visibility, and cuts off empty pages at the end.
 *
 * <p>The first pass prunes pages in the order of the file, passing over those that need no visit.
 * Without indexes a page's dead line pointers are made free at once. With indexes they are
 * collected; when there is no room for more, and at the end, the {@link IndexCleaner} removes the
 * entries that lead to them, and a second pass over their pages makes them free: never the other
 * way round, or an index would lead to a row that took the place. (HEAP-31)
 *
 * <p>A page that others have pinned is not waited for, but looked at as it is; unless it has to be
 * frozen now.
 *
 * <p>The caller has begun a transaction, told the session that it {@code vacuums()}, has taken no
 * snapshot, and holds SHARE UPDATE EXCLUSIVE on the relation: one vacuum at a time. He puts the
 * result into the catalogue and commits. One backend's; a pin and a lock at most on heap pages.
 * (PostgreSQL: heap_vacuum_rel, lazy_scan_heap, vacuumlazy.c.)
 */
public final class HeapVacuum {
    /** (PostgreSQL: VACUUM_FSM_EVERY_PAGES, FAILSAFE_EVERY_PAGES.) */
    private static final int FSM_EVERY_PAGES = (int) ((8L << 30) / Page.SIZE);

    private static final int FAILSAFE_EVERY_PAGES = (int) ((4L << 30) / Page.SIZE);

    /** Fewer pages, of all, with dead line pointers are not worth a look into indexes. */
    private static final double BYPASS_PAGES = 0.02;

    private static final long BYPASS_ITEMS = 32 * 1024 * 1024 / 6;

    private final HeapBackend backend;
    private final BackendBuffers buffers;
    private final HeapTruncation truncation;
    private final VacuumPage work;
    private final SkippableBlocks skippable;
    private final Horizons horizons = new Horizons();
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final int[] offsets = new int[PageItems.MAX_LINE_POINTERS];

    // Of the vacuum under way:
    private VacuumState state;
    private BufferAccessStrategy ring;
    private DeadTuples dead;
    private int mapBuffer;
    private int nextFsmBlock;
    private boolean mayBypass;

    /**
     * @param truncation cuts off empty pages; of the same backend
     */
    public HeapVacuum(HeapBackend backend, HeapTruncation truncation) {
        this.backend = backend;
        this.truncation = truncation;
        buffers = backend.buffers;
        work = new VacuumPage(backend);
        skippable = new SkippableBlocks(backend.visibilityMap, buffers);
    }

    /**
     * Vacuums the relation, not its TOAST table, which is a relation of its own.
     *
     * @param indexes the relation's, or null if it has none
     */
    public VacuumResult vacuum(
            HeapRelation relation,
            RelationHistory history,
            VacuumOptions options,
            IndexCleaner indexes,
            VacuumListener listener) {
        begin(relation, history, options, indexes, listener);
        try (BufferScope scope = buffers.enter("vacuum")) {
            checkFailsafe();
            scan();
            double tuples = estimate();
            if (dead.count() > 0) {
                cleanAndReclaim();
            }
            finishFreeSpace(state.pages);
            if (state.twoPasses()
                    && !state.failsafe
                    && options.indexes() != VacuumOptions.Indexes.OFF) {
                indexes.cleanUp(
                        tuples + state.recentlyDeadTuples + state.missedDeadTuples,
                        state.scannedPages != state.pages);
            }
            if (options.truncate()
                    && !state.failsafe
                    && HeapTruncation.isWorthIt(state.pages, state.nonEmptyPages)) {
                truncation.truncate(state, ring);
            }
            VacuumResult result = result(tuples);
            scope.succeeded();
            return result;
        } finally {
            state = null;
            ring = null;
            dead = null;
        }
    }

    /** The relation's size comes last: ids before the horizons are in no block behind it. */
    private void begin(
            HeapRelation relation,
            RelationHistory history,
            VacuumOptions options,
            IndexCleaner indexes,
            VacuumListener listener) {
        backend.transactions.horizons(backend.database, horizons);
        int oldestXmin = horizons.dataOldestNonremovable();
        int oldestMulti = backend.transactions.multiXacts().oldestMulti();
        FreezeLimits limits =
                backend.transactions.freezeLimits(options.freeze(), oldestXmin, oldestMulti);
        if (limits.isFarBehind()) {
            listener.message(
                    "oldest xmin is far in the past: close open transactions soon to avoid"
                            + " wraparound problems rel="
                            + relation);
        }
        state =
                new VacuumState(
                        relation,
                        history,
                        options,
                        indexes,
                        listener,
                        oldestXmin,
                        oldestMulti,
                        limits);
        state.pages = relation.storage().nblocks(ForkNumber.MAIN);
        ring = BufferAccessStrategy.of(BufferAccessStrategy.Type.VACUUM, backend.pool.nbuffers());
        int most = indexes == null ? 0 : options.deadTuples();
        dead = new DeadTuples(Math.max(most, PageItems.MAX_HEAP_TUPLES_PER_PAGE));
        mapBuffer = -1;
        nextFsmBlock = 0;
        mayBypass = options.indexes() == VacuumOptions.Indexes.AUTO;
    }

    /** The first pass. */
    private void scan() {
        int lastCheck = 0;
        skippable.begin(state);
        for (int block = 0; block != state.pages; block++) {
            if (!skippable.visit(state, block)) {
                continue;
            }
            state.listener.atBlock(state.relation, block, state.pages);
            state.scannedPages++;
            if (block - lastCheck >= FAILSAFE_EVERY_PAGES) {
                lastCheck = block;
                checkFailsafe();
            }
            if (dead.room() < PageItems.MAX_HEAP_TUPLES_PER_PAGE) {
                releaseMap();
                mayBypass = false;
                cleanAndReclaim();
                finishFreeSpace(block);
            }
            scanPage(block);
        }
        releaseMap();
        skippable.release();
    }

    private void scanPage(int block) {
        SmgrRelation storage = state.relation.storage();
        mapBuffer = backend.visibilityMap.pin(buffers, storage, block, mapBuffer);
        int buffer = buffers.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL, ring);
        backend.pool.wrap(buffer, page);
        if (!buffers.tryLockForCleanup(buffer)) {
            buffers.lockShared(buffer);
            if (isNewOrEmpty(buffer, block, true) || scanInUse(buffer, block)) {
                return;
            }
            buffers.unlock(buffer);
            buffers.lockForCleanup(buffer);
        }
        if (isNewOrEmpty(buffer, block, false)) {
            return;
        }
        work.prune(state, buffer, page);
        if (work.hasTuples) {
            state.nonEmptyPages = block + 1;
        }
        boolean later = false;
        if (work.deadCount > 0) {
            state.deadItemPages++;
            state.deadItems += work.deadCount;
            if (state.twoPasses()) {
                later = state.cleansIndexes;
                collect(block);
            } else {
                work.reclaim(state, buffer, page, work.dead, work.deadCount);
            }
        }
        work.setVisible(state, buffer, page, mapBuffer);
        done(buffer, block, !later);
        if (!state.twoPasses() && block - nextFsmBlock >= FSM_EVERY_PAGES) {
            finishFreeSpace(block);
        }
    }

    private void collect(int block) {
        if (state.cleansIndexes) {
            for (int i = 0; i < work.deadCount; i++) {
                dead.add(TupleId.of(block, work.dead[i]));
            }
        }
    }

    /** Others have the page pinned. @return false when it has to be waited for */
    private boolean scanInUse(int buffer, int block) {
        if (!work.withoutPrune(state, buffer, page)) {
            return false;
        }
        if (work.hasTuples) {
            state.nonEmptyPages = block + 1;
        }
        boolean later = false;
        if (state.twoPasses() && work.deadCount > 0) {
            state.deadItemPages++;
            state.deadItems += work.deadCount;
            later = state.cleansIndexes;
            collect(block);
        }
        done(buffer, block, !later);
        return true;
    }

    /** Free space is recorded once the page's lock is given up. */
    private void done(int buffer, int block, boolean recordFree) {
        int free = PageItems.heapFreeSpace(page);
        buffers.unlock(buffer);
        buffers.release(buffer);
        if (recordFree) {
            backend.freeSpace.record(buffers, state.relation.storage(), block, free);
        }
    }

    /**
     * A page of zeros was added by somebody who has not come to format it, or who crashed before he
     * did (C19): it is left to whoever finds it through the free space map, and not all-visible, as
     * redo could not tell. One that is formatted and empty is all-visible.
     *
     * @return true if it is such a page: it was dealt with, lock and pin are gone
     */
    private boolean isNewOrEmpty(int buffer, int block, boolean shared) {
        SmgrRelation storage = state.relation.storage();
        if (Page.isNew(page)) {
            buffers.unlock(buffer);
            buffers.release(buffer);
            if (backend.freeSpace.recordedFree(buffers, storage, block) == 0) {
                int free = Page.SIZE - Page.HEADER_SIZE;
                backend.freeSpace.record(buffers, storage, block, free);
            }
            return true;
        }
        if (Page.maxOffsetNumber(page) > 0) {
            return false;
        }
        if (shared) {
            buffers.unlock(buffer);
            buffers.lockExclusive(buffer);
            if (Page.maxOffsetNumber(page) > 0) {
                return false;
            }
        }
        work.setEmptyVisible(state, buffer, page, mapBuffer);
        done(buffer, block, true);
        return true;
    }

    /** Indexes, then the second pass over the pages collected so far. (PostgreSQL: lazy_vacuum.) */
    private void cleanAndReclaim() {
        if (state.cleansIndexes && !isHardlyWorthIt()) {
            if (!checkFailsafe()) {
                state.indexes.removeEntries(dead);
                state.indexScans++;
                reclaimAll();
            }
        } else {
            state.cleansIndexes = false;
        }
        dead.clear();
    }

    private boolean isHardlyWorthIt() {
        return mayBypass
                && BlockNumber.toLong(state.deadItemPages)
                        < BlockNumber.toLong(state.pages) * BYPASS_PAGES
                && state.deadItems < BYPASS_ITEMS;
    }

    /** The second pass. (PostgreSQL: lazy_vacuum_heap_rel.) */
    private void reclaimAll() {
        SmgrRelation storage = state.relation.storage();
        for (int i = 0; i < dead.count(); ) {
            int block = TupleId.block(dead.tid(i));
            int count = 0;
            while (i < dead.count() && TupleId.block(dead.tid(i)) == block) {
                offsets[count++] = TupleId.offset(dead.tid(i++));
            }
            state.listener.atBlock(state.relation, block, state.pages);
            mapBuffer = backend.visibilityMap.pin(buffers, storage, block, mapBuffer);
            int buffer = buffers.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL, ring);
            backend.pool.wrap(buffer, page);
            buffers.lockExclusive(buffer);
            work.reclaim(state, buffer, page, offsets, count);
            work.setVisible(state, buffer, page, mapBuffer);
            done(buffer, block, true);
        }
        releaseMap();
    }

    private void releaseMap() {
        VisibilityMap.release(buffers, mapBuffer);
        mapBuffer = -1;
    }

    /** What was recorded of blocks before this one is found from here on. */
    private void finishFreeSpace(int before) {
        if (before != nextFsmBlock) {
            backend.freeSpace.vacuumRange(buffers, state.relation.storage(), nextFsmBlock, before);
            nextFsmBlock = before;
        }
    }

    /** (PostgreSQL: lazy_check_wraparound_failsafe, vacuum_xid_failsafe_check.) */
    private boolean checkFailsafe() {
        if (!state.failsafe) {
            int age = state.options.failsafeAge();
            int xid = TransactionId.xidOf(backend.transactions.nextFullXid()) - age;
            int multi = backend.transactions.multiXacts().nextMulti() - age;
            state.failsafe =
                    TransactionId.precedes(
                                    state.history.frozenXid(),
                                    TransactionId.isNormal(xid) ? xid : TransactionId.FIRST_NORMAL)
                            || state.history.minMulti() - (multi == 0 ? 1 : multi) < 0;
            if (state.failsafe) {
                state.cleansIndexes = false;
                state.listener.message(
                        "bypassing nonessential maintenance as a failsafe: relfrozenxid or"
                                + " relminmxid is too far in the past rel="
                                + state.relation);
            }
        }
        return state.failsafe;
    }

    /**
     * Live tuples of the whole relation: those counted, and for pages passed over as many a page as
     * the relation had before. (PostgreSQL: vac_estimate_reltuples.)
     */
    private double estimate() {
        double pages = BlockNumber.toLong(state.pages);
        double scanned = BlockNumber.toLong(state.scannedPages);
        double before = state.history.tuples();
        double pagesBefore = BlockNumber.toLong(state.history.pages());
        if (scanned >= pages) {
            return state.liveTuples;
        }
        if (pagesBefore == pages && scanned < pages * 0.02 || scanned <= 1) {
            return before;
        }
        if (before < 0 || pagesBefore == 0) {
            return Math.floor(state.liveTuples / scanned * pages + 0.5);
        }
        return Math.floor(before / pagesBefore * (pages - scanned) + state.liveTuples + 0.5);
    }

    private VacuumResult result(double tuples) {
        int visible = backend.visibilityMap.count(buffers, state.relation.storage()).allVisible();
        boolean known = !state.skippedAllVisible;
        return new VacuumResult(
                state.pages,
                Integer.compareUnsigned(visible, state.pages) > 0 ? state.pages : visible,
                tuples,
                known ? state.oldestXid : TransactionId.INVALID,
                known ? state.oldestMulti : 0,
                state.scannedPages,
                state.removedPages,
                state.deadItemPages,
                state.deletedTuples,
                state.deadItems,
                state.recentlyDeadTuples,
                state.missedDeadTuples,
                state.frozenTuples,
                state.indexScans,
                state.aggressive,
                state.failsafe);
    }
}
