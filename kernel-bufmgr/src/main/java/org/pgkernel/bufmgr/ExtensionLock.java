package org.pgkernel.bufmgr;

import java.util.concurrent.locks.ReentrantLock;
import org.pgkernel.base.LockRank;
import org.pgkernel.smgr.SmgrRelation;

/**
 * The lock under which a relation grows, held as a scope:
 *
 * <pre>
 *  try (ExtensionLock growing = pool.lockForExtension(relation)) { ... }
 * </pre>
 *
 * <p>It is the relation's, not the fork's: who adds a page to the main fork may have to add one to
 * the free space map before he gives the lock up, and takes it again then, which is free. Locks of
 * single forks would need an order.
 *
 * <p>Relations hash to a fixed number of locks. A collision means that two relations grow one after
 * the other and that {@link #waiters} counts for both: slower, never wrong. But a thread that holds
 * one relation's lock must not ask for another relation's: with collisions there is no order that
 * would save it. This is asserted.
 *
 * <p>Who holds content locks may take it, as redo and B-trees do; so under it nobody waits for the
 * content lock of a page that others use. (PostgreSQL: LockRelationForExtension, lmgr.c, which is
 * an exact lock.)
 */
public final class ExtensionLock implements AutoCloseable {
    private static final int PAGES_PER_WAITER = 20;
    private static final int MOST_PAGES = 512;

    private final ReentrantLock lock = new ReentrantLock();

    /** Whose lock it is now; under {@link #lock}, and only to assert. */
    private SmgrRelation relation;

    ExtensionLock() {}

    void lock(SmgrRelation wanted) {
        assert lock.isHeldByCurrentThread() || LockRank.RELATION_EXTENSION.enter();
        lock.lock();
        assert lock.getHoldCount() == 1 || isOf(wanted)
                : "one thread extends two relations at once " + relation + " and " + wanted;
        relation = wanted;
    }

    /**
     * How many wait for the lock now: an estimate, as they come and go. (PostgreSQL:
     * RelationExtensionLockWaiterCount.)
     */
    public int waiters() {
        return lock.getQueueLength();
    }

    /**
     * How many pages to add for those who wait, besides one's own: 20 for each, at most 512.
     * (PostgreSQL: RelationAddExtraBlocks, hio.c.)
     */
    public int extraPages() {
        return extraPages(waiters());
    }

    /** The same for waiters of another lock. */
    public static int extraPages(int waiters) {
        return Math.min(MOST_PAGES, waiters * PAGES_PER_WAITER);
    }

    boolean isHeld() {
        return lock.isLocked();
    }

    private boolean isOf(SmgrRelation wanted) {
        return relation.relNumber() == wanted.relNumber()
                && relation.dbOid() == wanted.dbOid()
                && relation.spcOid() == wanted.spcOid();
    }

    /** Gives the lock up; the caller holds it. */
    @Override
    public void close() {
        lock.unlock();
        assert lock.isHeldByCurrentThread() || LockRank.RELATION_EXTENSION.leave();
    }
}
