package org.pgkernel.heap;

import java.util.function.IntPredicate;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;

/** What must hold of a heap's pages and its visibility map at any time. */
final class VacuumChecks {
    private final VisibilityMap map = new VisibilityMap();
    private final BufferPool pool;
    private final IntPredicate committed;
    private final MultiXacts multis;

    /** So many blocks that do not exist are asked about, too. */
    private static final int PAST_THE_END = 16;

    /**
     * @param committed of xids that have ended
     */
    VacuumChecks(BufferPool pool, IntPredicate committed, MultiXacts multis) {
        this.pool = pool;
        this.committed = committed;
        this.multis = multis;
    }

    /**
     * HEAP-30: a bit of the map means the page's flag, the flag means that all tuples are visible
     * to everybody and no line pointer is dead, the frozen bit that all of them are frozen.
     *
     * @param frozenXid no unfrozen id is older
     * @return the number of tuples
     */
    int check(SmgrRelation storage, int frozenXid) {
        int tuples = 0;
        int blocks = storage.exists(ForkNumber.MAIN) ? storage.nblocks(ForkNumber.MAIN) : 0;
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        for (int block = 0; block < blocks; block++) {
            int bits = map.status(pool, storage, block);
            int buffer = pool.read(storage, ForkNumber.MAIN, block, ReadMode.NORMAL);
            pool.wrap(buffer, page);
            String place = "block " + block;
            boolean flag = !Page.isNew(page) && Page.isAllVisible(page);
            require(bits == 0 || flag, "map bits " + bits + " without the page's flag", place);
            require(bits != VisibilityMap.ALL_FROZEN, "frozen but not visible", place);
            int last = Page.isNew(page) ? 0 : Page.maxOffsetNumber(page);
            for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last; offset++) {
                int itemId = Page.itemId(page, offset);
                String at = place + " lp " + offset;
                require(!flag || Page.lpFlags(itemId) != Page.LP_DEAD, "dead but visible", at);
                if (Page.lpFlags(itemId) == Page.LP_REDIRECT) {
                    redirect(page, Page.lpOffset(itemId), at);
                }
                if (Page.lpIsNormal(itemId)) {
                    tuples++;
                    tuple(page, Page.lpOffset(itemId), flag, bits, frozenXid, at);
                }
            }
            pool.release(buffer);
        }
        for (int block = blocks; block < blocks + PAST_THE_END; block++) {
            require(map.status(pool, storage, block) == 0, "bits past the end", "block " + block);
        }
        return tuples;
    }

    private static void redirect(UnsafeBuffer page, int to, String at) {
        require(to >= 1 && to <= Page.maxOffsetNumber(page), "redirect to nothing", at);
        require(Page.lpIsNormal(Page.itemId(page, to)), "redirect to no tuple", at);
        int infomask2 = HeapTupleHeader.infomask2(page, Page.lpOffset(Page.itemId(page, to)));
        require((infomask2 & HeapTupleHeader.HEAP_ONLY_TUPLE) != 0, "redirect to a root", at);
    }

    private void tuple(
            UnsafeBuffer page, int tuple, boolean flag, int bits, int frozenXid, String at) {
        int infomask = HeapTupleHeader.infomask(page, tuple);
        int xmin = HeapTupleHeader.xmin(page, tuple);
        int xmax = HeapTupleHeader.xmax(page, tuple);
        boolean frozen = TupleVisibility.isXminFrozen(infomask);
        boolean multi = (infomask & HeapTupleHeader.HEAP_XMAX_IS_MULTI) != 0;
        if (flag) {
            require(frozen || committed.test(xmin), "visible, but xmin did not commit", at);
            boolean undeleted =
                    (infomask & HeapTupleHeader.HEAP_XMAX_INVALID) != 0
                            || HeapTupleHeader.isLockedOnly(infomask)
                            || !committed.test(multi ? updaterOf(xmax) : xmax);
            require(undeleted, "visible, but deleted by " + xmax, at);
        }
        if ((bits & VisibilityMap.ALL_FROZEN) != 0) {
            require(frozen, "all-frozen, but xmin is not", at);
            require(!multi && !TransactionId.isNormal(xmax), "all-frozen, but xmax is not", at);
        }
        require(
                frozen || !TransactionId.precedes(xmin, frozenXid),
                "xmin " + xmin + " is older than " + frozenXid,
                at);
        require(
                multi || !TransactionId.isNormal(xmax) || !TransactionId.precedes(xmax, frozenXid),
                "xmax " + xmax + " is older than " + frozenXid,
                at);
    }

    /** Invalid, which did not commit, if all only lock. */
    private int updaterOf(int multi) {
        MultiXacts.Members members = new MultiXacts.Members();
        multis.members(multi, members);
        for (int i = 0; i < members.count(); i++) {
            if (members.isUpdate(i)) {
                return members.xid(i);
            }
        }
        return TransactionId.INVALID;
    }

    private static void require(boolean holds, String what, String place) {
        if (!holds) {
            throw new AssertionError(what + " " + place);
        }
    }
}
