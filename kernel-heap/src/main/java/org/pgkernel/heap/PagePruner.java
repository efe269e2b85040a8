package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_HOT_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_ONLY_TUPLE;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.heap.TupleVisibility.VacuumHorizon;
import org.pgkernel.heap.TupleVisibility.VacuumStatus;

/**
 * Removes from a page what nobody can see, in two steps: {@link #plan} looks and writes nothing,
 * {@link #apply} does what the plan's PRUNE record says, through the same code as redo.
 *
 * <p>A chain of HOT versions begins at a tuple that an index may point to, or at a redirect that
 * took its place. Its dead versions go: the root's line pointer then redirects to the first that is
 * left, or is dead if none is. Dead line pointers stay until no index points to them.
 *
 * <p>HEAP-11 (C22): the status of each tuple is asked once and kept, so that a horizon that moves,
 * or a transaction that ends, while the page is being looked at cannot give one tuple two answers;
 * a redirect always leads to a tuple that stays. HEAP-12 (R01): the next version belongs to the
 * chain if its xmin as stored, frozen or not, is what deleted the one before.
 *
 * <p>What the checks learned of transactions is kept too and counts in the plan as if it stood in
 * the page; {@link #applyHints} writes it. Owns scratch memory: one thread. Allocates nothing but
 * in the constructor. (PostgreSQL: heap_page_prune, pruneheap.c.)
 */
public final class PagePruner {
    private static final int SLOTS = PageItems.MAX_LINE_POINTERS + 1;
    private static final VacuumStatus[] STATUSES = VacuumStatus.values();
    private static final byte NO_TUPLE = -1;

    private final TupleVisibility visibility;
    private final TransactionStatus transactions;
    private final HeapPage pages = new HeapPage();
    private final byte[] statuses = new byte[SLOTS];
    private final int[] hints = new int[SLOTS];
    private final boolean[] marked = new boolean[SLOTS];
    private final int[] chain = new int[SLOTS];
    private final int[] redirected = new int[2 * SLOTS];
    private final int[] dead = new int[SLOTS];
    private final int[] unused = new int[SLOTS];
    private final UnsafeBuffer main = new UnsafeBuffer(new byte[HeapRecords.PRUNE_SIZE]);
    private final UnsafeBuffer data = new UnsafeBuffer(new byte[4 * SLOTS * 2]);
    private final Collector collector = new Collector();

    private int last;
    private int redirectedCount;
    private int deadCount;
    private int unusedCount;
    private int deleted;
    private int latestRemovedXid;
    private int pruneXid;

    public PagePruner(TupleVisibility visibility, TransactionStatus transactions) {
        this.visibility = visibility;
        this.transactions = transactions;
    }

    /** Keeps hints instead of writing them. */
    private final class Collector implements HintBits {
        private DirectBuffer page;
        private boolean permanent;
        private int offnum;

        @Override
        public boolean maySetAfter(long commitLsn) {
            return !permanent || Long.compareUnsigned(Page.lsn(page), commitLsn) >= 0;
        }

        @Override
        public void set(int at, int bits) {
            hints[offnum] |= bits;
        }
    }

    /**
     * Looks at all tuples and decides. The caller holds a cleanup lock on the page, until after
     * {@link #apply}.
     *
     * @param permanent the relation survives a crash, so hints are bound to its LSN
     * @return true if there is something to apply
     * @throws DamagedDataException without the place, if line pointers or chains contradict
     *     themselves
     */
    public boolean plan(DirectBuffer page, VacuumHorizon horizon, boolean permanent) {
        begin(page);
        collector.page = page;
        collector.permanent = permanent;
        for (int offnum = last; offnum >= PageItems.FIRST_OFFSET_NUMBER; offnum--) {
            statuses[offnum] = NO_TUPLE;
            hints[offnum] = 0;
            marked[offnum] = false;
            if (Page.lpIsNormal(Page.itemId(page, offnum))) {
                collector.offnum = offnum;
                int at = HeapPage.tupleAt(page, offnum);
                statuses[offnum] =
                        (byte) visibility.vacuumStatus(page, at, horizon, collector).ordinal();
            }
        }
        for (int offnum = PageItems.FIRST_OFFSET_NUMBER; offnum <= last; offnum++) {
            int itemId = Page.itemId(page, offnum);
            if (!marked[offnum]
                    && (Page.lpIsNormal(itemId) || Page.lpFlags(itemId) == Page.LP_REDIRECT)) {
                pruneFrom(page, offnum);
            }
        }
        checkRedirects(page);
        encode();
        return redirectedCount + deadCount + unusedCount > 0;
    }

