package org.pgkernel.cluster;

import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.cluster.CatalogRows.ClassRow;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.HeapDeleter;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.HeapUpdater;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.TupleOutcome;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.xact.LockMode;

/**
 * Creates, drops and truncates tables within a backend's transaction: rows of the catalogue, which
 * are as transactional as any, and files, which are removed when the transaction that made them
 * rolls back, or that has given them up commits. (PostgreSQL: heap_create_with_catalog,
 * ExecuteTruncate, RemoveRelations, storage.c.)
 */
final class Ddl {
    private static final int SMGR_CREATE = 0x10;
    private static final int FORK_OFFSET = 12;

    private final Backend backend;
    private final OwnCatalog catalog;
    private final HeapUpdater updater;
    private final HeapDeleter deleter;
    private final WalRecordBuilder record = new WalRecordBuilder();
    private final UnsafeBuffer body = new UnsafeBuffer(new byte[16]);
    private final RowValues classRow = new RowValues(CatalogRows.CLASS);
    private final RowValues attributeRow = new RowValues(CatalogRows.ATTRIBUTE);

    Ddl(Backend backend, OwnCatalog catalog) {
        this.backend = backend;
        this.catalog = catalog;
        updater = new HeapUpdater(backend.heap());
        deleter = new HeapDeleter(backend.heap());
    }

    /**
     * What was not logged becomes durable, and others have to look again at what changed: their
     * changes will be logged.
     */
    void beforeCommit() {
        backend.newFiles().sync(backend.kernel().pool, backend.kernel().unlogged, catalog::storage);
        backend.tables().invalidate(catalog.known());
    }

    /** The catalogue's tables are tables, too; they are entered when it is used first. */
    void describeCatalog() {
        if (catalog.hasOid(backend, OwnCatalog.CLASS)) {
            return;
        }
        for (HeapRelation relation : List.of(catalog.classes(), catalog.attributes())) {
            boolean isClass = relation == catalog.classes();
            insert(
                    new ClassRow(
                            relation.oid(),
                            isClass ? "pgk_class" : "pgk_attribute",
                            relation.storage().relNumber(),
                            CatalogRows.PERMANENT,
                            CatalogRows.TABLE,
                            0,
                            HeapRelation.DEFAULT_FILLFACTOR,
                            true,
                            backend.kernel().oldestUsableXid(),
                            backend.kernel().transactions.multiXacts().nextMulti(),
                            0,
                            CatalogRows.UNKNOWN_TUPLES));
        }
    }

    /**
     * The oldest xid and multixact of any table go on when the oldest tables were vacuumed, and
     * with them what the transaction logs keep. Tables that are being created hold none older than
     * the horizon of before the look. No transaction is open. (PostgreSQL:
     * vac_update_datfrozenxid.)
     */
    void advanceOldest() {
        int xid = backend.kernel().oldestUsableXid();
        int multi = backend.kernel().transactions.multiXacts().oldestMulti();
        backend.begin();
        try {
            for (ClassRow row : catalog.all(backend)) {
                xid = TransactionId.precedes(row.frozenXid(), xid) ? row.frozenXid() : xid;
                multi = row.minMulti() - multi < 0 ? row.minMulti() : multi;
            }
            backend.commit(true);
        } finally {
            backend.rollback();
        }
        int database = backend.database();
        backend.kernel()
                .transactions
                .advanceOldest(backend.session(), xid, database, multi, database);
    }

    Table create(String name, TupleDescriptor columns, TableOptions options) {
        CatalogRows.checkName("table", name);
        for (int i = 0; i < columns.count(); i++) {
            CatalogRows.checkName("column", columns.attribute(i).name());
        }
        // Two who create the same name: the second finds the first one's table.
        backend.locks()
                .lockRelation(
                        backend.database(), OwnCatalog.NAMES, LockMode.SHARE_UPDATE_EXCLUSIVE);
        if (catalog.find(backend, name) != 0) {
            throw new RefusedException("there is a table of this name already: table=" + name);
        }
        int oid = newOid();
        int toastOid = 0;
        if (needsToast(columns)) {
            toastOid = newOid();
            ClassRow toast =
                    newRow(
                            toastOid,
                            "pg_toast_" + Integer.toUnsignedString(oid),
                            CatalogRows.TOAST,
                            0,
                            options.withFillFactor(HeapRelation.DEFAULT_FILLFACTOR));
            insert(toast);
        }
        ClassRow row = newRow(oid, name, CatalogRows.TABLE, toastOid, options);
        insert(row);
        for (int i = 0; i < columns.count(); i++) {
            CatalogRows.putAttribute(oid, columns, i, attributeRow);
            write(catalog.attributes(), attributeRow);
        }
        done();
        Table table = new Table(backend, oid, name);
        table.descriptor(columns);
        table.lock(LockMode.ACCESS_EXCLUSIVE);
        return table;
    }

    /** The lock comes first: what is read under it stays so. */
    void drop(Table table) {
        TableEntry entry = lockForChange(table);
        remove(entry.oid());
        if (entry.toastOid() != 0) {
            remove(entry.toastOid());
        }
        try (CatalogScan scan = backend.catalogScan(catalog.attributes())) {
            while (scan.next()) {
                if (CatalogRows.oidOf(scan.row()) == entry.oid()) {
                    changed(
                            catalog.attributes(),
                            deleter.delete(catalog.attributes(), scan.tid(), true));
                }
            }
        }
        done();
    }

