package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_HOT_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_ONLY_TUPLE;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.fsm.VisibilityMap;

/**
 * Updates rows: a new version is added, and the old one gets an xmax and points to it. If the new
 * version fits on the page of the old one and no indexed column has changed, it is a heap-only
 * tuple, found through the old one (HOT).
 *
 * <p><b>When the page must be given up</b>, to find room elsewhere or to store values out of line,
 * the old version is marked first as locked, only, by this transaction, and that is logged (C21):
 * the page may be written meanwhile, and an xid in a page that no record covers could be assigned
 * again after a crash. If nothing comes of the update the mark says nothing once the transaction
 * has ended. Others may add their key-share locks to it; then the old and new version's xmax are
 * worked out again. Both pages are locked in the order of their blocks (C20), which {@link
 * TargetPage} sees to.
 *
 * <p>Reused; one backend's. (PostgreSQL: heap_update.)
 */
public final class HeapUpdater {
    private final HeapBackend backend;
    private final TargetPage target;
    private final LockedTuple old;
    private final RowWaiter waiter;
    private final UpdateRecord record;

    /** Of the old version once it is replaced. */
    private final NewXmax oldXmax;

    /** Of the old version while the page is given up. */
    private final NewXmax lockXmax;

    /** Of the new version. */
    private final NewXmax newXmax;

    private final TupleConflict conflict = new TupleConflict();

    // Of the call under way.
    private int xid;
    private int commandId;
    private RowLock lock;
    private boolean indexedChanged;
    private int length;

    /** Where the new version goes; {@link LockedTuple#buffer} of the old one if it is that page. */
    private int newBuffer;

    private UnsafeBuffer newPage;
    private long newTid;
    private boolean isHot;

    public HeapUpdater(HeapBackend backend) {
        this.backend = backend;
        target = new TargetPage(backend);
        old = new LockedTuple(backend);
        waiter = new RowWaiter(backend);
        record = new UpdateRecord(backend);
        oldXmax = new NewXmax(backend);
        lockXmax = new NewXmax(backend);
        newXmax = new NewXmax(backend);
    }

    /** What was in the way of the last update that failed. */
    public TupleConflict conflict() {
        return conflict;
    }

    /** Where the new version is, after OK. */
    public long newTid() {
        return newTid;
    }

    /** True if no index needs an entry for the new version, after OK. */
    public boolean isHot() {
        return isHot;
    }

