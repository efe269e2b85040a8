package org.pgkernel.cluster;

import java.util.List;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.heap.HeapBackend;
import org.pgkernel.heap.HeapInserter;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.SpaceCounters;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumListener;
import org.pgkernel.heap.VacuumOptions;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.xact.LockMode;
import org.pgkernel.xact.SessionLocks;
import org.pgkernel.xact.TransactionSession;

/**
 * A session: one transaction at a time, its tables and what it does with them. One thread at a
 * time; it may be another one later.
 *
 * <p>Every call needs an open transaction unless it says otherwise, and throws a {@link
 * org.pgkernel.base.error.KernelException} when it fails. The transaction has failed then: nothing
 * but {@link #rollback} or {@link #rollbackTo} is accepted. After a failure that stops the kernel
 * every call says so; the cluster has to be opened again. (PostgreSQL: a backend process.)
 */
public final class Backend implements AutoCloseable {
    private final Kernel kernel;
    private final int database;
    private final BackendBuffers buffers;
    private final TransactionSession session;
    private final HeapBackend heap;
    private final HeapInserter inserter;
    private final RowChanges changes;
    private final BackendTransaction transaction;
    private final Statement statement;
    private final TableCatalog catalog;
    private final ChangedTables tables = new ChangedTables();
    private final NewFiles newFiles = new NewFiles();
    private final Runnable invalidate;
    private final Ddl ddl;
    private Vacuums vacuums;
    private boolean closed;

    Backend(Kernel kernel, TableCatalog catalog, int database, String name) {
        this.kernel = kernel;
        this.catalog = catalog;
        this.database = database;
        session = kernel.transactions.openSession(database);
        buffers = kernel.pool.backend(name);
        heap = new HeapBackend(kernel.heap, buffers, session, database, kernel.fsm.newFreeSpace());
        inserter = new HeapInserter(heap);
        changes = new RowChanges(this);
        transaction = new BackendTransaction(kernel.stop, heap);
        statement = new Statement(transaction);
        ddl = catalog instanceof OwnCatalog own ? new Ddl(this, own) : null;
        invalidate = ddl == null ? () -> {} : ddl::beforeCommit;
    }

    /** Begins a transaction at READ COMMITTED. */
    public void begin() {
        begin(Isolation.READ_COMMITTED);
    }

    public void begin(Isolation isolation) {
        transaction.begin(isolation);
        tables.clear();
        newFiles.clear();
    }

    /** Commits, durable on return unless the cluster's options say otherwise. */
    public void commit() {
        commit(kernel.options.synchronousCommit());
    }

    /**
     * Commits.
     *
     * @param synchronous durable on return; otherwise a crash soon after may undo it, whole
     * @throws RefusedException when the transaction had failed: it is rolled back
     * @throws org.pgkernel.base.error.KernelStoppedException when it is not known whether it is
     *     committed: recovery will tell
     */
    public void commit(boolean synchronous) {
        transaction.commit(synchronous, invalidate);
    }

    /** Undoes the transaction; nothing when there is none. */
    public void rollback() {
        transaction.rollback();
    }

    public void savepoint(String name) {
        transaction.savepoint(name);
    }

    /** Undoes what was done since the savepoint, which stays. */
    public void rollbackTo(String name) {
        transaction.rollbackTo(name);
    }

    /** Forgets the savepoint and those after it; what was done since stays. */
    public void release(String name) {
        transaction.release(name);
    }

    public boolean inTransaction() {
        return transaction.isOpen();
    }

    /** True after a call failed, until the rollback. */
    public boolean hasFailed() {
        return transaction.isFailed();
    }

    /** Makes the calls up to its end one statement. */
    public Statement statement() {
        transaction.beginStatement();
        return statement;
    }

