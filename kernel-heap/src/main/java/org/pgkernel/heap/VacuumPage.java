package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.heap.TupleVisibility.VacuumStatus;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * What vacuum does to one page, in this order: {@link #prune}, which also freezes and counts;
 * {@link #reclaim}, which makes dead line pointers free; {@link #setVisible}. Each is a change of
 * its own with its own record, all under one lock of the page: so whatever part of the WAL redo
 * finds, the all-visible bit of the map comes after the page's flag, and both after all that made
 * it true (HEAP-30, C17).
 *
 * <p>One backend's; the fields that tell of the page hold until the next call. (PostgreSQL:
 * lazy_scan_prune, lazy_scan_noprune, lazy_vacuum_heap_page, heap_page_is_all_visible,
 * vacuumlazy.c.)
 */
final class VacuumPage {
    private static final int XLOG_FPI = 0xB0;

    private final HeapBackend backend;
    private final BackendBuffers buffers;
    private final PageFreezer freezer;
    private final UnsafeBuffer main = new UnsafeBuffer(new byte[HeapRecords.VACUUM_SIZE]);
    private final UnsafeBuffer data = new UnsafeBuffer(new byte[2 * PageItems.MAX_LINE_POINTERS]);

    /** Dead line pointers of the page. */
    final int[] dead = new int[PageItems.MAX_LINE_POINTERS];

    int deadCount;

    /** The page may not be cut off: it has tuples, or redirects. */
    boolean hasTuples;

    /** Everybody sees all tuples, and there is no dead line pointer. */
    boolean allVisible;

    /** All tuples are frozen; holds if {@link #allVisible}. */
    boolean allFrozen;

    /** The newest inserter among the tuples, for those who follow our WAL. */
    int cutoffXid;

    VacuumPage(HeapBackend backend) {
        this.backend = backend;
        buffers = backend.buffers;
        freezer = new PageFreezer(backend.status, backend.multis);
    }

    /**
     * Prunes, freezes and counts. The caller holds a cleanup lock on the page.
     *
     * <p>A tuple that turns out to be dead after the prune (R02) sends the page back to it. The
     * horizon stands still, so the second prune removes it; if it has nothing to remove, the page
     * contradicts itself.
     */
    void prune(VacuumState state, int buffer, UnsafeBuffer page) {
        int block = backend.pool.block(buffer);
        PagePruner pruned;
        boolean freezes;
        int attempts = 0;
        try {
            do {
                pruned = backend.pruner.prune(state.relation, buffer, state.horizon);
                if (attempts++ > 0 && pruned.blockDataLength() == 0) {
                    throw new DamagedDataException("a tuple is dead that the prune must keep");
                }
                state.deletedTuples += pruned.deleted();
                freezes =
                        freezer.plan(
                                page, pruned, state.limits, state.oldestXid, state.oldestMulti);
            } while (freezer.mustPruneAgain());
            look(page, pruned, state);
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, state.relation, block);
        }
        state.oldestXid = freezer.oldestXid();
        state.oldestMulti = freezer.oldestMulti();
        if (freezes) {
            freeze(state, buffer, block, page);
        }
    }

    /** Before the freeze, which takes away by when a tuple was inserted. */
    private void look(UnsafeBuffer page, PagePruner pruned, VacuumState state) {
        begin();
        allFrozen = freezer.allFrozen();
        int last = Page.maxOffsetNumber(page);
        for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last; offset++) {
            int itemId = Page.itemId(page, offset);
            if (Page.lpIsNormal(itemId)) {
                hasTuples = true;
                VacuumStatus status = pruned.status(offset);
                count(state, status);
                see(page, HeapPage.tupleAt(page, offset), status, state.oldestXmin);
            } else {
                pointer(itemId, offset);
            }
        }
    }

    private void begin() {
        deadCount = 0;
        hasTuples = false;
        allVisible = true;
        allFrozen = true;
        cutoffXid = TransactionId.INVALID;
    }

    /** Not a tuple's. */
    private void pointer(int itemId, int offset) {
        if (Page.lpFlags(itemId) == Page.LP_REDIRECT) {
            hasTuples = true;
        } else if (Page.lpFlags(itemId) == Page.LP_DEAD) {
            // Free by the time that the end is looked at for truncation, we hope.
            dead[deadCount++] = offset;
            allVisible = false;
        }
    }

    private static void count(VacuumState state, VacuumStatus status) {
        switch (status) {
            case LIVE, DELETE_IN_PROGRESS -> state.liveTuples++;
            case RECENTLY_DEAD -> state.recentlyDeadTuples++;
            case DEAD -> state.missedDeadTuples++;
            case INSERT_IN_PROGRESS -> {
                // Its transaction counts it when it commits.
            }
        }
    }

    /**
     * A tuple whose inserter is not hinted as committed may be one whose commit is not durable yet:
     * then the page is not all-visible.
     */
    private void see(DirectBuffer page, int at, VacuumStatus status, int oldestXmin) {
        int infomask = HeapTupleHeader.infomask(page, at);
        if (status != VacuumStatus.LIVE || !TupleVisibility.isXminCommitted(infomask)) {
            allVisible = false;
            return;
        }
        int xmin =
                TupleVisibility.isXminFrozen(infomask)
                        ? TransactionId.FROZEN
                        : HeapTupleHeader.xmin(page, at);
        allVisible &= TransactionId.precedes(xmin, oldestXmin);
        if (TransactionId.isNormal(xmin) && TransactionId.follows(xmin, cutoffXid)) {
            cutoffXid = xmin;
        }
    }

    private void freeze(VacuumState state, int buffer, int block, UnsafeBuffer page) {
        state.frozenTuples += freezer.blockDataLength() / HeapRecords.FREEZE_PLAN_SIZE;
        try {
            freezer.apply(page);
            buffers.markDirty(buffer);
            if (state.relation.isLogged()) {
                begin(HeapRecords.FREEZE_PAGE)
                        .data(freezer.recordData(), 0, HeapRecords.FREEZE_SIZE);
                logged(
                        page(state.relation, block, page, RecordInsert.STANDARD)
                                .pageData(0, freezer.blockData(), 0, freezer.blockDataLength())
                                .insert(),
                        page);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("freezing", state.relation, block, e);
        }
    }

    /**
     * Counts where others have the page in use, so that it cannot be pruned. The caller holds a
     * content lock on it, shared at least.
     *
     * @return false when the page has to be frozen all the same: the caller waits for its cleanup
     *     lock; nothing was counted then
     */
    boolean withoutPrune(VacuumState state, int buffer, UnsafeBuffer page) {
        try {
            boolean wouldFreeze =
                    freezer.wouldFreeze(page, state.limits, state.oldestXid, state.oldestMulti);
            if (wouldFreeze && state.aggressive) {
                return false;
            }
            countInPlace(state, buffer, page);
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, state.relation, backend.pool.block(buffer));
        }
        state.oldestXid = freezer.oldestXid();
        state.oldestMulti = freezer.oldestMulti();
        return true;
    }

    private void countInPlace(VacuumState state, int buffer, UnsafeBuffer page) {
        begin();
        HintBits hints = backend.hints.on(buffer, state.relation.isLogged());
        int last = Page.maxOffsetNumber(page);
        for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last; offset++) {
            int itemId = Page.itemId(page, offset);
            if (Page.lpIsNormal(itemId)) {
                hasTuples = true;
                int at = HeapPage.tupleAt(page, offset);
                count(state, backend.visibility.vacuumStatus(page, at, state.horizon, hints));
            } else {
                pointer(itemId, offset);
            }
        }
        if (deadCount > 0 && !state.twoPasses()) {
            // Only a pruned page's are freed: these stay, and keep the page.
            hasTuples = true;
            state.missedDeadTuples += deadCount;
        }
    }

    /**
     * Makes dead line pointers free. The caller holds the page's exclusive lock; no index leads to
     * them any more.
     *
     * @param offsets the first {@code count} of them, all dead
     */
    void reclaim(VacuumState state, int buffer, UnsafeBuffer page, int[] offsets, int count) {
        int block = backend.pool.block(buffer);
        for (int i = 0; i < count; i++) {
            data.putShort(2 * i, (short) offsets[i]);
            if (offsets[i] > Page.maxOffsetNumber(page)
                    || Page.lpFlags(Page.itemId(page, offsets[i])) != Page.LP_DEAD) {
                throw HeapBackend.damaged(
                        new DamagedDataException("lp " + offsets[i] + " is dead no longer"),
                        state.relation,
                        block);
            }
        }
        main.putShort(HeapRecords.VACUUM_NUNUSED, (short) count);
        try {
            HeapPage.vacuum(page, main, data, 2 * count);
            buffers.markDirty(buffer);
            if (state.relation.isLogged()) {
                begin(HeapRecords.VACUUM).data(main, 0, HeapRecords.VACUUM_SIZE);
                logged(
                        page(state.relation, block, page, RecordInsert.STANDARD)
                                .pageData(0, data, 0, 2 * count)
                                .insert(),
                        page);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("vacuum", state.relation, block, e);
        }
        lookAgain(state, buffer, page);
    }

    /** Finds out anew whether all is visible. (PostgreSQL: heap_page_is_all_visible.) */
    private void lookAgain(VacuumState state, int buffer, UnsafeBuffer page) {
        begin();
        HintBits hints = backend.hints.on(buffer, state.relation.isLogged());
        int last = Page.maxOffsetNumber(page);
        for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last; offset++) {
            int itemId = Page.itemId(page, offset);
            if (Page.lpIsNormal(itemId)) {
                hasTuples = true;
                int at = HeapPage.tupleAt(page, offset);
                VacuumStatus status =
                        backend.visibility.vacuumStatus(page, at, state.horizon, hints);
                see(page, at, status, state.oldestXmin);
                allFrozen &= !PageFreezer.needsFreezeSomeDay(page, at);
            } else {
                pointer(itemId, offset);
            }
        }
    }

    /**
     * Brings the page's all-visible flag and the map's bits in line with what the last look found.
     * The caller holds the page's exclusive lock and has pinned the map's page.
     */
    void setVisible(VacuumState state, int buffer, UnsafeBuffer page, int mapBuffer) {
        int block = backend.pool.block(buffer);
        int bits = backend.visibilityMap.status(buffers, block, mapBuffer);
        boolean flag = Page.isAllVisible(page);
        if (bits != 0 && !flag) {
            state.listener.message(
                    "page is not marked all-visible but visibility map bit is set "
                            + HeapBackend.place(state.relation, block, page));
            backend.visibilityMap.clear(buffers, block, mapBuffer, VisibilityMap.VALID_BITS);
            bits = 0;
        }
        if (allVisible) {
            int wanted = bits | VisibilityMap.ALL_VISIBLE;
            wanted |= allFrozen ? VisibilityMap.ALL_FROZEN : 0;
            if (!flag || wanted != bits) {
                // Who follows our WAL was told of the inserters when the first bit was set.
                int cutoff = bits == 0 ? cutoffXid : TransactionId.INVALID;
                setVisible(state.relation, buffer, page, mapBuffer, cutoff, wanted);
            }
        } else if (flag && deadCount > 0) {
            state.listener.message(
                    "page containing dead line pointers is marked as all-visible "
                            + HeapBackend.place(state.relation, block, page));
            Page.clearAllVisible(page);
            buffers.markDirty(buffer);
            backend.visibilityMap.clear(buffers, block, mapBuffer, VisibilityMap.VALID_BITS);
        }
    }

    private void setVisible(
            HeapRelation relation,
            int buffer,
            UnsafeBuffer page,
            int mapBuffer,
            int cutoff,
            int bits) {
        Page.setAllVisible(page);
        buffers.markDirty(buffer);
        RecordInsert wal = relation.isLogged() ? backend.record : null;
        wrote(
                backend.visibilityMap.set(
                        buffers, wal, relation.storage(), buffer, mapBuffer, cutoff, bits));
    }

    /**
     * A formatted page without line pointers is all-visible and all-frozen. Its formatting may not
     * have been logged, as whoever did it went no further; the map's bit must not reach redo before
     * the page does. The caller holds the page's exclusive lock.
     */
    void setEmptyVisible(VacuumState state, int buffer, UnsafeBuffer page, int mapBuffer) {
        if (Page.isAllVisible(page)) {
            return;
        }
        int block = backend.pool.block(buffer);
        try {
            buffers.markDirty(buffer);
            if (state.relation.isLogged() && Page.lsn(page) == 0) {
                backend.record.begin(RmgrIds.XLOG, XLOG_FPI, TransactionId.INVALID);
                int flags = RecordInsert.FORCE_IMAGE | RecordInsert.STANDARD;
                logged(page(state.relation, block, page, flags).insert(), page);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("vacuum", state.relation, block, e);
        }
        setVisible(
                state.relation,
                buffer,
                page,
                mapBuffer,
                TransactionId.INVALID,
                VisibilityMap.VALID_BITS);
    }

    private RecordInsert begin(int info) {
        return backend.record.begin(HeapRecords.HEAP2_RMID, info, backend.session.xidIfAny());
    }

    private RecordInsert page(HeapRelation relation, int block, UnsafeBuffer page, int flags) {
        SmgrRelation storage = relation.storage();
        return backend.record.page(
                0,
                storage.spcOid(),
                storage.dbOid(),
                storage.relNumber(),
                ForkNumber.MAIN,
                block,
                page,
                flags);
    }

    private void logged(long end, UnsafeBuffer page) {
        Page.setLsn(page, end);
        wrote(end);
    }

    private void wrote(long end) {
        if (end != 0) {
            backend.session.wroteWal(end);
        }
    }
}