    private void begin(DirectBuffer page) {
        PageItems.checkPointers(page, false);
        last = Page.maxOffsetNumber(page);
        redirectedCount = 0;
        deadCount = 0;
        unusedCount = 0;
        deleted = 0;
        latestRemovedXid = TransactionId.INVALID;
        pruneXid = TransactionId.INVALID;
    }

    private void pruneFrom(DirectBuffer page, int root) {
        boolean normal = Page.lpIsNormal(Page.itemId(page, root));
        if (normal) {
            int at = HeapPage.tupleAt(page, root);
            if ((HeapTupleHeader.infomask2(page, at) & HEAP_ONLY_TUPLE) != 0) {
                // No index points to it. What aborted and leads nowhere goes; the rest has a root.
                if (status(root) == VacuumStatus.DEAD && !isHotUpdated(page, at, root)) {
                    markUnused(root);
                    advanceLatestRemoved(page, at, root);
                    deleted++;
                }
                return;
            }
        }
        int length = walk(page, root);
        int lastDead = lastDead(page, length);
        if (lastDead >= 0) {
            for (int i = 1; i <= lastDead; i++) {
                markUnused(chain[i]);
                deleted++;
            }
            deleted += normal ? 1 : 0;
            if (lastDead + 1 < length) {
                redirect(root, chain[lastDead + 1]);
            } else {
                markDead(root);
            }
        } else if (length < 2 && !normal) {
            // Its target went before it, on its own.
            markDead(root);
        }
    }

    /** Collects the chain's line pointers, up to the first version that is not dead or dying. */
    private int walk(DirectBuffer page, int root) {
        int length = 0;
        int priorXmax = TransactionId.INVALID;
        for (int offnum = root; offnum >= PageItems.FIRST_OFFSET_NUMBER && offnum <= last; ) {
            int itemId = Page.itemId(page, offnum);
            if (marked[offnum]) {
                break;
            }
            if (Page.lpFlags(itemId) == Page.LP_REDIRECT) {
                if (length > 0) {
                    break;
                }
                chain[length++] = offnum;
                offnum = Page.lpOffset(itemId);
                continue;
            }
            if (!Page.lpIsNormal(itemId)) {
                break;
            }
            int at = HeapPage.tupleAt(page, offnum);
            if (TransactionId.isValid(priorXmax) && HeapTupleHeader.xmin(page, at) != priorXmax) {
                break;
            }
            if (length > last) {
                throw new DamagedDataException("update chain from lp " + root + " has no end");
            }
            chain[length++] = offnum;
            int xmax = visibility.updateXid(page, at, infomask(page, at, offnum));
            VacuumStatus status = status(offnum);
            if (status == VacuumStatus.RECENTLY_DEAD || status == VacuumStatus.DELETE_IN_PROGRESS) {
                rememberPrunable(xmax);
            }
            if (status == VacuumStatus.DEAD) {
                advanceLatestRemoved(page, at, offnum);
            } else if (status != VacuumStatus.RECENTLY_DEAD) {
                break;
            }
            if (!isHotUpdated(page, at, offnum)) {
                break;
            }
            offnum = HeapTupleHeader.ctidOffsetNumber(page, at);
            priorXmax = xmax;
        }
        return length;
    }

    /** Index in the chain of the last dead tuple, or -1: all before it are dead, too. */
    private int lastDead(DirectBuffer page, int length) {
        for (int i = length - 1; i >= 0; i--) {
            if (Page.lpIsNormal(Page.itemId(page, chain[i]))
                    && status(chain[i]) == VacuumStatus.DEAD) {
                return i;
            }
        }
        return -1;
    }

    private int infomask(DirectBuffer page, int at, int offnum) {
        return HeapTupleHeader.infomask(page, at) | hints[offnum];
    }

    /**
     * A version that is neither aborted nor undeleted. (PostgreSQL: HeapTupleHeaderIsHotUpdated.)
     */
    private boolean isHotUpdated(DirectBuffer page, int at, int offnum) {
        int infomask = infomask(page, at, offnum);
        return (HeapTupleHeader.infomask2(page, at) & HEAP_HOT_UPDATED) != 0
                && (infomask & HEAP_XMAX_INVALID) == 0
                && !TupleVisibility.isXminInvalid(infomask);
    }

    /** (PostgreSQL: HeapTupleHeaderAdvanceLatestRemovedXid.) */
    private void advanceLatestRemoved(DirectBuffer page, int at, int offnum) {
        int infomask = infomask(page, at, offnum);
        boolean frozen = TupleVisibility.isXminFrozen(infomask);
        int xmin = frozen ? TransactionId.FROZEN : HeapTupleHeader.xmin(page, at);
        int xmax = visibility.updateXid(page, at, infomask);
        boolean inserted =
                TupleVisibility.isXminCommitted(infomask)
                        || !TupleVisibility.isXminInvalid(infomask) && transactions.didCommit(xmin);
        if (inserted && xmax != xmin && TransactionId.follows(xmax, latestRemovedXid)) {
            latestRemovedXid = xmax;
        }
    }

