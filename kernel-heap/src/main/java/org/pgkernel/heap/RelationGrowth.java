package org.pgkernel.heap;

import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.LockRank;
import org.pgkernel.bufmgr.ExtensionLock;
import org.pgkernel.smgr.SmgrRelation;

/**
 * The locks under which inserts make heaps grow. Who gets one at once adds his page. Who had to
 * wait looks whether others have made room, and if not, adds pages for all who still wait, so that
 * these find them when it is their turn: twenty waiters do not wait for each other twenty times.
 *
 * <p>It comes before the content locks, so that the map can be searched under it; that of the file
 * ({@link ExtensionLock}) comes after them and is taken within. Relations hash to a fixed number of
 * locks: with a collision they grow one after the other. A holder grows no other relation.
 * (PostgreSQL uses LockRelationForExtension for both: RelationGetBufferForTuple, hio.c.)
 */
public final class RelationGrowth {
    private static final int LOCKS = 128;

    private final ReentrantLock[] locks = new ReentrantLock[LOCKS];

    public RelationGrowth() {
        for (int i = 0; i < LOCKS; i++) {
            locks[i] = new ReentrantLock();
        }
    }

    private ReentrantLock of(SmgrRelation relation) {
        int hash = (relation.relNumber() * 31 + relation.dbOid()) * 31 + relation.spcOid();
        hash *= 0x9E3779B9;
        return locks[hash >>> 25];
    }

    /**
     * Takes the relation's lock; no content lock is held.
     *
     * @return true when others held it
     */
    boolean lock(SmgrRelation relation) {
        ReentrantLock lock = of(relation);
        assert LockRank.RELATION_GROWTH.enter();
        if (lock.tryLock()) {
            return false;
        }
        lock.lock();
        return true;
    }

    /** How many wait for it: an estimate. */
    int waiters(SmgrRelation relation) {
        return of(relation).getQueueLength();
    }

    /** So many pages are to be added for those who wait. */
    int extraPages(SmgrRelation relation) {
        return ExtensionLock.extraPages(waiters(relation));
    }

    void unlock(SmgrRelation relation) {
        of(relation).unlock();
        assert LockRank.RELATION_GROWTH.leave();
    }
}
