package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;

/** Vacuum's first pass over a rig's table, without vacuum. */
final class Settling {
    private Settling() {}

    /**
     * What a vacuum does to pages that need no second pass: prunes them, and sets their bits in the
     * visibility map if all that is left is seen by everybody. No transaction may run.
     */
    static void settle(HeapRig rig, HeapRig.Session session, HeapRelation table, int bits) {
        session.session.begin();
        HeapBackend backend = session.backend;
        int map = -1;
        for (int block = 0; block < table.storage().nblocks(ForkNumber.MAIN); block++) {
            map = backend.visibilityMap.pin(session.buffers, table.storage(), block, map);
            int buffer =
                    session.buffers.read(table.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
            UnsafeBuffer page = new UnsafeBuffer(0L, 0);
            rig.pool.wrap(buffer, page);
            session.buffers.lockForCleanup(buffer);
            if (!Page.isNew(page)) {
                backend.pruner.prune(table, buffer, backend.horizon);
                if (isAllVisible(backend, buffer, page)) {
                    Page.setAllVisible(page);
                    session.buffers.markDirty(buffer);
                    backend.visibilityMap.set(
                            session.buffers, backend.record, table.storage(), buffer, map, 0, bits);
                }
            }
            session.buffers.unlock(buffer);
            session.buffers.release(buffer);
        }
        VisibilityMap.release(session.buffers, map);
        session.rollback();
    }

    private static boolean isAllVisible(HeapBackend backend, int buffer, UnsafeBuffer page) {
        for (int offset = 1; offset <= Page.maxOffsetNumber(page); offset++) {
            int itemId = Page.itemId(page, offset);
            if (Page.lpFlags(itemId) == Page.LP_DEAD
                    || Page.lpIsNormal(itemId)
                            && backend.visibility.vacuumStatus(
                                            page,
                                            Page.lpOffset(itemId),
                                            backend.horizon,
                                            backend.hints.on(buffer, true))
                                    != TupleVisibility.VacuumStatus.LIVE) {
                return false;
            }
        }
        return true;
    }
}
