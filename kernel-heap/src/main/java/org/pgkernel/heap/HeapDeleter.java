package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/** Deletes rows. Reused; one backend's. */
public final class HeapDeleter {
    private final HeapBackend backend;
    private final LockedTuple tuple;
    private final RowWaiter waiter;
    private final NewXmax xmax;
    private final TupleConflict conflict = new TupleConflict();

    public HeapDeleter(HeapBackend backend) {
        this.backend = backend;
        tuple = new LockedTuple(backend);
        waiter = new RowWaiter(backend);
        xmax = new NewXmax(backend);
    }

    /** What was in the way of the last deletion that failed. */
    public TupleConflict conflict() {
        return conflict;
    }

    /**
     * Deletes a version of a row that the current command sees, and what only it has out of line.
     * Waits for who has locked or changed it. The caller holds a lock on the relation that allows
     * it.
     *
     * @param wait false to answer BEING_MODIFIED instead
     * @return OK, INVISIBLE, SELF_MODIFIED, UPDATED, DELETED or BEING_MODIFIED; see {@link
     *     #conflict} (PostgreSQL: heap_delete)
     */
    public TupleOutcome delete(HeapRelation relation, long tid, boolean wait) {
        int xid = backend.session.xid();
        int commandId = backend.session.commandId(true);
        backend.setOldestMultiMember();
        try {
            if (!tuple.open(relation, tid)) {
                return TupleOutcome.INVISIBLE;
            }
            TupleOutcome outcome = waiter.await(tuple, RowLock.UPDATE, wait, commandId, conflict);
            if (outcome == TupleOutcome.OK) {
                int command = backend.cmax(tuple.page, tuple.at, commandId);
                boolean isCombo = backend.isOwnInsert(tuple.page, tuple.at);
                xmax.add(tuple, xid, RowLock.UPDATE, true);
                mark(xid, command, isCombo);
                tuple.unlock();
                deleteOutOfLine(relation);
            }
            return outcome;
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, TupleId.block(tid));
        } finally {
            tuple.close();
        }
    }

    /** A chunk of a value whose row this transaction has deleted or replaced. */
    void deleteChunk(HeapRelation toast, long tid) {
        TupleOutcome outcome = delete(toast, tid, true);
        if (outcome != TupleOutcome.OK) {
            throw new DamagedDataException(
                    "chunk "
                            + TupleId.format(tid)
                            + " cannot be deleted with its row: "
                            + outcome
                            + " "
                            + HeapBackend.place(toast, TupleId.block(tid)));
        }
    }

    /** The critical section. */
    private void mark(int xid, int command, boolean isCombo) {
        UnsafeBuffer page = tuple.page;
        try {
            HeapPage.setPrunable(page, xid);
            boolean cleared = tuple.clearAllVisible();
            xmax.store(page, tuple.at);
            HeapTupleHeader.setInfomask2(
                    page, tuple.at, tuple.infomask2() & ~HeapTupleHeader.HEAP_HOT_UPDATED);
            HeapTupleHeader.setCommandId(page, tuple.at, command, isCombo);
            HeapTupleHeader.setCtid(page, tuple.at, tuple.block, tuple.offset);
            backend.buffers.markDirty(tuple.buffer);
            if (tuple.relation.isLogged()) {
                log(xid, cleared);
            }
        } catch (RuntimeException | Error e) {
            throw backend.stop("deletion", tuple.relation, tuple.block, e);
        }
    }

    private void log(int xid, boolean allVisibleCleared) {
        UnsafeBuffer data = backend.recordData;
        data.putInt(HeapRecords.DELETE_XMAX, xmax.xmax());
        data.putShort(HeapRecords.DELETE_OFFNUM, (short) tuple.offset);
        data.putByte(
                HeapRecords.DELETE_INFOBITS,
                (byte) NewXmax.infobits(xmax.infomask(), xmax.infomask2()));
        data.putByte(
                HeapRecords.DELETE_FLAGS,
                (byte) (allVisibleCleared ? HeapRecords.DELETE_ALL_VISIBLE_CLEARED : 0));
        backend.record
                .begin(HeapRecords.HEAP_RMID, HeapRecords.DELETE, xid)
                .data(data, 0, HeapRecords.DELETE_SIZE);
        tuple.register(0);
        Page.setLsn(tuple.page, backend.record.insert());
    }

    /** The tuple's values stay where they are as long as the page is pinned. */
    private void deleteOutOfLine(HeapRelation relation) {
        if ((tuple.infomask() & HeapTuples.HEAP_HASEXTERNAL) != 0) {
            RowValues row = backend.oldRow(relation);
            HeapTuples.deform(tuple.page, tuple.at, tuple.length, row);
            backend.toast().delete(relation, row);
        }
    }
}
