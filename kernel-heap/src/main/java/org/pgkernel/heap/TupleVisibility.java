package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_COMBOCID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_LOCK_MASK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_MOVED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_LOCK_ONLY;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMIN_INVALID;

import org.agrona.DirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Who sees a tuple. One method a kind of snapshot; all read the header at {@code at} of a page that
 * the caller has pinned and locked, shared at least, and give hints to {@link HintBits}.
 *
 * <p>Each asks of the inserter, then of the deleter: mine, running (or unseen by the snapshot),
 * committed, else aborted, in this order; the order closes the gap in which a transaction has
 * committed but still runs. A frozen inserter is seen by all and never looked up.
 *
 * <p>A hint that a transaction committed is given only when it cannot reach the disk before the
 * commit record does; after a crash it would bring back what was never acknowledged. Hints of
 * aborts have no such limit.
 *
 * <p>Owns scratch memory: one thread. Allocates nothing. (PostgreSQL: heapam_visibility.c.)
 */
public final class TupleVisibility {
    /** What a tuple is to vacuum. (PostgreSQL: HTSV_Result.) */
    public enum VacuumStatus {
        DEAD,
        LIVE,
        RECENTLY_DEAD,
        INSERT_IN_PROGRESS,
        DELETE_IN_PROGRESS
    }

    /** Ids up to which nobody can see what was deleted; may advance from call to call. */
    @FunctionalInterface
    public interface VacuumHorizon {
        /**
         * True if no snapshot, now or later, sees this transaction as running. (PostgreSQL:
         * GlobalVisTestIsRemovableXid.)
         */
        boolean isRemovable(int xid);
    }

    private static final int XMIN_FROZEN = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;

    private final TransactionStatus transactions;
    private final MultiXacts multis;
    private final ComboCommandIds combos;
    private final MultiXacts.Members members = new MultiXacts.Members();
    private int deadAfter;
    private int dirtyXmin;
    private int dirtyXmax;

    public TupleVisibility(
            TransactionStatus transactions, MultiXacts multis, ComboCommandIds combos) {
        this.transactions = transactions;
        this.multis = multis;
        this.combos = combos;
    }

    /** (PostgreSQL: HeapTupleSatisfiesMVCC.) */
    public boolean satisfiesMvcc(DirectBuffer in, int at, Snapshot snapshot, HintBits hints) {
        int infomask = checkedInfomask(in, at);
        int xmin = HeapTupleHeader.xmin(in, at);
        if (!isXminCommitted(infomask)) {
            if (isXminInvalid(infomask)) {
                return false;
            }
            if (transactions.isCurrent(xmin)) {
                return ownInsertIsSeen(in, at, infomask, snapshot, hints);
            }
            if (snapshot.isInProgress(xmin)) {
                return false;
            }
            if (!transactions.didCommit(xmin)) {
                hints.set(at, HEAP_XMIN_INVALID);
                return false;
            }
            hintCommitted(at, HEAP_XMIN_COMMITTED, xmin, hints);
        } else if (!isXminFrozen(infomask) && snapshot.isInProgress(xmin)) {
            return false;
        }
        if (isUndeleted(infomask)) {
            return true;
        }
        int xmax = updateXid(in, at, infomask);
        if ((infomask & HEAP_XMAX_COMMITTED) != 0 && (infomask & HEAP_XMAX_IS_MULTI) == 0) {
            return snapshot.isInProgress(xmax);
        }
        if (!TransactionId.isValid(xmax)) {
            return true;
        }
        if (transactions.isCurrent(xmax)) {
            return Integer.compareUnsigned(cmax(in, at, infomask), snapshot.commandId()) >= 0;
        }
        if (snapshot.isInProgress(xmax)) {
            return true;
        }
        return !deleterCommitted(at, infomask, xmax, hints);
    }

    /** The asking transaction inserted it: earlier commands' work counts. */
    private boolean ownInsertIsSeen(
            DirectBuffer in, int at, int infomask, Snapshot snapshot, HintBits hints) {
        if (Integer.compareUnsigned(cmin(in, at, infomask), snapshot.commandId()) >= 0) {
            return false;
        }
        if (isUndeleted(infomask)) {
            return true;
        }
        if (!transactions.isCurrent(updateXid(in, at, infomask))) {
            ownDeleterAborted(at, infomask, hints);
            return true;
        }
        return Integer.compareUnsigned(cmax(in, at, infomask), snapshot.commandId()) >= 0;
    }

