package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.heap.TupleVisibility.VacuumHorizon;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * Prunes pages and logs it: whoever reads a page that is getting full tries to make room first. One
 * backend's.
 */
final class HeapPruner {
    /** Less than a tenth of the page free: it is getting full, whatever the fillfactor. */
    private static final int LEAST_FREE = Page.SIZE / 10;

    private final HeapBackend backend;
    private final PagePruner pruner;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    HeapPruner(HeapBackend backend) {
        this.backend = backend;
        pruner = new PagePruner(backend.visibility, backend.status);
    }

    /**
     * Prunes the page if it is worth it, and if nobody else has it pinned. What is freed is for
     * updates on this page: the free space map is not told. The caller has the page pinned, once,
     * and not locked. (PostgreSQL: heap_page_prune_opt.)
     */
    void pruneOnAccess(HeapRelation relation, int buffer) {
        backend.pool.wrap(buffer, page);
        int pruneXid = Page.pruneXid(page);
        if (!TransactionId.isValid(pruneXid)
                || !isGettingFull(relation)
                || !backend.horizon.isRemovable(pruneXid)
                || !backend.buffers.tryLockForCleanup(buffer)) {
            return;
        }
        try {
            // The first look was without a lock.
            if (isGettingFull(relation)) {
                prune(relation, buffer, backend.horizon);
            }
        } finally {
            backend.buffers.unlock(buffer);
        }
    }

    private boolean isGettingFull(HeapRelation relation) {
        return (Page.flags(page) & Page.PD_PAGE_FULL) != 0
                || PageItems.heapFreeSpace(page) < Math.max(relation.reservedSpace(), LEAST_FREE);
    }

    /**
     * Prunes the page, which the caller holds a cleanup lock on. (PostgreSQL: heap_page_prune.)
     *
     * @return what was found and done, until the next prune; its status of each tuple is the one
     *     that the prune went by
     */
    PagePruner prune(HeapRelation relation, int buffer, VacuumHorizon horizon) {
        backend.pool.wrap(buffer, page);
        int block = backend.pool.block(buffer);
        boolean worthIt;
        try {
            worthIt = pruner.plan(page, horizon, relation.isLogged());
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, block);
        }
        if (!worthIt) {
            if (pruner.applyHints(page)) {
                backend.buffers.markDirtyHint(buffer, true);
            }
            return pruner;
        }
        try {
            pruner.applyHints(page);
            pruner.apply(page);
            backend.buffers.markDirty(buffer);
            if (relation.isLogged()) {
                log(relation, block);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("pruning", relation, block, e);
        }
        return pruner;
    }

    /** The line pointers need not be logged beside the page's image. */
    private void log(HeapRelation relation, int block) {
        SmgrRelation storage = relation.storage();
        int xid = backend.session.xidIfAny();
        long end =
                backend.record
                        .begin(HeapRecords.HEAP2_RMID, HeapRecords.PRUNE, xid)
                        .data(pruner.recordData(), 0, HeapRecords.PRUNE_SIZE)
                        .page(
                                0,
                                storage.spcOid(),
                                storage.dbOid(),
                                storage.relNumber(),
                                ForkNumber.MAIN,
                                block,
                                page,
                                RecordInsert.STANDARD)
                        .pageData(0, pruner.blockData(), 0, pruner.blockDataLength())
                        .insert();
        Page.setLsn(page, end);
        backend.session.wroteWal(end);
    }
}
