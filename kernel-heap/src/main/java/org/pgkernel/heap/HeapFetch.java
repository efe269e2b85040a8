package org.pgkernel.heap;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;

/**
 * Fetches single tuples by their place. The page of the last one stays pinned until the next fetch
 * of another page, or {@link #close}. Reusable; one backend's.
 */
public final class HeapFetch implements AutoCloseable {
    private static final int NONE = -1;

    private final HeapBackend backend;
    private final TupleView tuple = new TupleView();
    private HeapRelation relation;
    private int buffer = NONE;
    private int block;

    public HeapFetch(HeapBackend backend) {
        this.backend = backend;
    }

    /** What the last fetch found; valid if it answered true. */
    public TupleView tuple() {
        return tuple;
    }

    /**
     * The tuple at the place if the snapshot sees it. (PostgreSQL: heap_fetch.)
     *
     * @return false also when there is no tuple
     */
    public boolean fetch(HeapRelation relation, long tid, HeapSnapshot snapshot) {
        return pin(relation, tid) && look(TupleId.offset(tid), snapshot, false);
    }

    /**
     * The version that the snapshot sees of the HOT chain whose root is at the place: where an
     * index would point. (PostgreSQL: heap_hot_search_buffer.)
     */
    public boolean fetchHot(HeapRelation relation, long rootTid, HeapSnapshot snapshot) {
        int last = buffer;
        if (!pin(relation, rootTid)) {
            return false;
        }
        if (buffer != last) {
            backend.pruner.pruneOnAccess(relation, buffer);
        }
        return look(TupleId.offset(rootTid), snapshot, true);
    }

    /** An earlier pin of the same page is kept. */
    private boolean pin(HeapRelation wanted, long tid) {
        int wantedBlock = TupleId.block(tid);
        if (buffer != NONE && wanted == relation && wantedBlock == block) {
            return true;
        }
        close();
        if (wantedBlock == BlockNumber.INVALID
                || Integer.compareUnsigned(wantedBlock, wanted.storage().nblocks(ForkNumber.MAIN))
                        >= 0) {
            return false;
        }
        relation = wanted;
        block = wantedBlock;
        buffer = backend.buffers.read(wanted.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
        backend.pool.wrap(buffer, tuple.page);
        return true;
    }

    private boolean look(int offset, HeapSnapshot snapshot, boolean chain) {
        backend.buffers.lockShared(buffer);
        try {
            HintBits hints = backend.hints.on(buffer, relation.isLogged());
            return chain ? walk(offset, snapshot, hints) : one(offset, snapshot, hints);
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, block);
        } finally {
            backend.buffers.unlock(buffer);
        }
    }

    private boolean one(int offset, HeapSnapshot snapshot, HintBits hints) {
        if (offset < PageItems.FIRST_OFFSET_NUMBER || offset > Page.maxOffsetNumber(tuple.page)) {
            return false;
        }
        int itemId = Page.itemId(tuple.page, offset);
        if (!Page.lpIsNormal(itemId)) {
            return false;
        }
        int at = HeapPage.tupleAt(tuple.page, offset);
        tuple.show(block, offset, at, Page.lpLength(itemId));
        return snapshot.sees(backend.visibility, tuple.page, at, hints);
    }

    /** A version belongs to the chain if its xmin is what replaced the one before. */
    private boolean walk(int root, HeapSnapshot snapshot, HintBits hints) {
        int offset = root;
        int priorXmax = TransactionId.INVALID;
        boolean atRoot = true;
        for (int steps = 0; steps <= PageItems.MAX_LINE_POINTERS; steps++) {
            if (offset < PageItems.FIRST_OFFSET_NUMBER
                    || offset > Page.maxOffsetNumber(tuple.page)) {
                return false;
            }
            int itemId = Page.itemId(tuple.page, offset);
            if (Page.lpFlags(itemId) == Page.LP_REDIRECT && atRoot) {
                offset = Page.lpOffset(itemId);
                atRoot = false;
                continue;
            }
            if (!Page.lpIsNormal(itemId)) {
                return false;
            }
            int at = HeapPage.tupleAt(tuple.page, offset);
            int infomask2 = HeapTupleHeader.infomask2(tuple.page, at);
            if (atRoot && (infomask2 & HeapTupleHeader.HEAP_ONLY_TUPLE) != 0
                    || TransactionId.isValid(priorXmax)
                            && HeapTupleHeader.xmin(tuple.page, at) != priorXmax) {
                return false;
            }
            if (snapshot.sees(backend.visibility, tuple.page, at, hints)) {
                tuple.show(block, offset, at, Page.lpLength(itemId));
                return true;
            }
            int infomask = HeapTupleHeader.infomask(tuple.page, at);
            if ((infomask2 & HeapTupleHeader.HEAP_HOT_UPDATED) == 0
                    || (infomask & HeapTupleHeader.HEAP_XMAX_INVALID) != 0
                    || TupleVisibility.isXminInvalid(infomask)) {
                return false;
            }
            priorXmax = backend.visibility.updateXid(tuple.page, at, infomask);
            offset = HeapTupleHeader.ctidOffsetNumber(tuple.page, at);
            atRoot = false;
        }
        throw new DamagedDataException("update chain from lp " + root + " has no end");
    }

    /** Lets go of the page. */
    @Override
    public void close() {
        if (buffer != NONE) {
            int last = buffer;
            buffer = NONE;
            backend.buffers.release(last);
        }
    }
}
