package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_HOT_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_KEYS_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_LOCK_MASK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_BITS;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_LOCK_ONLY;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_INVALID;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.heap.TupleVisibility.VacuumStatus;

/**
 * Takes old transaction ids out of the tuples that a prune left, before those ids are used anew:
 * {@link #plan} looks, {@link #apply} does what the plan's FREEZE_PAGE record says, through the
 * same code as redo.
 *
 * <p>xmin before the cutoff becomes frozen. xmax before it is taken away if it only locked, or
 * aborted; a multixact is taken away, replaced by its one updater, or made anew of the members that
 * still count.
 *
 * <p>HEAP-13 (R02): a tuple whose deletion is committed, or whose insertion was aborted, although
 * the prune found it alive, is left as it is and the page asks to be pruned again: freezing it
 * would bring it back to life. The cutoffs must not be after the horizon that the prune used.
 *
 * <p>Owns scratch memory: one thread. Allocates nothing but in the constructor, and when a
 * multixact has more members than any before. (PostgreSQL: heap_prepare_freeze_tuple,
 * FreezeMultiXactId, heapam.c.)
 */
public final class PageFreezer {
    /**
     * @param relFrozenXid no older id may stand in the table: pg_class says so
     * @param relMinMulti no older multixact either
     * @param cutoffXid ids before it are frozen
     * @param cutoffMulti multixacts before it are taken away
     */
    public record Limits(int relFrozenXid, int relMinMulti, int cutoffXid, int cutoffMulti) {}

    private static final int XMIN_FROZEN = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;

    /** What is to become of one tuple. */
    private enum Verdict {
        KEEP,
        CHANGE,
        PRUNE_AGAIN
    }

    private final TransactionStatus transactions;
    private final MultiXacts multis;
    private final MultiXacts.Members members = new MultiXacts.Members();
    private final MultiXacts.Members kept = new MultiXacts.Members();
    private final UnsafeBuffer main = new UnsafeBuffer(new byte[HeapRecords.FREEZE_SIZE]);
    private final UnsafeBuffer data =
            new UnsafeBuffer(new byte[HeapRecords.FREEZE_PLAN_SIZE * PageItems.MAX_LINE_POINTERS]);

    private Limits limits;
    private int count;
    private boolean pruneAgain;
    private boolean allFrozen;
    private int oldestXid;
    private int oldestMulti;
    private int xmax;
    private int infomask;
    private int infomask2;
    private boolean xmaxFrozen;

    public PageFreezer(TransactionStatus transactions, MultiXacts multis) {
        this.transactions = transactions;
        this.multis = multis;
    }

    /**
     * Looks at all tuples. The caller holds the page's exclusive lock since the prune. May make new
     * multixacts.
     *
     * @param pruned the prune of this page, applied, hints included
     * @param oldestXid the oldest unfrozen id of the table that is known to stay; {@link
     *     #oldestXid} becomes older if need be. (PostgreSQL: NewRelfrozenXid.)
     * @return true if there is something to apply
     */
    public boolean plan(
            DirectBuffer page, PagePruner pruned, Limits limits, int oldestXid, int oldestMulti) {
        this.limits = limits;
        this.oldestXid = oldestXid;
        this.oldestMulti = oldestMulti;
        count = 0;
        pruneAgain = false;
        allFrozen = true;
        PageItems.checkPointers(page, false);
        for (int offnum = 1; offnum <= Page.maxOffsetNumber(page); offnum++) {
            if (!Page.lpIsNormal(Page.itemId(page, offnum))) {
                continue;
            }
            VacuumStatus status = pruned.status(offnum);
            Verdict verdict =
                    status == null || status == VacuumStatus.DEAD
                            ? Verdict.PRUNE_AGAIN
                            : judge(page, HeapPage.tupleAt(page, offnum));
            switch (verdict) {
                case KEEP -> {}
                case CHANGE -> add(offnum);
                case PRUNE_AGAIN -> {
                    pruneAgain = true;
                    allFrozen = false;
                }
            }
        }
        main.putInt(0, limits.cutoffXid());
        main.putShort(HeapRecords.FREEZE_NTUPLES, (short) count);
        return count > 0;
    }