    private TableEntry lockForChange(Table table) {
        int oid = table.oid();
        if (oid < ClusterCreation.FIRST_NORMAL_OID && oid > 0) {
            throw new RefusedException(
                    "the catalogue itself is not changed so: table=" + table.name());
        }
        TableEntry entry = table.lock(LockMode.ACCESS_EXCLUSIVE);
        backend.session().lockedExclusively();
        lockForWriting(catalog.classes());
        lockForWriting(catalog.attributes());
        backend.tables().add(oid);
        if (entry.toastOid() != 0) {
            backend.tables().add(entry.toastOid());
        }
        return entry;
    }

    private void remove(int oid) {
        long[] tid = new long[1];
        ClassRow row = catalog.row(backend, oid, tid);
        changed(catalog.classes(), deleter.delete(catalog.classes(), tid[0], true));
        dropFiles(row.fileNumber());
    }

    private void dropFiles(int number) {
        SmgrRelation storage = catalog.storage(number);
        backend.session().dropAtCommit(storage.spcOid(), storage.dbOid(), number);
    }

    void truncate(Table table) {
        TableEntry entry = lockForChange(table);
        replaceFiles(entry.oid());
        if (entry.toastOid() != 0) {
            replaceFiles(entry.toastOid());
        }
        done();
    }

    /** (PostgreSQL: RelationSetNewRelfilenode.) */
    private void replaceFiles(int oid) {
        long[] tid = new long[1];
        ClassRow row = catalog.row(backend, oid, tid);
        int number = createFiles(!row.isLogged());
        row.withFiles(
                        number,
                        backend.kernel().oldestUsableXid(),
                        backend.kernel().transactions.multiXacts().nextMulti())
                .put(classRow);
        changed(catalog.classes(), updater.update(catalog.classes(), tid[0], classRow, true));
        dropFiles(row.fileNumber());
    }

    /** The lock on the table keeps everybody else from its rows in the catalogue. */
    private static void changed(HeapRelation relation, TupleOutcome outcome) {
        if (outcome != TupleOutcome.OK) {
            throw new IllegalStateException(
                    "a row of the catalogue changed under a lock: " + outcome + " rel=" + relation);
        }
    }

    /** Later calls of this transaction look again. */
    private void done() {
        backend.session().nextCommand();
        backend.transaction().tablesChanged();
    }

    private int newOid() {
        int oid;
        do {
            oid = backend.kernel().oids.next();
        } while (catalog.hasOid(backend, oid));
        return oid;
    }

    private ClassRow newRow(int oid, String name, char kind, int toastOid, TableOptions options) {
        backend.tables().add(oid);
        int number = createFiles(options.unlogged());
        return new ClassRow(
                oid,
                name,
                number,
                options.unlogged() ? CatalogRows.UNLOGGED : CatalogRows.PERMANENT,
                kind,
                toastOid,
                options.fillFactor(),
                options.vacuumTruncate(),
                backend.kernel().oldestUsableXid(),
                backend.kernel().transactions.multiXacts().nextMulti(),
                0,
                CatalogRows.UNKNOWN_TUPLES);
    }

    private void insert(ClassRow row) {
        row.put(classRow);
        write(catalog.classes(), classRow);
    }

    private void write(HeapRelation relation, RowValues row) {
        lockForWriting(relation);
        backend.inserter().insert(relation, row);
    }

    private void lockForWriting(HeapRelation relation) {
        backend.locks().lockRelation(backend.database(), relation.oid(), LockMode.ROW_EXCLUSIVE);
    }

    /** (PostgreSQL: needs_toast_table; the columns' types know no shorter maximum here.) */
    private static boolean needsToast(TupleDescriptor columns) {
        for (int i = 0; i < columns.count(); i++) {
            Attribute attribute = columns.attribute(i);
            if (attribute.length() == Attribute.VARLENA && attribute.storage() != Attribute.PLAIN) {
                return true;
            }
        }
        return false;
    }

    /**
     * New, empty files, which go if the transaction rolls back. The main fork of an unlogged table
     * is not logged: what is, is its init fork, from which recovery makes the main fork anew; that
     * fork must be on disk before the commit. (PostgreSQL: RelationCreateStorage,
     * heapam_relation_set_new_filenode.)
     *
     * @return their number
     */
    private int createFiles(boolean isUnlogged) {
        // First: whoever gets none must not leave a file that no rollback knows of.
        backend.session().xid();
        int number =
                backend.kernel()
                        .numbers
                        .next(RelFileLocator.DEFAULT_TABLESPACE, backend.database());
        SmgrRelation storage = catalog.storage(number);
        storage.create(ForkNumber.MAIN, false);
        if (!isUnlogged) {
            logCreation(storage, ForkNumber.MAIN);
        }
        backend.session().dropAtAbort(storage.spcOid(), storage.dbOid(), number);
        if (!isUnlogged && backend.kernel().syncsNewFiles) {
            backend.kernel().unlogged.add(number);
            backend.newFiles().add(number);
        }
        if (isUnlogged) {
            backend.kernel().unlogged.add(number);
            storage.create(ForkNumber.INIT, false);
            logCreation(storage, ForkNumber.INIT);
            storage.immediateSync(ForkNumber.INIT);
        }
        return number;
    }

    /** (PostgreSQL: log_smgrcreate.) */
    private void logCreation(SmgrRelation storage, ForkNumber fork) {
        body.putInt(0, storage.spcOid());
        body.putInt(4, storage.dbOid());
        body.putInt(8, storage.relNumber());
        body.putInt(FORK_OFFSET, fork.ordinal());
        backend.kernel()
                .primary
                .wal()
                .insert(
                        record.begin(RmgrIds.STORAGE, SMGR_CREATE, TransactionId.INVALID)
                                .data(body, 0, FORK_OFFSET + 4));
    }
}