    /** The deleter was a subtransaction that aborted, for the row was never seen by others. */
    private static void ownDeleterAborted(int at, int infomask, HintBits hints) {
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0) {
            hints.set(at, HEAP_XMAX_INVALID);
        }
    }

    /** As of now, own changes included. (PostgreSQL: HeapTupleSatisfiesSelf.) */
    public boolean satisfiesSelf(DirectBuffer in, int at, HintBits hints) {
        return satisfiesNow(in, at, hints, false);
    }

    /**
     * As of now, and changes of running transactions count as made: who may conflict with the
     * caller is in {@link #dirtyXmin} and {@link #dirtyXmax}. (PostgreSQL:
     * HeapTupleSatisfiesDirty.)
     */
    public boolean satisfiesDirty(DirectBuffer in, int at, HintBits hints) {
        return satisfiesNow(in, at, hints, true);
    }

    /** The running inserter of the tuple last asked by {@link #satisfiesDirty}, else invalid. */
    public int dirtyXmin() {
        return dirtyXmin;
    }

    /** The running deleter of the tuple last asked by {@link #satisfiesDirty}, else invalid. */
    public int dirtyXmax() {
        return dirtyXmax;
    }

    private boolean satisfiesNow(DirectBuffer in, int at, HintBits hints, boolean dirty) {
        int infomask = checkedInfomask(in, at);
        dirtyXmin = TransactionId.INVALID;
        dirtyXmax = TransactionId.INVALID;
        if (!isXminCommitted(infomask)) {
            int xmin = HeapTupleHeader.xmin(in, at);
            if (isXminInvalid(infomask)) {
                return false;
            }
            if (transactions.isCurrent(xmin)) {
                if (isUndeleted(infomask)) {
                    return true;
                }
                if (!transactions.isCurrent(updateXid(in, at, infomask))) {
                    ownDeleterAborted(at, infomask, hints);
                    return true;
                }
                return false;
            }
            if (transactions.isInProgress(xmin)) {
                dirtyXmin = dirty ? xmin : TransactionId.INVALID;
                return dirty;
            }
            if (!transactions.didCommit(xmin)) {
                hints.set(at, HEAP_XMIN_INVALID);
                return false;
            }
            hintCommitted(at, HEAP_XMIN_COMMITTED, xmin, hints);
        }
        if (isUndeleted(infomask)) {
            return true;
        }
        int xmax = updateXid(in, at, infomask);
        if ((infomask & HEAP_XMAX_COMMITTED) != 0 && (infomask & HEAP_XMAX_IS_MULTI) == 0) {
            return false;
        }
        if (!TransactionId.isValid(xmax)) {
            return true;
        }
        if (transactions.isCurrent(xmax)) {
            return false;
        }
        if (transactions.isInProgress(xmax)) {
            dirtyXmax = dirty ? xmax : TransactionId.INVALID;
            return true;
        }
        return !deleterCommitted(at, infomask, xmax, hints);
    }

    /**
     * Of a TOAST table: every tuple whose inserter is not known to have aborted. Who has the row
     * that points to it may read it, whatever its own snapshot is. (PostgreSQL:
     * HeapTupleSatisfiesToast.)
     */
    public static boolean satisfiesToast(DirectBuffer in, int at) {
        int infomask = checkedInfomask(in, at);
        return isXminCommitted(infomask)
                || !isXminInvalid(infomask) && TransactionId.isValid(HeapTupleHeader.xmin(in, at));
    }

    /**
     * Whether the asking transaction may change or lock the tuple. The tuple's place tells whether
     * what replaced it is elsewhere. (PostgreSQL: HeapTupleSatisfiesUpdate.)
     *
     * @param commandId of the asking command: what it did itself, or a later one, is in its way
     * @return any outcome but {@link TupleOutcome#WOULD_BLOCK}
     */
    TupleOutcome satisfiesUpdate(DirectBuffer in, int at, long tid, int commandId, HintBits hints) {
        int infomask = checkedInfomask(in, at);
        if (!isXminCommitted(infomask)) {
            int xmin = HeapTupleHeader.xmin(in, at);
            if (isXminInvalid(infomask)) {
                return TupleOutcome.INVISIBLE;
            }
            if (transactions.isCurrent(xmin)) {
                return ownInsertMayBeUpdated(in, at, infomask, commandId, hints);
            }
            if (transactions.isInProgress(xmin)) {
                return TupleOutcome.INVISIBLE;
            }
            if (!transactions.didCommit(xmin)) {
                hints.set(at, HEAP_XMIN_INVALID);
                return TupleOutcome.INVISIBLE;
            }
            hintCommitted(at, HEAP_XMIN_COMMITTED, xmin, hints);
        }
        if ((infomask & HEAP_XMAX_INVALID) != 0) {
            return TupleOutcome.OK;
        }
        boolean lockedOnly = HeapTupleHeader.isLockedOnly(infomask);
        if ((infomask & HEAP_XMAX_COMMITTED) != 0) {
            return lockedOnly ? TupleOutcome.OK : replaced(in, at, tid);
        }
        int xmax = HeapTupleHeader.xmax(in, at);
        if ((infomask & HEAP_XMAX_IS_MULTI) != 0) {
            return multiMayBeUpdated(in, at, tid, infomask, commandId, hints);
        }
        if (transactions.isCurrent(xmax)) {
            return lockedOnly
                    ? TupleOutcome.BEING_MODIFIED
                    : ownChange(in, at, infomask, commandId);
        }
        if (transactions.isInProgress(xmax)) {
            return TupleOutcome.BEING_MODIFIED;
        }
        if (lockedOnly || !transactions.didCommit(xmax)) {
            hints.set(at, HEAP_XMAX_INVALID);
            return TupleOutcome.OK;
        }
        hintCommitted(at, HEAP_XMAX_COMMITTED, xmax, hints);
        return replaced(in, at, tid);
    }

    private static TupleOutcome replaced(DirectBuffer in, int at, long tid) {
        return HeapTupleHeader.ctid(in, at) == tid ? TupleOutcome.DELETED : TupleOutcome.UPDATED;
    }

    private TupleOutcome ownChange(DirectBuffer in, int at, int infomask, int commandId) {
        return Integer.compareUnsigned(cmax(in, at, infomask), commandId) >= 0
                ? TupleOutcome.SELF_MODIFIED
                : TupleOutcome.INVISIBLE;
    }

    /** Others may have locked it, if they had locked the version before it. */
    private TupleOutcome ownInsertMayBeUpdated(
            DirectBuffer in, int at, int infomask, int commandId, HintBits hints) {
        if (Integer.compareUnsigned(cmin(in, at, infomask), commandId) >= 0) {
            return TupleOutcome.INVISIBLE;
        }
        if ((infomask & HEAP_XMAX_INVALID) != 0) {
            return TupleOutcome.OK;
        }
        int xmax = HeapTupleHeader.xmax(in, at);
        boolean multi = (infomask & HEAP_XMAX_IS_MULTI) != 0;
        boolean lockedOnly = HeapTupleHeader.isLockedOnly(infomask);
        if (!lockedOnly && transactions.isCurrent(updateXid(in, at, infomask))) {
            return ownChange(in, at, infomask, commandId);
        }
        if (multi || lockedOnly) {
            return lockersRun(xmax, infomask) ? TupleOutcome.BEING_MODIFIED : TupleOutcome.OK;
        }
        ownDeleterAborted(at, infomask, hints);
        return TupleOutcome.OK;
    }

    private TupleOutcome multiMayBeUpdated(
            DirectBuffer in, int at, long tid, int infomask, int commandId, HintBits hints) {
        int multi = HeapTupleHeader.xmax(in, at);
        boolean lockedOnly = HeapTupleHeader.isLockedOnly(infomask);
        int xmax = lockedOnly ? TransactionId.INVALID : updateXid(in, at, infomask);
        boolean updated = TransactionId.isValid(xmax);
        if (updated && transactions.isCurrent(xmax)) {
            return ownChange(in, at, infomask, commandId);
        }
        if (lockersRun(multi, infomask)) {
            return TupleOutcome.BEING_MODIFIED;
        }
        if (updated && transactions.didCommit(xmax)) {
            return replaced(in, at, tid);
        }
        hints.set(at, HEAP_XMAX_INVALID);
        return TupleOutcome.OK;
    }

    /**
     * True if nobody has changed the tuple for good, or is about to: xmax is invalid, a locker, or
     * an aborted member. (PostgreSQL: HeapTupleHeaderIsOnlyLocked.)
     */
    boolean isOnlyLocked(DirectBuffer in, int at) {
        int infomask = HeapTupleHeader.infomask(in, at);
        if (isUndeleted(infomask) || !TransactionId.isValid(HeapTupleHeader.xmax(in, at))) {
            return true;
        }
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0) {
            return false;
        }
        int xmax = updateXid(in, at, infomask);
        return !TransactionId.isValid(xmax)
                || !transactions.isCurrent(xmax)
                        && !transactions.isInProgress(xmax)
                        && !transactions.didCommit(xmax);
    }

    /**
     * The transaction in xmax, no multixact, was waited for: afterwards xmax is marked invalid if
     * it left nothing. That a hint of a commit may not be set yet makes no difference. (PostgreSQL:
     * UpdateXmaxHintBits.)
     */
    void hintXmaxEnded(DirectBuffer in, int at, HintBits hints) {
        int infomask = HeapTupleHeader.infomask(in, at);
        if ((infomask & (HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID)) != 0) {
            return;
        }
        int xmax = HeapTupleHeader.xmax(in, at);
        if (!HeapTupleHeader.isLockedOnly(infomask) && transactions.didCommit(xmax)) {
            hintCommitted(at, HEAP_XMAX_COMMITTED, xmax, hints);
        } else {
            hints.set(at, HEAP_XMAX_INVALID);
        }
    }

    /** The own command that changed the tuple. (PostgreSQL: HeapTupleHeaderGetCmax.) */
    int cmax(DirectBuffer in, int at) {
        return cmax(in, at, HeapTupleHeader.infomask(in, at));
    }

    /** The own command that inserted the tuple. (PostgreSQL: HeapTupleHeaderGetCmin.) */
    int cmin(DirectBuffer in, int at) {
        return cmin(in, at, HeapTupleHeader.infomask(in, at));
    }

    /** Every tuple. (PostgreSQL: HeapTupleSatisfiesAny.) */
    public static boolean satisfiesAny() {
        return true;
    }

    /** Not yet free for removal. (PostgreSQL: HeapTupleSatisfiesNonVacuumable.) */
    public boolean satisfiesNonVacuumable(
            DirectBuffer in, int at, VacuumHorizon horizon, HintBits hints) {
        return vacuumStatus(in, at, horizon, hints) != VacuumStatus.DEAD;
    }

    /** (PostgreSQL: HeapTupleSatisfiesVacuum.) */
    public VacuumStatus vacuumStatus(
            DirectBuffer in, int at, VacuumHorizon horizon, HintBits hints) {
        VacuumStatus status = vacuumStatus(in, at, hints);
        return status == VacuumStatus.RECENTLY_DEAD && horizon.isRemovable(deadAfter)
                ? VacuumStatus.DEAD
                : status;
    }

    /** The deleter that the last {@link VacuumStatus#RECENTLY_DEAD} was about. */
    public int deadAfter() {
        return deadAfter;
    }

    /**
     * Without a horizon: never DEAD but for aborted inserters. (PostgreSQL:
     * HeapTupleSatisfiesVacuumHorizon.)
     */
    public VacuumStatus vacuumStatus(DirectBuffer in, int at, HintBits hints) {
        int infomask = checkedInfomask(in, at);
        deadAfter = TransactionId.INVALID;
        if (!isXminCommitted(infomask)) {
            int xmin = HeapTupleHeader.xmin(in, at);
            if (isXminInvalid(infomask)) {
                return VacuumStatus.DEAD;
            }
            if (transactions.isCurrent(xmin)) {
                return !isUndeleted(infomask) && transactions.isCurrent(updateXid(in, at, infomask))
                        ? VacuumStatus.DELETE_IN_PROGRESS
                        : VacuumStatus.INSERT_IN_PROGRESS;
            }
            if (transactions.isInProgress(xmin)) {
                return VacuumStatus.INSERT_IN_PROGRESS;
            }
            if (!transactions.didCommit(xmin)) {
                hints.set(at, HEAP_XMIN_INVALID);
                return VacuumStatus.DEAD;
            }
            hintCommitted(at, HEAP_XMIN_COMMITTED, xmin, hints);
        }
        if ((infomask & HEAP_XMAX_INVALID) != 0) {
            return VacuumStatus.LIVE;
        }
        int rawXmax = HeapTupleHeader.xmax(in, at);
        if (HeapTupleHeader.isLockedOnly(infomask)) {
            if ((infomask & HEAP_XMAX_COMMITTED) == 0 && !lockersRun(rawXmax, infomask)) {
                hints.set(at, HEAP_XMAX_INVALID);
            }
            return VacuumStatus.LIVE;
        }
        return deleterStatus(in, at, infomask, rawXmax, hints);
    }

    private VacuumStatus deleterStatus(
            DirectBuffer in, int at, int infomask, int rawXmax, HintBits hints) {
        boolean multi = (infomask & HEAP_XMAX_IS_MULTI) != 0;
        int xmax = updateXid(in, at, infomask);
        if (multi || (infomask & HEAP_XMAX_COMMITTED) == 0) {
            boolean valid = TransactionId.isValid(xmax);
            if (valid && transactions.isInProgress(xmax)) {
                return VacuumStatus.DELETE_IN_PROGRESS;
            }
            if (!valid || !transactions.didCommit(xmax)) {
                if (!multi || !isRunning(rawXmax)) {
                    hints.set(at, HEAP_XMAX_INVALID);
                }
                return VacuumStatus.LIVE;
            }
            if (!multi) {
                hintCommitted(at, HEAP_XMAX_COMMITTED, xmax, hints);
            }
        }
        deadAfter = xmax;
        return VacuumStatus.RECENTLY_DEAD;
    }

    private boolean lockersRun(int rawXmax, int infomask) {
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0) {
            return transactions.isInProgress(rawXmax);
        }
        // Such a bit pattern came through pg_upgrade from 9.2 or before: the multixact is gone.
        return (infomask & HEAP_LOCK_MASK) != 0 && isRunning(rawXmax);
    }

    /** Any member runs. (PostgreSQL: MultiXactIdIsRunning.) */
    boolean isRunning(int multi) {
        multis.members(multi, members);
        for (int i = 0; i < members.count(); i++) {
            if (transactions.isCurrent(members.xid(i))
                    || transactions.isInProgress(members.xid(i))) {
                return true;
            }
        }
        return false;
    }

    /** Not running, and not the asker's: committed or gone. */
    private boolean deleterCommitted(int at, int infomask, int xmax, HintBits hints) {
        boolean multi = (infomask & HEAP_XMAX_IS_MULTI) != 0;
        boolean committed = transactions.didCommit(xmax);
        if (!multi) {
            if (committed) {
                hintCommitted(at, HEAP_XMAX_COMMITTED, xmax, hints);
            } else {
                hints.set(at, HEAP_XMAX_INVALID);
            }
        }
        return committed;
    }

    private void hintCommitted(int at, int bit, int xid, HintBits hints) {
        long lsn = transactions.unflushedCommitLsn(xid);
        if (lsn == 0 || hints.maySetAfter(lsn)) {
            hints.set(at, bit);
        }
    }

    /**
     * The transaction that deleted or updated the tuple: xmax, or the one member of a multixact
     * that is no locker; invalid if there is none. (PostgreSQL: HeapTupleHeaderGetUpdateXid.)
     */
    int updateXid(DirectBuffer in, int at, int infomask) {
        int xmax = HeapTupleHeader.xmax(in, at);
        if ((infomask & HEAP_XMAX_IS_MULTI) == 0
                || (infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_LOCK_ONLY)) != 0) {
            return xmax;
        }
        multis.members(xmax, members);
        for (int i = 0; i < members.count(); i++) {
            if (members.isUpdate(i)) {
                return members.xid(i);
            }
        }
        return TransactionId.INVALID;
    }

    private static boolean isUndeleted(int infomask) {
        return (infomask & HEAP_XMAX_INVALID) != 0 || HeapTupleHeader.isLockedOnly(infomask);
    }

    /** Frozen included. */
    static boolean isXminCommitted(int infomask) {
        return (infomask & HEAP_XMIN_COMMITTED) != 0;
    }

    static boolean isXminInvalid(int infomask) {
        return (infomask & XMIN_FROZEN) == HEAP_XMIN_INVALID;
    }

    static boolean isXminFrozen(int infomask) {
        return (infomask & XMIN_FROZEN) == XMIN_FROZEN;
    }

    private int cmin(DirectBuffer in, int at, int infomask) {
        int raw = HeapTupleHeader.commandId(in, at);
        return (infomask & HEAP_COMBOCID) != 0 ? combos.cmin(raw) : raw;
    }

    private int cmax(DirectBuffer in, int at, int infomask) {
        int raw = HeapTupleHeader.commandId(in, at);
        return (infomask & HEAP_COMBOCID) != 0 ? combos.cmax(raw) : raw;
    }

    private static int checkedInfomask(DirectBuffer in, int at) {
        int infomask = HeapTupleHeader.infomask(in, at);
        if ((infomask & HEAP_MOVED) != 0) {
            throw new DamagedDataException(
                    "tuple was moved by a VACUUM FULL of before 9.0, which is not supported");
        }
        return infomask;
    }
}
