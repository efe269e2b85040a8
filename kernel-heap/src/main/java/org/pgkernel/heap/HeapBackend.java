package org.pgkernel.heap;

import java.util.IdentityHashMap;
import java.util.Map;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.fsm.FreeSpace;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.xact.TransactionManager;
import org.pgkernel.xact.TransactionSession;

/**
 * One thread's heap work: what it builds on, joined to its transaction, with the memory that the
 * operations share. The operations themselves ({@link HeapInserter}, {@link HeapScan}, {@link
 * HeapFetch} and others) are made over a backend and belong to its thread.
 *
 * <p>The session begins and ends transactions; who ends one calls {@link #endTransaction} after it.
 */
public final class HeapBackend {
    /** Relations remembered before all are forgotten: they are only hints. */
    private static final int MOST_STATES = 4096;

    final BufferPool pool;
    final BackendBuffers buffers;
    final WalInserter wal;
    final RecordInsert record;
    final TransactionManager transactions;
    final TransactionSession session;
    final int database;
    final FreeSpace freeSpace;
    final RelationGrowth growth;
    final VisibilityMap visibilityMap = new VisibilityMap();

    final TransactionStatus status;
    final MultiXacts multis;
    final ComboCommandIds combos;
    final TupleVisibility visibility;
    final PageHints hints;
    final SessionHorizon horizon;
    final HeapPruner pruner;
    final ObjectIds objectIds;
    final SpaceCounters space = new SpaceCounters();
    private final ToastStore toast;

    /** A tuple in the making. */
    final UnsafeBuffer tuple = new UnsafeBuffer(new byte[Page.SIZE]);

    /** Main data of a record in the making. */
    final UnsafeBuffer recordData = new UnsafeBuffer(new byte[1024]);

    private final Map<HeapRelation, RelationState> states = new IdentityHashMap<>();
    private HeapRelation lastRelation;
    private RelationState lastState;

    /**
     * @param buffers of this thread
     * @param session of this thread
     * @param database the session's, for horizons
     * @param freeSpace of this thread
     */
    public HeapBackend(
            HeapEnvironment environment,
            BackendBuffers buffers,
            TransactionSession session,
            int database,
            FreeSpace freeSpace) {
        this(environment, buffers, session, database, freeSpace, new ComboCommandIds());
    }

    HeapBackend(
            HeapEnvironment environment,
            BackendBuffers buffers,
            TransactionSession session,
            int database,
            FreeSpace freeSpace,
            ComboCommandIds combos) {
        pool = environment.pool();
        wal = environment.wal();
        transactions = environment.transactions();
        growth = environment.growth();
        this.buffers = buffers;
        this.session = session;
        this.database = database;
        this.freeSpace = freeSpace;
        this.combos = combos;
        record = new RecordInsert(wal, environment.compression());
        status = new SessionStatus(transactions, session, wal);
        multis = new SessionMultiXacts(transactions, session);
        visibility = new TupleVisibility(status, multis, combos);
        hints = new PageHints(buffers);
        horizon = new SessionHorizon(transactions, database);
        objectIds = environment.objectIds();
        pruner = new HeapPruner(this);
        toast = new ToastStore(this);
        toast.deleter(new HeapDeleter(this)::deleteChunk);
    }

    public BackendBuffers buffers() {
        return buffers;
    }

    /** How this backend's new rows found their pages, since it was opened. Its thread's. */
    public SpaceCounters spaceCounters() {
        return space;
    }

    /** Long values. */
    public ToastStore toast() {
        return toast;
    }

    public TransactionSession session() {
        return session;
    }

    /** An empty MVCC snapshot of this backend; see {@link #snapshot(MvccSnapshot)}. */
    public MvccSnapshot newSnapshot() {
        return new MvccSnapshot(session.newSnapshot());
    }

    /** What has committed by now, and what this transaction's earlier commands did. */
    public void snapshot(MvccSnapshot into) {
        session.snapshot(into.xact());
        horizon.snapshotTaken();
    }

    /** The transaction has ended. */
    public void endTransaction() {
        combos.clear();
        horizon.forget();
        freeSpace.forget();
    }

    /** The transaction was rolled back to a savepoint. */
    public void endSubtransaction() {
        freeSpace.forget();
    }

    /** The relation's files are gone, or shorter. */
    public void forget(HeapRelation relation) {
        states.remove(relation);
        freeSpace.forget();
        if (lastRelation == relation) {
            lastRelation = null;
            lastState = null;
        }
    }

    /** For a row's old version: good until the relation's next one. */
    RowValues oldRow(HeapRelation relation) {
        RelationState state = state(relation);
        if (state.old == null) {
            state.old = new RowValues(relation.descriptor());
        }
        return state.old;
    }

    /**
     * No multixact that this transaction becomes a member of is older than the next one. Before its
     * xid goes to a row: others may put it into a multixact from then on.
     */
    void setOldestMultiMember() {
        transactions.multiXacts().setOldestMember(session);
    }

    /** True if the own transaction has inserted the tuple: it has two commands to remember. */
    boolean isOwnInsert(UnsafeBuffer page, int at) {
        return !TupleVisibility.isXminCommitted(HeapTupleHeader.infomask(page, at))
                && status.isCurrent(HeapTupleHeader.xmin(page, at));
    }

    /**
     * What the tuple has to carry once the command has changed it: the command, or a combo of it
     * and the one that inserted the tuple. Changes nothing if that throws (R03). (PostgreSQL:
     * HeapTupleHeaderAdjustCmax.)
     */
    int cmax(UnsafeBuffer page, int at, int commandId) {
        return isOwnInsert(page, at)
                ? combos.combine(visibility.cmin(page, at), commandId)
                : commandId;
    }

    RelationState state(HeapRelation relation) {
        if (relation == lastRelation) {
            return lastState;
        }
        RelationState state = states.get(relation);
        if (state == null) {
            if (states.size() == MOST_STATES) {
                states.clear();
            }
            state = new RelationState();
            states.put(relation, state);
        }
        lastRelation = relation;
        lastState = state;
        return state;
    }

    /**
     * Ends a critical section that failed: between the first change of a page and its LSN. The
     * page's lock is still held.
     *
     * @param what "insertion", and the like
     * @return what to throw
     */
    KernelStoppedException stop(String what, HeapRelation relation, int block, Throwable cause) {
        return wal.stop(what + " failed half-way " + place(relation, block), cause);
    }

    /** The same error with the place, which only the caller knows. */
    static DamagedDataException damaged(DamagedDataException e, HeapRelation relation, int block) {
        return e.getMessage().contains("rel=")
                ? e
                : new DamagedDataException(e.getMessage() + " " + place(relation, block), e);
    }

    static String place(HeapRelation relation, int block) {
        return "rel="
                + relation
                + " fork="
                + ForkNumber.MAIN
                + " block="
                + BlockNumber.toString(block);
    }

    /** For messages: with the page's LSN. */
    static String place(HeapRelation relation, int block, UnsafeBuffer page) {
        return place(relation, block) + " lsn=" + Lsn.format(Page.lsn(page));
    }
}
