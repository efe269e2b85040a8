package org.pgkernel.cluster;

import java.util.ArrayList;
import java.util.List;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BufferScope;
import org.pgkernel.heap.HeapBackend;
import org.pgkernel.heap.HeapSnapshot;
import org.pgkernel.heap.MvccSnapshot;
import org.pgkernel.xact.TransactionSession;

/**
 * A backend's transaction: its state, its statements and what they see. One thread.
 *
 * <p>A statement is one call of a table's, or all calls in a {@link Statement} scope. Its snapshot
 * is taken when it first needs one: at {@link Isolation#READ_COMMITTED} anew, at {@link
 * Isolation#REPEATABLE_READ} the transaction's first. What it changes itself is seen by later
 * statements only. A call that fails leaves the transaction failed: nothing but a rollback is
 * accepted, to a savepoint or of the whole. (PostgreSQL: xact.c, GetTransactionSnapshot.)
 */
final class BackendTransaction {
    private enum State {
        NONE,
        ACTIVE,
        FAILED
    }

    private final KernelStop stop;
    private final HeapBackend heap;
    private final TransactionSession session;
    private final MvccSnapshot snapshot;
    private final HeapSnapshot seen;
    private final Savepoints savepoints = new Savepoints();
    private final List<TableScan> scans = new ArrayList<>();

    private State state = State.NONE;
    private Isolation isolation;
    private BufferScope buffers;

    /** The snapshot is this statement's. */
    private boolean hasSnapshot;

    /** The snapshot is the transaction's. */
    private boolean hasTransactionSnapshot;

    private boolean inStatement;

    /** Goes up whenever locks may have gone, or a table may have got other files. */
    private long epoch;

    BackendTransaction(KernelStop stop, HeapBackend heap) {
        this.stop = stop;
        this.heap = heap;
        session = heap.session();
        snapshot = heap.newSnapshot();
        seen = HeapSnapshot.mvcc(snapshot);
    }

    boolean isOpen() {
        return state != State.NONE;
    }

    boolean isFailed() {
        return state == State.FAILED;
    }

    long epoch() {
        return epoch;
    }

    /** What is remembered of tables in this transaction is no longer so. */
    void tablesChanged() {
        epoch++;
    }

    void begin(Isolation level) {
        stop.check();
        if (isOpen()) {
            throw new RefusedException("a transaction is open already");
        }
        session.begin();
        buffers = heap.buffers().enter("transaction");
        isolation = level;
        state = State.ACTIVE;
        hasSnapshot = false;
        hasTransactionSnapshot = false;
        inStatement = false;
        epoch++;
    }

    void requireActive() {
        stop.check();
        switch (state) {
            case ACTIVE -> {}
            case NONE -> throw new RefusedException("no transaction is open");
            case FAILED ->
                    throw new RefusedException(
                            "the transaction has failed and accepts nothing but a rollback");
        }
    }

    /** A call begins: a statement of its own unless it is in one. */
    void enter() {
        requireActive();
    }

    /** The call has done its work. */
    void leave() {
        if (!inStatement) {
            endStatement();
        }
    }

    void beginStatement() {
        requireActive();
        if (inStatement) {
            throw new RefusedException("a statement is at work already");
        }
        inStatement = true;
    }

    /** Ends the scope; nothing if its transaction has ended. */
    void closeStatement() {
        if (inStatement) {
            inStatement = false;
            if (state == State.ACTIVE) {
                endStatement();
            }
        }
    }

    private void endStatement() {
        session.nextCommand();
        hasSnapshot = false;
        forgetSnapshots();
    }

    /** Nobody needs rows for a snapshot that nobody uses. */
    private void forgetSnapshots() {
        if (!hasTransactionSnapshot && !hasSnapshot && scans.isEmpty()) {
            session.forgetSnapshots();
        }
    }

    /** What the statement sees. */
    HeapSnapshot snapshot() {
        fillSnapshot();
        return seen;
    }

