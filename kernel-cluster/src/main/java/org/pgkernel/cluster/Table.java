package org.pgkernel.cluster;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.atomic.LongAdder;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.BulkInsert;
import org.pgkernel.heap.HeapFetch;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.HeapSnapshot;
import org.pgkernel.heap.LockWait;
import org.pgkernel.heap.RowLock;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.xact.LockMode;

/**
 * A table as one backend uses it, in any number of transactions. Each call takes the lock it needs,
 * which the transaction keeps, and is a statement of its own unless {@link Backend#statement} says
 * otherwise. One thread.
 *
 * <p>Rows are named by where they are: see {@link org.pgkernel.heap.TupleId}.
 */
public final class Table {
    private final Backend backend;
    private final BackendTransaction transaction;
    private final int oid;
    private final String name;
    private final HeapFetch fetch;

    /** Tells the vacuum worker of rows left behind; null without one. */
    private final LongAdder deadRows;

    /** What is held, and what is known, is of this epoch of the backend's transaction. */
    private long epoch = -1;

    private int heldModes;
    private TableEntry entry;
    private TupleDescriptor descriptor;

    Table(Backend backend, int oid, String name) {
        this.backend = backend;
        this.oid = oid;
        this.name = name;
        transaction = backend.transaction();
        fetch = new HeapFetch(backend.heap());
        VacuumWorker worker = backend.kernel().vacuumWorker;
        deadRows = worker == null ? null : worker.deadRows(oid);
    }

    public String name() {
        return name;
    }

    /** Its number in the catalogue; not that of its files. */
    public int oid() {
        return oid;
    }

    /** Its columns. */
    public TupleDescriptor descriptor() {
        return descriptor;
    }

    /** A row to fill. */
    public RowValues newRow() {
        return new RowValues(descriptor);
    }

    private void countDead(TupleOutcome outcome) {
        if (outcome == TupleOutcome.OK && deadRows != null) {
            deadRows.increment();
        }
    }

    void descriptor(TupleDescriptor columns) {
        descriptor = columns;
    }

    /**
     * Takes the lock if the transaction does not hold it, and looks the table up under it.
     *
     * @throws RefusedException when there is no such table any more
     */
    TableEntry lock(LockMode mode) {
        if (epoch != transaction.epoch()) {
            epoch = transaction.epoch();
            heldModes = 0;
            entry = null;
        }
        int bit = 1 << mode.ordinal();
        if ((heldModes & bit) == 0) {
            backend.locks().lockRelation(backend.database(), oid, mode);
            heldModes |= bit;
        }
        if (entry == null) {
            entry = backend.catalog().read(backend, oid);
            if (entry == null) {
                throw new RefusedException("the table does not exist any more: table=" + name);
            }
        }
        return entry;
    }

    /** Locked for reading; called within a statement, before its snapshot is taken. */
    HeapRelation forReading() {
        return lock(LockMode.ACCESS_SHARE).heap();
    }

    HeapRelation forWriting() {
        return lock(LockMode.ROW_EXCLUSIVE).heap();
    }

