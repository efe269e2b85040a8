package org.pgkernel.bufmgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Finds a relation's buffers and throws them away, unwritten. The caller makes sure that nobody
 * reads pages of these relations in meanwhile (an access exclusive lock, or redo), so a buffer can
 * only leave the set while we look, never join it.
 *
 * <p>Each call says in {@code work} what it did. Whatever the strategy, afterwards no buffer, valid
 * or not, holds a block of the set. One dropper serves all threads of a pool.
 */
sealed interface RelationDropper
        permits FullScanDropper, LookupDropper, ListDropper, AdaptiveDropper {
    /**
     * From {@code firstBlocks[i]} (unsigned) on, of each of the first {@code count} forks. @return
     * buffers dropped
     */
    int dropForks(
            SmgrRelation relation, ForkNumber[] forks, int[] firstBlocks, int count, DropWork work);

    /** All forks of the first {@code count} relations. @return buffers dropped */
    int dropRelations(SmgrRelation[] relations, int count, DropWork work);

    /** All relations of a database. @return buffers dropped */
    int dropDatabase(int db, DropWork work);

    /** How the relation would be dropped now, in a line for people; allocates. */
    String explain(SmgrRelation relation);
}