    /** A copy of what the statement sees, for a scan that outlives it. */
    void copySnapshot(MvccSnapshot into) {
        fillSnapshot();
        into.xact().copyFrom(snapshot.xact());
    }

    /**
     * The statement that begins is the transaction's first perhaps: at REPEATABLE READ all that
     * follow see what this one could have seen, also if it looks at nothing. A change of rows has
     * locked its table before; CREATE, DROP and TRUNCATE come first. (PostgreSQL:
     * PlannedStmtRequiresSnapshot, pquery.c.)
     */
    void fixTransactionSnapshot() {
        if (isolation == Isolation.REPEATABLE_READ && !hasTransactionSnapshot) {
            fillSnapshot();
        }
    }

    private void fillSnapshot() {
        if (hasSnapshot) {
            return;
        }
        if (hasTransactionSnapshot) {
            snapshot.xact().curcid(session.commandId(false));
        } else {
            heap.snapshot(snapshot);
            hasTransactionSnapshot = isolation == Isolation.REPEATABLE_READ;
        }
        hasSnapshot = true;
    }

    boolean isRepeatableRead() {
        return isolation == Isolation.REPEATABLE_READ;
    }

    /** A call failed. @return what to throw */
    RuntimeException failed(Throwable failure) {
        if (state == State.ACTIVE) {
            state = State.FAILED;
        }
        if (failure instanceof KernelStoppedException || failure instanceof Error) {
            stop.stop(failure);
        }
        if (failure instanceof Error error) {
            throw error;
        }
        return (RuntimeException) failure;
    }

    void opened(TableScan scan) {
        scans.add(scan);
    }

    void closed(TableScan scan) {
        scans.remove(scan);
        if (!inStatement) {
            forgetSnapshots();
        }
    }

    int level() {
        return session.level();
    }

    private void endScans(int level) {
        for (int i = scans.size() - 1; i >= 0; i--) {
            if (scans.get(i).level() >= level) {
                scans.get(i).end();
            }
        }
    }

    void savepoint(String name) {
        requireActive();
        requireNoStatement();
        session.savepoint();
        savepoints.add(name);
    }

    void release(String name) {
        requireActive();
        requireNoStatement();
        int level = savepoints.level(name);
        session.release(level);
        savepoints.cutTo(level);
    }

    void rollbackTo(String name) {
        stop.check();
        if (state == State.NONE) {
            throw new RefusedException("no transaction is open");
        }
        int level = savepoints.level(name);
        inStatement = false;
        endScans(level);
        try {
            session.rollbackTo(level);
        } catch (RuntimeException | Error e) {
            throw failed(e);
        }
        heap.endSubtransaction();
        savepoints.cutTo(level + 1);
        state = State.ACTIVE;
        hasSnapshot = false;
        epoch++;
    }

    /**
     * @param beforeLocksGo done once nothing but the commit itself is left
     */
    void commit(boolean synchronous, Runnable beforeLocksGo) {
        stop.check();
        requireNoStatement();
        if (state == State.FAILED) {
            rollback();
            throw new RefusedException(
                    "the transaction had failed before, so it was rolled back and not committed");
        }
        requireActive();
        endScans(0);
        try {
            beforeLocksGo.run();
            session.commit(synchronous);
        } catch (RuntimeException | Error e) {
            throw failed(e);
        }
        ended();
    }

    void rollback() {
        if (state == State.NONE) {
            return;
        }
        stop.check();
        inStatement = false;
        endScans(0);
        try {
            session.rollback();
        } catch (RuntimeException | Error e) {
            throw failed(e);
        }
        ended();
    }

    private void ended() {
        state = State.NONE;
        savepoints.clear();
        heap.endTransaction();
        epoch++;
        buffers.close();
    }

    private void requireNoStatement() {
        if (inStatement) {
            throw new RefusedException("a statement is at work");
        }
    }
}
