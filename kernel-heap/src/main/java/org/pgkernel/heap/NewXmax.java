package org.pgkernel.heap;

import static org.pgkernel.heap.HeapTupleHeader.HEAP_KEYS_UPDATED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_LOCK_MASK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_MOVED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_BITS;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_COMMITTED;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_EXCL_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_INVALID;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_IS_MULTI;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_KEYSHR_LOCK;
import static org.pgkernel.heap.HeapTupleHeader.HEAP_XMAX_LOCK_ONLY;

import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.xact.MultiXactMembers;

/**
 * The xmax of a tuple that one more transaction locks or changes, with its infomask bits: that
 * transaction alone if nobody else matters any more, else a multixact of all who do. Whoever has
 * changed the tuple and committed always matters; a locker only while it runs.
 *
 * <p>The caller holds the page's exclusive lock and has called {@link
 * org.pgkernel.xact.MultiXacts#setOldestMember}. Reused; one backend's. (PostgreSQL:
 * compute_new_xmax_infomask, GetMultiXactIdHintBits, compute_infobits, heapam.c.)
 */
final class NewXmax {
    private final HeapBackend backend;
    private final MultiXactMembers members = new MultiXactMembers();
    private int xmax;
    private int infomask;
    private int infomask2;

    NewXmax(HeapBackend backend) {
        this.backend = backend;
    }

    int xmax() {
        return xmax;
    }

    int infomask() {
        return infomask;
    }

    int infomask2() {
        return infomask2;
    }

    /**
     * @param xid the own transaction's, to be added
     * @param isUpdate it changes the tuple, else it locks it
     */
    void add(LockedTuple tuple, int xid, RowLock lock, boolean isUpdate) {
        add(tuple.rawXmax(), tuple.infomask(), tuple.infomask2(), xid, lock, isUpdate);
    }

    void add(int old, int oldBits, int oldBits2, int xid, RowLock lock, boolean isUpdate) {
        int status = lock.status(isUpdate);
        if (matters(old, oldBits)) {
            if ((oldBits & HEAP_XMAX_IS_MULTI) != 0) {
                set(backend.transactions.multiXacts().expand(backend.session, old, xid, status));
                return;
            }
            boolean lockedOnly = HeapTupleHeader.isLockedOnly(oldBits);
            RowLock held = HeapTupleHeader.lock(oldBits, oldBits2);
            if (old != xid) {
                int oldStatus = held.status(!lockedOnly);
                set(
                        backend.transactions
                                .multiXacts()
                                .create(backend.session, old, oldStatus, xid, status));
                return;
            }
            // It has locked the tuple before: the stronger one of both is enough.
            assert lockedOnly : "the own transaction has changed the tuple";
            alone(xid, held.compareTo(lock) > 0 ? held : lock, isUpdate);
            return;
        }
        alone(xid, lock, isUpdate);
    }

    /** Running is asked before committed. */
    private boolean matters(int old, int bits) {
        if ((bits & HEAP_XMAX_INVALID) != 0 || HeapTupleHeader.isLockedUpgraded(bits)) {
            return false;
        }
        boolean lockedOnly = HeapTupleHeader.isLockedOnly(bits);
        if ((bits & HEAP_XMAX_IS_MULTI) != 0) {
            return backend.visibility.isRunning(old)
                    || !lockedOnly && backend.status.didCommit(updater(old));
        }
        if ((bits & HEAP_XMAX_COMMITTED) != 0) {
            return true;
        }
        boolean noLock = lockedOnly && (bits & HEAP_LOCK_MASK) == 0;
        return backend.status.isInProgress(old) && !noLock
                || !lockedOnly && backend.status.didCommit(old);
    }

    private int updater(int multi) {
        read(multi);
        for (int i = 0; i < members.count(); i++) {
            if (MultiXactMembers.isUpdate(members.status(i))) {
                return members.xid(i);
            }
        }
        return TransactionId.INVALID;
    }

    private void read(int multi) {
        backend.transactions.multiXacts().read(backend.session, multi, members);
    }

    private void alone(int xid, RowLock lock, boolean isUpdate) {
        xmax = xid;
        infomask2 = lock == RowLock.UPDATE ? HEAP_KEYS_UPDATED : 0;
        infomask = isUpdate ? 0 : HEAP_XMAX_LOCK_ONLY | lockBits(lock);
    }

    private static int lockBits(RowLock lock) {
        return switch (lock) {
            case KEY_SHARE -> HEAP_XMAX_KEYSHR_LOCK;
            case SHARE -> HEAP_LOCK_MASK;
            case NO_KEY_UPDATE, UPDATE -> HEAP_XMAX_EXCL_LOCK;
        };
    }

    /** Nobody. */
    void setInvalid() {
        xmax = TransactionId.INVALID;
        infomask = HEAP_XMAX_INVALID;
        infomask2 = 0;
    }

    /** One key-share locker. */
    void setKeyShare(int xid) {
        alone(xid, RowLock.KEY_SHARE, false);
    }

    /** A multixact, with the bits that its members make. (PostgreSQL: GetMultiXactIdHintBits.) */
    void set(int multi) {
        read(multi);
        RowLock strongest = RowLock.KEY_SHARE;
        boolean updated = false;
        infomask2 = 0;
        for (int i = 0; i < members.count(); i++) {
            int status = members.status(i);
            RowLock lock = RowLock.ofStatus(status);
            strongest = lock.compareTo(strongest) > 0 ? lock : strongest;
            updated |= MultiXactMembers.isUpdate(status);
            infomask2 |= lock == RowLock.UPDATE ? HEAP_KEYS_UPDATED : 0;
        }
        xmax = multi;
        infomask = HEAP_XMAX_IS_MULTI | lockBits(strongest) | (updated ? 0 : HEAP_XMAX_LOCK_ONLY);
    }

    /** Puts it in the place of the tuple's xmax. */
    void store(MutableDirectBuffer page, int at) {
        HeapTupleHeader.setInfomask(
                page,
                at,
                HeapTupleHeader.infomask(page, at) & ~(HEAP_XMAX_BITS | HEAP_MOVED) | infomask);
        HeapTupleHeader.setInfomask2(
                page, at, HeapTupleHeader.infomask2(page, at) & ~HEAP_KEYS_UPDATED | infomask2);
        HeapTupleHeader.setXmax(page, at, xmax);
    }

    /** True if the tuple's xmax is this one still. */
    boolean isStored(LockedTuple tuple) {
        return tuple.rawXmax() == xmax
                && (tuple.infomask() & HEAP_XMAX_BITS) == infomask
                && (tuple.infomask2() & HEAP_KEYS_UPDATED) == infomask2;
    }

    /** As records carry the bits. (PostgreSQL: compute_infobits.) */
    static int infobits(int infomask, int infomask2) {
        return ((infomask & HEAP_XMAX_IS_MULTI) != 0 ? HeapRecords.XMAX_IS_MULTI : 0)
                | ((infomask & HEAP_XMAX_LOCK_ONLY) != 0 ? HeapRecords.XMAX_LOCK_ONLY : 0)
                | ((infomask & HEAP_XMAX_EXCL_LOCK) != 0 ? HeapRecords.XMAX_EXCL_LOCK : 0)
                | ((infomask & HEAP_XMAX_KEYSHR_LOCK) != 0 ? HeapRecords.XMAX_KEYSHR_LOCK : 0)
                | ((infomask2 & HEAP_KEYS_UPDATED) != 0 ? HeapRecords.KEYS_UPDATED : 0);
    }
}