    /**
     * Replaces a version of a row that the current command sees. Waits for who has locked or
     * changed it. The caller holds a lock on the relation that allows it. After a failure pins and
     * page locks may be left to the innermost buffer scope.
     *
     * @param row may refer to values of the old version, or of others whose pages are pinned
     * @param wait false to answer BEING_MODIFIED instead
     * @return OK, INVISIBLE, SELF_MODIFIED, UPDATED, DELETED or BEING_MODIFIED; see {@link
     *     #conflict}
     */
    public TupleOutcome update(HeapRelation relation, long tid, RowValues row, boolean wait) {
        xid = backend.session.xid();
        commandId = backend.session.commandId(true);
        backend.setOldestMultiMember();
        boolean isLong = ToastPlanner.needed(row);
        if (!isLong) {
            form(relation, row);
        }
        try {
            if (!old.open(relation, tid)) {
                return TupleOutcome.INVISIBLE;
            }
            compareColumns(relation, row);
            TupleOutcome outcome = waiter.await(old, lock, wait, commandId, conflict);
            if (outcome == TupleOutcome.OK) {
                replace(relation, row, isLong);
            }
            return outcome;
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, TupleId.block(tid));
        } finally {
            old.close();
            target.releaseMaps();
        }
    }

    private void form(HeapRelation relation, RowValues row) {
        length = HeapTuples.size(row);
        TargetPage.checkedSize(relation, length);
        HeapTuples.form(row, backend.tuple, 0);
    }

    /** The key columns decide on the lock, the indexed ones on HOT. */
    private void compareColumns(HeapRelation relation, RowValues row) {
        TupleDescriptor descriptor = relation.descriptor();
        lock = RowLock.NO_KEY_UPDATE;
        indexedChanged = false;
        if (!descriptor.hasIndexed()) {
            return;
        }
        RowValues oldRow = deformOld(relation);
        for (int i = 0; i < descriptor.count(); i++) {
            if (descriptor.isIndexed(i) && !HeapTuples.isSameStored(oldRow, row, i)) {
                indexedChanged = true;
                lock = descriptor.isKey(i) ? RowLock.UPDATE : lock;
            }
        }
    }

    private RowValues deformOld(HeapRelation relation) {
        RowValues row = backend.oldRow(relation);
        HeapTuples.deform(old.page, old.at, old.length, row);
        return row;
    }

    private void replace(HeapRelation relation, RowValues row, boolean isLong) {
        int command = backend.cmax(old.page, old.at, commandId);
        boolean isCombo = backend.isOwnInsert(old.page, old.at);
        oldXmax.add(old, xid, lock, true);
        computeNewXmax(waiter.lockersAreGone());
        boolean outOfLine = isLong || (old.infomask() & HeapTuples.HEAP_HASEXTERNAL) != 0;
        int free = PageItems.heapFreeSpace(old.page);
        newBuffer = old.buffer;
        newPage = old.page;
        if (outOfLine || Page.maxAlign(length) > free) {
            giveUpPage();
            if (outOfLine) {
                form(relation, backend.toast().toStore(relation, row, deformOld(relation)));
            }
            findPage(relation, free);
            if (!lockXmax.isStored(old)) {
                // Others have locked it, too.
                oldXmax.add(old, xid, lock, true);
                computeNewXmax(false);
            }
        }
        try {
            put(command, isCombo);
        } finally {
            if (newBuffer != old.buffer) {
                backend.buffers.unlock(newBuffer);
                backend.buffers.release(newBuffer);
            }
        }
    }

    /** Whoever holds a lock on the old version that an update leaves alone holds it on the new. */
    private void computeNewXmax(boolean lockersAreGone) {
        int infomask = old.infomask();
        int xmax = old.rawXmax();
        if ((infomask & HEAP_XMAX_INVALID) != 0
                || HeapTupleHeader.isLockedUpgraded(infomask)
                || lockersAreGone
                || !TransactionId.isValid(xmax)) {
            newXmax.setInvalid();
        } else if ((infomask & HEAP_XMAX_IS_MULTI) != 0) {
            newXmax.set(xmax);
        } else {
            newXmax.setKeyShare(xmax);
        }
    }

    private void giveUpPage() {
        lockXmax.add(old, xid, lock, false);
        old.markLocked(lockXmax, xid, false);
        old.unlock();
    }

    /** Locks the old version's page again, and another one if that has no room. */
    private void findPage(HeapRelation relation, int freeBefore) {
        int size = Page.maxAlign(length);
        int free = freeBefore;
        while (size <= free) {
            old.lock();
            while (old.pinMap()) {
                // Pinned now, and the page locked again.
            }
            free = PageItems.heapFreeSpace(old.page);
            if (size <= free) {
                return;
            }
            // Others have taken the room: both pages' locks are taken in their order.
            old.unlock();
        }
        int map = old.map;
        old.map = LockedTuple.NONE;
        int oldBuffer = old.buffer;
        old.leaveToScope();
        newBuffer = target.find(relation, length, oldBuffer, map);
        old.lockedByTarget(oldBuffer);
        newPage = newBuffer == oldBuffer ? old.page : target.page;
    }

    /** The critical section. */
    private void put(int command, boolean isCombo) {
        boolean samePage = newBuffer == old.buffer;
        int block = backend.pool.block(newBuffer);
        isHot = samePage && !indexedChanged;
        prepareNew();
        try {
            if (!samePage) {
                // A hint that pruning may pay.
                Page.setFlags(old.page, Page.flags(old.page) | Page.PD_PAGE_FULL);
            }
            HeapPage.setPrunable(old.page, xid);
            int offset = HeapInserter.putTuple(newPage, backend.tuple, 0, length, block);
            newTid = TupleId.of(block, offset);
            oldXmax.store(old.page, old.at);
            int infomask2 = old.infomask2() & ~HEAP_HOT_UPDATED;
            HeapTupleHeader.setInfomask2(
                    old.page, old.at, infomask2 | (isHot ? HEAP_HOT_UPDATED : 0));
            HeapTupleHeader.setCommandId(old.page, old.at, command, isCombo);
            HeapTupleHeader.setCtid(old.page, old.at, block, offset);
            int flags = clearAllVisible(samePage, block);
            if (!samePage) {
                backend.buffers.markDirty(newBuffer);
            }
            backend.buffers.markDirty(old.buffer);
            if (old.relation.isLogged()) {
                int at = Page.lpOffset(Page.itemId(newPage, offset));
                record.insert(old, newPage, block, offset, at, length, xid, flags);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("update", old.relation, old.block, e);
        }
    }

    private void prepareNew() {
        UnsafeBuffer tuple = backend.tuple;
        HeapTuples.prepareInsert(tuple, 0, xid, commandId);
        newXmax.store(tuple, 0);
        HeapTupleHeader.setInfomask(tuple, 0, HeapTupleHeader.infomask(tuple, 0) | HEAP_UPDATED);
        if (isHot) {
            HeapTupleHeader.setInfomask2(
                    tuple, 0, HeapTupleHeader.infomask2(tuple, 0) | HEAP_ONLY_TUPLE);
        }
    }

    private int clearAllVisible(boolean samePage, int block) {
        int flags = 0;
        if (Page.isAllVisible(old.page)) {
            Page.clearAllVisible(old.page);
            int map = old.map;
            if (map == LockedTuple.NONE) {
                map = samePage ? target.mapBuffer() : target.otherMapBuffer();
            }
            backend.visibilityMap.clear(backend.buffers, old.block, map, VisibilityMap.VALID_BITS);
            flags |= HeapRecords.UPDATE_OLD_ALL_VISIBLE_CLEARED;
        }
        if (!samePage && Page.isAllVisible(newPage)) {
            Page.clearAllVisible(newPage);
            backend.visibilityMap.clear(
                    backend.buffers, block, target.mapBuffer(), VisibilityMap.VALID_BITS);
            flags |= HeapRecords.UPDATE_NEW_ALL_VISIBLE_CLEARED;
        }
        return flags;
    }
}