    /**
     * Inserts a row.
     *
     * @return where it is
     */
    public long insert(RowValues row) {
        transaction.enter();
        try {
            HeapRelation heap = forWriting();
            transaction.fixTransactionSnapshot();
            long tid = backend.inserter().insert(heap, row);
            transaction.leave();
            return tid;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Reads the row at the place if the statement's snapshot sees it; the row has its own copy.
     *
     * @return false also when there is none
     */
    public boolean fetch(long tid, RowValues into) {
        transaction.enter();
        try {
            HeapRelation heap = forReading();
            boolean found = fetch.fetch(heap, tid, transaction.snapshot());
            read(found, into);
            transaction.leave();
            return found;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        } finally {
            fetch.close();
        }
    }

    /**
     * The same for the version that the snapshot sees of a row that was at the place first and was
     * only updated within its page since (HOT), as an index would find it.
     *
     * @return the place of that version, {@link org.pgkernel.heap.TupleId#INVALID} for none
     */
    public long fetchLatest(long rootTid, RowValues into) {
        transaction.enter();
        try {
            HeapRelation heap = forReading();
            boolean found = fetch.fetchHot(heap, rootTid, transaction.snapshot());
            read(found, into);
            long tid = found ? fetch.tuple().tid() : org.pgkernel.heap.TupleId.INVALID;
            transaction.leave();
            return tid;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        } finally {
            fetch.close();
        }
    }

    private void read(boolean found, RowValues into) {
        into.clear();
        if (found) {
            fetch.tuple().read(into);
            into.keep();
        }
    }

    /**
     * Inserts rows, as many to a page as fit with one record.
     *
     * @param tids gets where they are; or null
     */
    public void multiInsert(RowValues[] rows, int count, long[] tids) {
        transaction.enter();
        try (BulkInsert bulk = new BulkInsert(backend.heap())) {
            HeapRelation heap = forWriting();
            transaction.fixTransactionSnapshot();
            backend.inserter().multiInsert(heap, rows, count, tids, bulk);
            transaction.leave();
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Inserts the rows of a CSV file, as PostgreSQL's COPY ... FROM file WITH (FORMAT csv) would.
     * If the cluster's WAL is minimal and this transaction has created or truncated the table they
     * are not logged; they are durable when it has committed.
     *
     * @param types how each column is read
     * @return rows
     * @throws RefusedException when the file cannot be read, or a record is not such a row; names
     *     file and line
     */
    public long copyFrom(Path file, CsvType... types) {
        transaction.enter();
        try (BulkInsert bulk = new BulkInsert(backend.heap())) {
            CopyFrom copy = new CopyFrom(file, descriptor, types);
            long rows = copy.run(backend.inserter(), forWriting(), bulk);
            transaction.leave();
            return rows;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Replaces a version of a row. Waits for who has locked or changed it.
     *
     * <p>At READ COMMITTED look at the row and change it in one {@link Backend#statement}: once the
     * statement that saw a version has ended, its place may be another row's.
     *
     * @param tid where the version is that a statement of this transaction saw
     * @param row the new version; may refer to values of the old one
     * @return OK: {@link #newTid} tells where the new version is; UPDATED or DELETED: another
     *     transaction was first, see {@link #lockLatest}; SELF_MODIFIED: this statement, or a later
     *     one of the transaction, has changed the version
     * @throws RefusedException when there is no version there that the transaction may see
     * @throws org.pgkernel.base.error.SerializationException when another transaction was first, at
     *     REPEATABLE READ
     * @throws org.pgkernel.base.error.DeadlockException when waiting would not end
     */
    public TupleOutcome update(long tid, RowValues row) {
        transaction.enter();
        try {
            TupleOutcome outcome = backend.changes().update(this, tid, row);
            countDead(outcome);
            transaction.leave();
            return outcome;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Deletes a version of a row; otherwise as {@link #update}.
     *
     * @return OK, UPDATED, DELETED or SELF_MODIFIED
     */
    public TupleOutcome delete(long tid) {
        transaction.enter();
        try {
            TupleOutcome outcome = backend.changes().delete(this, tid);
            countDead(outcome);
            transaction.leave();
            return outcome;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Locks a version of a row until the transaction ends, as {@link #update} finds it.
     *
     * @return OK, UPDATED, DELETED or SELF_MODIFIED; with SKIP_LOCKED also WOULD_BLOCK
     * @throws org.pgkernel.base.error.LockNotAvailableException with NOWAIT when somebody has it
     */
    public TupleOutcome lock(long tid, RowLock lock, LockWait wait) {
        transaction.enter();
        try {
            TupleOutcome outcome = backend.changes().lock(this, tid, lock, wait);
            transaction.leave();
            return outcome;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Locks the newest version of the row that the version at the place became, and reads it: what
     * a statement at READ COMMITTED looks at again before it changes a row that another transaction
     * has changed. Belongs into the {@link Backend#statement} that saw the version, which keeps the
     * chain from being pruned. (PostgreSQL: EvalPlanQual, TUPLE_LOCK_FLAG_FIND_LAST_VERSION.)
     *
     * @return OK: {@link #newTid} tells where it is; DELETED; SELF_MODIFIED; with SKIP_LOCKED also
     *     WOULD_BLOCK
     */
    public TupleOutcome lockLatest(long tid, RowLock lock, LockWait wait, RowValues into) {
        transaction.enter();
        try {
            TupleOutcome outcome = backend.changes().lockLatest(this, tid, lock, wait);
            if (outcome == TupleOutcome.OK) {
                boolean there = fetch.fetch(forReading(), newTid(), HeapSnapshot.ANY);
                read(there, into);
            }
            transaction.leave();
            return outcome;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        } finally {
            fetch.close();
        }
    }

    /**
     * Where the version is that the backend's last call of {@link #update} or {@link #lockLatest}
     * made or found.
     */
    public long newTid() {
        return backend.changes().newTid();
    }

    /**
     * A copy of a value of a row that was read from this table, decompressed, fetched from the
     * TOAST table if it is there: of bytes without header. In the transaction that read the row.
     */
    public byte[] value(RowValues row, int column) {
        transaction.enter();
        try {
            byte[] value = backend.heap().toast().value(forReading(), row, column);
            transaction.leave();
            return value;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /** The same of a text. */
    public String text(RowValues row, int column) {
        return new String(value(row, column), StandardCharsets.UTF_8);
    }

    /** Reads all rows that the statement's snapshot sees. Close it. */
    public TableScan scan() {
        transaction.enter();
        try {
            TableScan scan = new TableScan(backend, forReading());
            transaction.leave();
            return scan;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