    /**
     * Looks whether {@link #plan} would change a tuple, where the page cannot be pruned now; makes
     * {@link #oldestXid} and {@link #oldestMulti} as old as what the page holds as it is. A shared
     * lock is enough. (PostgreSQL: heap_tuple_would_freeze.)
     */
    public boolean wouldFreeze(DirectBuffer page, Limits limits, int oldestXid, int oldestMulti) {
        this.limits = limits;
        this.oldestXid = oldestXid;
        this.oldestMulti = oldestMulti;
        boolean would = false;
        PageItems.checkPointers(page, false);
        for (int offnum = 1; offnum <= Page.maxOffsetNumber(page); offnum++) {
            if (Page.lpIsNormal(Page.itemId(page, offnum))) {
                int at = HeapPage.tupleAt(page, offnum);
                infomask = HeapTupleHeader.infomask(page, at);
                boolean xminOld =
                        !TupleVisibility.isXminFrozen(infomask)
                                && isOld(HeapTupleHeader.xmin(page, at));
                would |= xmaxWouldFreeze(HeapTupleHeader.xmax(page, at)) || xminOld;
            }
        }
        return would;
    }

    /** Counts among the oldest, too. */
    private boolean isOld(int xid) {
        if (!TransactionId.isNormal(xid)) {
            return false;
        }
        oldestXid = older(oldestXid, xid);
        return TransactionId.precedes(xid, limits.cutoffXid());
    }

