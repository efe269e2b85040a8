package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.xact.SessionLocks;

/**
 * A tuple that is about to be changed or locked: its page pinned from {@link #open} to {@link
 * #close} and locked exclusively, but for the time that something is waited for. While it is pinned
 * the tuple stays where it is in the page; what its header says may change whenever the page was
 * not locked.
 *
 * <p>Reused; one backend's.
 */
final class LockedTuple {
    static final int NONE = -1;

    private final HeapBackend backend;
    private final BackendBuffers buffers;
    private final RecordInsert record;

    final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    HeapRelation relation;
    long tid;
    int block;
    int offset;

    /** Where its header is in the page. */
    int at;

    int length;
    int buffer = NONE;

    /** Pinned page of the visibility map, or -1. */
    int map = NONE;

    private boolean locked;

    /** The place in the row's queue that this holds; null for none. */
    private RowLock queued;

    LockedTuple(HeapBackend backend) {
        this.backend = backend;
        buffers = backend.buffers;
        record = backend.record;
    }

    /**
     * Pins and locks the page; the visibility map's page is pinned if that is needed.
     *
     * @return false if there is no such tuple; closed then
     */
    boolean open(HeapRelation of, long at) {
        relation = of;
        tid = at;
        block = TupleId.block(at);
        offset = TupleId.offset(at);
        if (block == BlockNumber.INVALID
                || Integer.compareUnsigned(block, of.storage().nblocks(ForkNumber.MAIN)) >= 0) {
            return false;
        }
        buffer = buffers.read(of.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
        backend.pool.wrap(buffer, page);
        if (Page.isAllVisible(page)) {
            map = backend.visibilityMap.pin(buffers, of.storage(), block, map);
        }
        lock();
        if (offset < PageItems.FIRST_OFFSET_NUMBER
                || offset > Page.maxOffsetNumber(page)
                || !Page.lpIsNormal(Page.itemId(page, offset))) {
            close();
            return false;
        }
        this.at = HeapPage.tupleAt(page, offset);
        length = Page.lpLength(Page.itemId(page, offset));
        return true;
    }

    void lock() {
        buffers.lockExclusive(buffer);
        locked = true;
    }

    void unlock() {
        locked = false;
        buffers.unlock(buffer);
    }

    /** While {@link TargetPage} works with the page, which it may leave locked by throwing. */
    void leaveToScope() {
        buffer = NONE;
    }

    /** It has locked the page. */
    void lockedByTarget(int own) {
        buffer = own;
        locked = true;
    }

    /**
     * Sees to it that the visibility map's page is pinned if the page is all-visible.
     *
     * @return true if the lock was given up for it: all must be looked at again
     */
    boolean pinMap() {
        if (!Page.isAllVisible(page) || VisibilityMap.isPinned(buffers, block, map)) {
            return false;
        }
        unlock();
        map = backend.visibilityMap.pin(buffers, relation.storage(), block, map);
        lock();
        return true;
    }

    /** Lets go of all. */
    void close() {
        if (locked) {
            unlock();
        }
        if (buffer != NONE) {
            int last = buffer;
            buffer = NONE;
            buffers.release(last);
        }
        VisibilityMap.release(buffers, map);
        map = NONE;
        if (queued != null) {
            RowLock last = queued;
            queued = null;
            locks().unlockTuple(db(), relation.oid(), tid, last.mode);
        }
    }

    int infomask() {
        return HeapTupleHeader.infomask(page, at);
    }

    int infomask2() {
        return HeapTupleHeader.infomask2(page, at);
    }

    /** A transaction, or a multixact. */
    int rawXmax() {
        return HeapTupleHeader.xmax(page, at);
    }

    /** True if the tuple has another xmax than it had, or a lock of another kind. */
    boolean xmaxChanged(int xmax, int infomask) {
        int bits =
                HeapTupleHeader.HEAP_XMAX_IS_MULTI
                        | HeapTupleHeader.HEAP_XMAX_LOCK_ONLY
                        | HeapTupleHeader.HEAP_LOCK_MASK;
        return rawXmax() != xmax || ((infomask() ^ infomask) & bits) != 0;
    }

    boolean movedOn() {
        return HeapTupleHeader.ctid(page, at) != tid;
    }

    HintBits hints() {
        return backend.hints.on(buffer, relation.isLogged());
    }

    TupleOutcome status(int commandId) {
        return backend.visibility.satisfiesUpdate(page, at, tid, commandId, hints());
    }

    private SessionLocks locks() {
        return backend.session.locks();
    }

    private int db() {
        return relation.storage().dbOid();
    }

    /**
     * Takes a place in the queue of those who want the row, before it waits for who has it; the
     * page is not locked. Who begins anew keeps its place. (PostgreSQL: heap_acquire_tuplock.)
     *
     * @return false if that would mean to wait, and the caller skips locked rows
     */
    boolean queue(RowLock lock, LockWait wait) {
        if (queued != null) {
            return true;
        }
        if (wait == LockWait.WAIT) {
            locks().lockTuple(db(), relation.oid(), tid, lock.mode);
        } else if (!locks().tryLockTuple(db(), relation.oid(), tid, lock.mode)) {
            return refuse(wait);
        }
        queued = lock;
        return true;
    }

    /** Somebody holds the row. @return false */
    boolean refuse(LockWait wait) {
        if (wait == LockWait.NOWAIT) {
            throw new LockNotAvailableException(
                    "could not obtain lock on row "
                            + TupleId.format(tid)
                            + " "
                            + HeapBackend.place(relation, block));
        }
        return false;
    }

    /**
     * @return false if it runs and the caller skips locked rows
     */
    boolean waitForTransaction(int xid, LockWait wait) {
        if (wait == LockWait.WAIT) {
            locks().waitForTransaction(xid, db(), relation.oid(), tid);
            return true;
        }
        return !backend.transactions.isInProgress(xid) || refuse(wait);
    }

    /**
     * @return how many run still of those that do not conflict
     */
    int waitForMembers(RowLockers lockers, int status) {
        return locks().waitForMembers(lockers.members(), status, db(), relation.oid(), tid);
    }

    /** Negative if one runs that conflicts. */
    int tryWaitForMembers(RowLockers lockers, int status) {
        return locks().tryWaitForMembers(lockers.members(), status);
    }

    /**
     * Marks the tuple as locked, in a critical section of its own.
     *
     * @param updated it is one that a chain of updates led to (PostgreSQL: the last part of
     *     heap_lock_tuple and heap_lock_updated_tuple_rec)
     */
    void markLocked(NewXmax xmax, int xid, boolean updated) {
        assert locked && !pinIsMissing();
        try {
            xmax.store(page, at);
            if (!updated && HeapTupleHeader.isLockedOnly(xmax.infomask())) {
                // Nobody has changed it, so there is no next version.
                HeapTupleHeader.setInfomask2(
                        page, at, infomask2() & ~HeapTupleHeader.HEAP_HOT_UPDATED);
                HeapTupleHeader.setCtid(page, at, block, offset);
            }
            boolean cleared = clearAllFrozen();
            buffers.markDirty(buffer);
            if (relation.isLogged()) {
                logLock(xmax, xid, cleared, updated);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("lock of a row", relation, block, e);
        }
    }

    /** Flag and bits go together, with the record that says so. @return false if they were clear */
    boolean clearAllVisible() {
        if (!Page.isAllVisible(page)) {
            return false;
        }
        Page.clearAllVisible(page);
        backend.visibilityMap.clear(buffers, block, map, VisibilityMap.VALID_BITS);
        return true;
    }

    /** A locked row is not frozen any more (R06); who sees it does not change. */
    boolean clearAllFrozen() {
        return Page.isAllVisible(page)
                && backend.visibilityMap.clear(buffers, block, map, VisibilityMap.ALL_FROZEN);
    }

    private void logLock(NewXmax xmax, int xid, boolean allFrozenCleared, boolean updated) {
        UnsafeBuffer data = backend.recordData;
        data.putInt(HeapRecords.LOCK_XMAX, xmax.xmax());
        data.putShort(HeapRecords.LOCK_OFFNUM, (short) offset);
        data.putByte(
                HeapRecords.LOCK_INFOBITS,
                (byte) NewXmax.infobits(xmax.infomask(), xmax.infomask2()));
        data.putByte(
                HeapRecords.LOCK_FLAGS,
                (byte) (allFrozenCleared ? HeapRecords.LOCK_ALL_FROZEN_CLEARED : 0));
        if (updated) {
            record.begin(HeapRecords.HEAP2_RMID, HeapRecords.LOCK_UPDATED, xid);
        } else {
            record.begin(HeapRecords.HEAP_RMID, HeapRecords.LOCK, xid);
        }
        register(0);
        Page.setLsn(page, record.data(data, 0, HeapRecords.LOCK_SIZE).insert());
    }

    /** The record changes its page. */
    void register(int id) {
        record.page(
                id,
                relation.storage().spcOid(),
                relation.storage().dbOid(),
                relation.storage().relNumber(),
                ForkNumber.MAIN,
                block,
                page,
                RecordInsert.STANDARD);
    }

    private boolean pinIsMissing() {
        return Page.isAllVisible(page) && !VisibilityMap.isPinned(buffers, block, map);
    }

    @Override
    public String toString() {
        return "tuple " + TupleId.format(tid) + " " + HeapBackend.place(relation, block);
    }
}
