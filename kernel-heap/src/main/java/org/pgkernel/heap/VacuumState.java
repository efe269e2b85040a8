package org.pgkernel.heap;

import org.pgkernel.base.TransactionId;
import org.pgkernel.heap.TupleVisibility.VacuumHorizon;
import org.pgkernel.xact.FreezeLimits;

/** One vacuum of one relation: its limits and what it has counted. (PostgreSQL: LVRelState.) */
final class VacuumState {
    final HeapRelation relation;
    final RelationHistory history;
    final VacuumOptions options;
    final IndexCleaner indexes;
    final VacuumListener listener;

    /** All pages that may hold an id before the limits are visited, and what must go goes. */
    final boolean aggressive;

    /** Deleted by a transaction before it: dead to all. (PostgreSQL: OldestXmin.) */
    final int oldestXmin;

    /** The same, for prunes: it stays where it is, so that prune and freeze agree. */
    final VacuumHorizon horizon;

    final PageFreezer.Limits limits;

    /** Blocks, unsigned, when the vacuum began; fewer after a truncation. */
    int pages;

    /** Nothing is to be done but freezing. */
    boolean failsafe;

    boolean cleansIndexes;
    boolean skippedAllVisible;

    /** The oldest id that stays unfrozen as far as is known: the horizon at first. */
    int oldestXid;

    int oldestMulti;

    /** The last block with something on it that stays, plus one. (PostgreSQL: nonempty_pages.) */
    int nonEmptyPages;

    int scannedPages;
    int removedPages;
    int deadItemPages;
    long deletedTuples;
    long deadItems;
    long liveTuples;
    long recentlyDeadTuples;
    long missedDeadTuples;
    long frozenTuples;
    int indexScans;

    /**
     * @param limits for the horizons, which the caller has computed before he asks for the
     *     relation's size
     */
    VacuumState(
            HeapRelation relation,
            RelationHistory history,
            VacuumOptions options,
            IndexCleaner indexes,
            VacuumListener listener,
            int oldestXmin,
            int oldestMulti,
            FreezeLimits limits) {
        this.relation = relation;
        this.history = history;
        this.options = options;
        this.indexes = indexes;
        this.listener = listener;
        this.oldestXmin = oldestXmin;
        horizon = xid -> TransactionId.precedes(xid, oldestXmin);
        aggressive =
                !options.skipPages()
                        || limits.isAggressive(history.frozenXid(), history.minMulti());
        this.limits =
                new PageFreezer.Limits(
                        history.frozenXid(),
                        history.minMulti(),
                        limits.freezeLimit(),
                        limits.multiXactCutoff());
        oldestXid = oldestXmin;
        this.oldestMulti = oldestMulti;
        cleansIndexes = options.indexes() != VacuumOptions.Indexes.OFF;
    }

    /** Dead line pointers stay until no index leads to them. */
    boolean twoPasses() {
        return indexes != null;
    }
}