    private boolean xmaxWouldFreeze(int xmax) {
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0) {
            return isOld(xmax);
        }
        if (xmax == 0) {
            return false;
        }
        oldestMulti = multiPrecedes(xmax, oldestMulti) ? xmax : oldestMulti;
        if (HeapTupleHeader.isLockedOnly(infomask) && (infomask & HEAP_LOCK_MASK) == 0) {
            return true; // came through pg_upgrade
        }
        boolean would = multiPrecedes(xmax, limits.cutoffMulti());
        multis.members(xmax, members);
        for (int i = 0; i < members.count(); i++) {
            would |= isOld(members.xid(i));
        }
        return would;
    }

    /**
     * True if an id of the tuple may have to be frozen some day. (PostgreSQL:
     * heap_tuple_needs_eventual_freeze.)
     */
    static boolean needsFreezeSomeDay(DirectBuffer page, int at) {
        int infomask = HeapTupleHeader.infomask(page, at);
        int xmax = HeapTupleHeader.xmax(page, at);
        if (!TupleVisibility.isXminFrozen(infomask)
                && TransactionId.isNormal(HeapTupleHeader.xmin(page, at))) {
            return true;
        }
        return (infomask & HEAP_XMAX_IS_MULTI) != 0
                ? TransactionId.isValid(xmax)
                : TransactionId.isNormal(xmax);
    }

    private Verdict judge(DirectBuffer page, int at) {
        infomask = HeapTupleHeader.infomask(page, at);
        infomask2 = HeapTupleHeader.infomask2(page, at);
        xmax = HeapTupleHeader.xmax(page, at);
        int xmin = HeapTupleHeader.xmin(page, at);
        boolean changed = false;
        boolean xminFrozen = true;
        if (TransactionId.isNormal(xmin) && !TupleVisibility.isXminFrozen(infomask)) {
            checkNotOlder("xmin", xmin);
            xminFrozen = TransactionId.precedes(xmin, limits.cutoffXid());
            if (xminFrozen && !transactions.didCommit(xmin)) {
                return Verdict.PRUNE_AGAIN;
            }
            if (xminFrozen) {
                infomask |= XMIN_FROZEN;
                changed = true;
            } else {
                oldestXid = older(oldestXid, xmin);
            }
        }
        xmaxFrozen = false;
        Verdict ofXmax = judgeXmax();
        if (ofXmax == Verdict.PRUNE_AGAIN) {
            return ofXmax;
        }
        allFrozen &= xminFrozen && xmaxFrozen;
        return changed || ofXmax == Verdict.CHANGE ? Verdict.CHANGE : Verdict.KEEP;
    }

    private Verdict judgeXmax() {
        if ((infomask & HEAP_XMAX_IS_MULTI) != 0) {
            return judgeMulti();
        }
        if (TransactionId.isNormal(xmax)) {
            checkNotOlder("xmax", xmax);
            if (!TransactionId.precedes(xmax, limits.cutoffXid())) {
                oldestXid = older(oldestXid, xmax);
                return Verdict.KEEP;
            }
            if (!HeapTupleHeader.isLockedOnly(infomask) && transactions.didCommit(xmax)) {
                return Verdict.PRUNE_AGAIN;
            }
            return removeXmax();
        }
        if ((infomask & HEAP_XMAX_INVALID) == 0 && TransactionId.isValid(xmax)) {
            throw new DamagedDataException(
                    "found xmax "
                            + Integer.toUnsignedString(xmax)
                            + " (infomask 0x"
                            + Integer.toHexString(infomask)
                            + ") not frozen, not multi, not normal");
        }
        xmaxFrozen = true;
        return Verdict.KEEP;
    }

    private Verdict removeXmax() {
        xmax = TransactionId.INVALID;
        infomask = infomask & ~HEAP_XMAX_BITS | HEAP_XMAX_INVALID;
        infomask2 &= ~(HEAP_HOT_UPDATED | HEAP_KEYS_UPDATED);
        xmaxFrozen = true;
        return Verdict.CHANGE;
    }

    private Verdict judgeMulti() {
        boolean lockedOnly = HeapTupleHeader.isLockedOnly(infomask);
        if (xmax == 0 || lockedOnly && (infomask & HEAP_LOCK_MASK) == 0) {
            // Came through pg_upgrade from 9.2 or before: nobody holds it.
            return removeXmax();
        }
        if (multiPrecedes(xmax, limits.relMinMulti())) {
            throw new DamagedDataException(
                    "found multixact "
                            + Integer.toUnsignedString(xmax)
                            + " from before relminmxid "
                            + Integer.toUnsignedString(limits.relMinMulti()));
        }
        multis.members(xmax, members);
        if (members.count() == 0) {
            return removeXmax();
        }
        if (!multiPrecedes(xmax, limits.cutoffMulti()) && !hasOldMember()) {
            oldestMulti = multiPrecedes(xmax, oldestMulti) ? xmax : oldestMulti;
            for (int i = 0; i < members.count(); i++) {
                oldestXid = older(oldestXid, members.xid(i));
            }
            return Verdict.KEEP;
        }
        return replaceMulti(multiPrecedes(xmax, limits.cutoffMulti()), lockedOnly);
    }

    private boolean hasOldMember() {
        for (int i = 0; i < members.count(); i++) {
            if (TransactionId.precedes(members.xid(i), limits.cutoffXid())) {
                return true;
            }
        }
        return false;
    }

    /** Keeps an updater that did not abort, and lockers that still run. */
    private Verdict replaceMulti(boolean old, boolean lockedOnly) {
        kept.clear();
        boolean lockers = false;
        boolean committed = false;
        int updater = TransactionId.INVALID;
        for (int i = 0; i < members.count(); i++) {
            int xid = members.xid(i);
            boolean running = transactions.isCurrent(xid) || transactions.isInProgress(xid);
            if (running && (old || TransactionId.precedes(xid, limits.cutoffXid()))) {
                throw new DamagedDataException(
                        "multixact "
                                + Integer.toUnsignedString(xmax)
                                + " from before cutoff found to be still running");
            }
            if (!members.isUpdate(i) || lockedOnly) {
                if (running) {
                    kept.add(xid, members.status(i));
                    lockers = true;
                }
                continue;
            }
            checkNotOlder("update xid", xid);
            committed = !running && transactions.didCommit(xid);
            if (committed && TransactionId.precedes(xid, limits.cutoffXid())) {
                return Verdict.PRUNE_AGAIN;
            }
            if (running || committed) {
                kept.add(xid, members.status(i));
                updater = xid;
            }
        }
        if (kept.count() == 0) {
            return removeXmax();
        }
        for (int i = 0; i < kept.count(); i++) {
            oldestXid = older(oldestXid, kept.xid(i));
        }
        infomask &= ~HEAP_XMAX_BITS;
        if (lockers) {
            xmax = multis.create(kept);
            infomask2 &= ~HEAP_KEYS_UPDATED;
            oldestMulti = multiPrecedes(xmax, oldestMulti) ? xmax : oldestMulti;
            setMultiBits();
        } else {
            xmax = updater;
            infomask |= committed && !old ? HEAP_XMAX_COMMITTED : 0;
        }
        return Verdict.CHANGE;
    }

    /**
     * The infomasks of a tuple locked by the kept members. (PostgreSQL: GetMultiXactIdHintBits.)
     */
    private void setMultiBits() {
        int strongest = 0;
        boolean updated = false;
        for (int i = 0; i < kept.count(); i++) {
            int status = kept.status(i);
            // Updates lock as strongly as the locks two below them.
            strongest = Math.max(strongest, kept.isUpdate(i) ? status - 2 : status);
            updated |= kept.isUpdate(i);
            if (status == MultiXacts.FOR_UPDATE || status == MultiXacts.UPDATE) {
                infomask2 |= HEAP_KEYS_UPDATED;
            }
        }
        infomask |=
                HEAP_XMAX_IS_MULTI
                        | (updated ? 0 : HEAP_XMAX_LOCK_ONLY)
                        | switch (strongest) {
                            case MultiXacts.FOR_KEY_SHARE -> HEAP_XMAX_KEYSHR_LOCK;
                            case MultiXacts.FOR_SHARE -> HEAP_LOCK_MASK;
                            default -> HEAP_XMAX_EXCL_LOCK;
                        };
    }

    private void checkNotOlder(String what, int xid) {
        if (TransactionId.precedes(xid, limits.relFrozenXid())) {
            throw new DamagedDataException(
                    "found "
                            + what
                            + " "
                            + Integer.toUnsignedString(xid)
                            + " from before relfrozenxid "
                            + Integer.toUnsignedString(limits.relFrozenXid()));
        }
    }

    private static int older(int a, int b) {
        return TransactionId.precedes(b, a) ? b : a;
    }

    /** (PostgreSQL: MultiXactIdPrecedes.) */
    private static boolean multiPrecedes(int a, int b) {
        return a - b < 0;
    }

    private void add(int offnum) {
        int at = count++ * HeapRecords.FREEZE_PLAN_SIZE;
        data.putInt(at + HeapRecords.FREEZE_PLAN_XMAX, xmax);
        data.putShort(at + HeapRecords.FREEZE_PLAN_OFFSET, (short) offnum);
        data.putShort(at + HeapRecords.FREEZE_PLAN_INFOMASK2, (short) infomask2);
        data.putShort(at + HeapRecords.FREEZE_PLAN_INFOMASK, (short) infomask);
        // The flags, for tuples moved by an ancient VACUUM FULL, and padding.
        data.putShort(at + HeapRecords.FREEZE_PLAN_FLAGS, (short) 0);
    }

    /** The record's main data, {@link HeapRecords#FREEZE_SIZE} bytes, until the next plan. */
    public DirectBuffer recordData() {
        return main;
    }

    /** The record's block data, until the next plan. */
    public DirectBuffer blockData() {
        return data;
    }

    public int blockDataLength() {
        return count * HeapRecords.FREEZE_PLAN_SIZE;
    }

    /** Does to the page what redo of the record does; the caller stamps it with the LSN. */
    public void apply(MutableDirectBuffer page) {
        HeapPage.freeze(page, main, data, blockDataLength());
    }

    /** A tuple has died since the prune: the page must be pruned again before it is done. */
    public boolean mustPruneAgain() {
        return pruneAgain;
    }

    /** With the plan applied no tuple of the page needs to be looked at for freezing again. */
    public boolean allFrozen() {
        return allFrozen;
    }

    /** No older unfrozen id is left on the pages planned so far. */
    public int oldestXid() {
        return oldestXid;
    }

    public int oldestMulti() {
        return oldestMulti;
    }
}
