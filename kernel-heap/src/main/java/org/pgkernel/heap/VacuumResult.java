package org.pgkernel.heap;

/**
 * What a vacuum did, and what the catalogue is to say from now on. Pages are unsigned.
 *
 * @param pages blocks of the relation after the truncation
 * @param allVisiblePages of them, those that the visibility map has as all-visible
 * @param liveTuples estimate for the whole relation (reltuples)
 * @param frozenXid the new relfrozenxid; invalid when nothing can be said: the old one stays
 * @param minMulti the new relminmxid; 0 when the old one stays
 * @param scannedPages pages that were looked at
 * @param removedPages pages cut off at the end
 * @param deadItemPages pages that had dead line pointers after the prune
 * @param deletedTuples tuples that were removed from pages
 * @param deadItems dead line pointers that were found or made
 * @param recentlyDeadTuples tuples that some snapshot may see yet
 * @param missedDeadTuples tuples that could go, on pages that others had in use
 * @param frozenTuples tuples that were changed by freezing
 * @param indexScans how often indexes were cleaned
 * @param aggressive the relation was read whole, for freezing
 * @param failsafe indexes and truncation were passed over, as the relation is too old
 */
public record VacuumResult(
        int pages,
        int allVisiblePages,
        double liveTuples,
        int frozenXid,
        int minMulti,
        int scannedPages,
        int removedPages,
        int deadItemPages,
        long deletedTuples,
        long deadItems,
        long recentlyDeadTuples,
        long missedDeadTuples,
        long frozenTuples,
        int indexScans,
        boolean aggressive,
        boolean failsafe) {}