    private void rememberPrunable(int xid) {
        if (!TransactionId.isValid(pruneXid) || TransactionId.precedes(xid, pruneXid)) {
            pruneXid = xid;
        }
    }

    private void markUnused(int offnum) {
        unused[unusedCount++] = offnum;
        marked[offnum] = true;
    }

    private void markDead(int offnum) {
        dead[deadCount++] = offnum;
        marked[offnum] = true;
    }

    private void redirect(int from, int to) {
        redirected[2 * redirectedCount] = from;
        redirected[2 * redirectedCount + 1] = to;
        redirectedCount++;
        marked[from] = true;
        marked[to] = true;
    }

    /**
     * The last look before anything is written: a redirect leads to a heap-only tuple that stays.
     */
    private void checkRedirects(DirectBuffer page) {
        for (int i = 0; i < redirectedCount; i++) {
            int to = redirected[2 * i + 1];
            boolean stays = Page.lpIsNormal(Page.itemId(page, to));
            for (int k = 0; k < unusedCount; k++) {
                stays &= unused[k] != to;
            }
            if (!stays
                    || (HeapTupleHeader.infomask2(page, HeapPage.tupleAt(page, to))
                                    & HEAP_ONLY_TUPLE)
                            == 0) {
                throw new DamagedDataException(
                        "update chain from lp "
                                + redirected[2 * i]
                                + " leads to lp "
                                + to
                                + ", which is no version of it");
            }
        }
    }

    private void encode() {
        main.putInt(0, latestRemovedXid);
        main.putShort(HeapRecords.PRUNE_NREDIRECTED, (short) redirectedCount);
        main.putShort(HeapRecords.PRUNE_NDEAD, (short) deadCount);
        int at = encode(redirected, 2 * redirectedCount, 0);
        at = encode(dead, deadCount, at);
        encode(unused, unusedCount, at);
    }

    private int encode(int[] numbers, int count, int at) {
        for (int i = 0; i < count; i++) {
            data.putShort(at + 2 * i, (short) numbers[i]);
        }
        return at + 2 * count;
    }

    /** The record's main data, {@link HeapRecords#PRUNE_SIZE} bytes, until the next plan. */
    public DirectBuffer recordData() {
        return main;
    }

    /** The record's block data, until the next plan. */
    public DirectBuffer blockData() {
        return data;
    }

    public int blockDataLength() {
        return 2 * (2 * redirectedCount + deadCount + unusedCount);
    }

    /** Does to the page what redo of the record does; the caller stamps it with the LSN. */
    public void apply(MutableDirectBuffer page) {
        pages.prune(page, main, data, blockDataLength());
    }

    /**
     * Writes the hints that are not logged: what was learned of transactions, since when the page
     * may have something to prune, and that it is not known to be full. Call before {@link #apply}.
     *
     * @return true if the page was changed
     */
    public boolean applyHints(MutableDirectBuffer page) {
        boolean changed = false;
        for (int offnum = PageItems.FIRST_OFFSET_NUMBER; offnum <= last; offnum++) {
            if (hints[offnum] != 0) {
                int at = HeapPage.tupleAt(page, offnum);
                int infomask = HeapTupleHeader.infomask(page, at);
                changed |= (infomask | hints[offnum]) != infomask;
                HeapTupleHeader.setInfomask(page, at, infomask | hints[offnum]);
            }
        }
        int flags = Page.flags(page);
        if (Page.pruneXid(page) != pruneXid || (flags & Page.PD_PAGE_FULL) != 0) {
            Page.setPruneXid(page, pruneXid);
            Page.setFlags(page, flags & ~Page.PD_PAGE_FULL);
            changed = true;
        }
        return changed;
    }

    /** The status that the last plan found, or null where there was no tuple. */
    public VacuumStatus status(int offnum) {
        return statuses[offnum] == NO_TUPLE ? null : STATUSES[statuses[offnum]];
    }

    /** Line pointers of the page when it was planned. */
    public int lines() {
        return last;
    }

    /** Tuples that the plan removes. (PostgreSQL: ndeleted.) */
    public int deleted() {
        return deleted;
    }

    /** Line pointers that the plan makes dead: vacuum's next work. */
    public int newlyDead() {
        return deadCount;
    }

    /** The newest transaction whose deletion the plan carries out; invalid if none. */
    public int latestRemovedXid() {
        return latestRemovedXid;
    }
}