    /**
     * Opens a table for this backend; it may be used in later transactions, too. In a transaction
     * the table stays locked against being dropped. Without one, one is made for the call.
     *
     * @param name in a PostgreSQL cluster with its schema, {@code schema.name}
     * @throws RefusedException when there is none, or it cannot be opened
     */
    public Table table(String name) {
        if (!transaction.isOpen()) {
            begin();
            try {
                Table table = table(name);
                commit();
                return table;
            } finally {
                rollback();
            }
        }
        transaction.enter();
        try {
            Table table = find(name);
            transaction.leave();
            return table;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /** Who waited for the lock looks again: the name may be another table's now. */
    private Table find(String name) {
        while (true) {
            int oid = catalog.find(this, name);
            if (oid == 0) {
                throw new RefusedException("there is no such table: table=" + name);
            }
            Table table = new Table(this, oid, name);
            locks().lockRelation(database, oid, LockMode.ACCESS_SHARE);
            TableEntry entry = catalog.read(this, oid);
            if (entry != null && entry.name().equals(name)) {
                table.descriptor(entry.heap().descriptor());
                return table;
            }
            locks().unlockRelation(database, oid, LockMode.ACCESS_SHARE);
        }
    }

    /** Creates an empty table, with a TOAST table when a row can be too long for a page. */
    public Table createTable(String name, TupleDescriptor columns, TableOptions options) {
        transaction.enter();
        try {
            transaction.fixTransactionSnapshot();
            Table table = requireDdl().create(name, columns, options);
            transaction.leave();
            return table;
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Removes what nobody sees any more, freezes what is old, gives an empty tail back; the TOAST
     * table's too. Not in a transaction.
     *
     * @return what was done to the table itself
     */
    public VacuumResult vacuum(String name, VacuumOptions options) {
        if (transaction.isOpen()) {
            throw new RefusedException("a table is not vacuumed within a transaction");
        }
        int oid = table(name).oid();
        VacuumResult result = vacuum(oid, options, VacuumListener.NONE, false);
        if (result == null) {
            throw new RefusedException("there is no such table: table=" + name);
        }
        return result;
    }

    /** See {@link Vacuums#vacuum}. */
    VacuumResult vacuum(
            int oid, VacuumOptions options, VacuumListener listener, boolean skipLocked) {
        if (vacuums == null) {
            vacuums = new Vacuums(this, catalog);
        }
        VacuumResult result = vacuums.vacuum(oid, options, listener, skipLocked);
        if (ddl != null) {
            ddl.advanceOldest();
        }
        return result;
    }

    /**
     * Removes a table, once the transaction has committed. Waits for who uses it.
     *
     * @throws RefusedException when there is none
     */
    public void dropTable(String name) {
        transaction.enter();
        try {
            transaction.fixTransactionSnapshot();
            requireDdl().drop(find(name));
            transaction.leave();
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    /**
     * Empties a table by giving it new files; the old ones go once the transaction has committed.
     * Waits for who uses it. Transactions at REPEATABLE READ that began before see it empty, too,
     * as in PostgreSQL.
     */
    public void truncate(String name) {
        transaction.enter();
        try {
            transaction.fixTransactionSnapshot();
            requireDdl().truncate(find(name));
            transaction.leave();
        } catch (RuntimeException | Error e) {
            throw transaction.failed(e);
        }
    }

    private Ddl requireDdl() {
        if (ddl == null) {
            throw new RefusedException(
                    "in a PostgreSQL cluster tables are neither created, dropped nor truncated here,"
                            + " since its catalogue has indexes that this kernel does not maintain");
        }
        return ddl;
    }

    /** See {@link Ddl#describeCatalog}. */
    void describeCatalog() {
        begin();
        ddl.describeCatalog();
        commit(true);
    }

    /** All tables of our own catalogue as of now, TOAST tables too. No transaction is open. */
    List<CatalogRows.ClassRow> allTables() {
        begin();
        try {
            List<CatalogRows.ClassRow> all = ((OwnCatalog) catalog).all(this);
            commit(false);
            return all;
        } finally {
            rollback();
        }
    }

    CatalogScan catalogScan(HeapRelation relation) {
        return new CatalogScan(this, relation);
    }

    /** How its new rows found their pages. Its thread's. */
    public SpaceCounters spaceCounters() {
        return heap.spaceCounters();
    }

    Kernel kernel() {
        return kernel;
    }

    int database() {
        return database;
    }

    TransactionSession session() {
        return session;
    }

    SessionLocks locks() {
        return session.locks();
    }

    HeapBackend heap() {
        return heap;
    }

    HeapInserter inserter() {
        return inserter;
    }

    RowChanges changes() {
        return changes;
    }

    BackendTransaction transaction() {
        return transaction;
    }

    TableCatalog catalog() {
        return catalog;
    }

    NewFiles newFiles() {
        return newFiles;
    }

    ChangedTables tables() {
        return tables;
    }

    /** Rolls back what is open and ends the session. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        kernel.closed(this);
        try (buffers;
                session) {
            transaction.rollback();
        }
    }
}
