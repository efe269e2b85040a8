package org.pgkernel.cluster;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.cluster.CatalogRows.ClassRow;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.HeapInPlace;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.RelationHistory;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.ToastStore;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/**
 * Our own catalogue: two heap tables whose files have fixed numbers, below those that tables get,
 * so that it is found without a catalogue. It describes itself, too, so that vacuum finds it.
 */
final class OwnCatalog implements TableCatalog {
    static final int CLASS = 9000;
    static final int ATTRIBUTE = 9001;

    /** Goes up with each change of {@link CatalogRows}' columns. */
    static final int VERSION = 2;

    /**
     * Beside the catalogue's files: its version in digits and a line feed. Clusters made before
     * there was one have none.
     */
    static final String VERSION_FILE = "pgk_version";

    /** Whoever adds a name holds this lock to the end of its transaction; it is no relation's. */
    static final int NAMES = 8999;

    private final StorageManager smgr;
    private final UnloggedNumbers unlogged;
    private final int database;
    private final HeapRelation classes;
    private final HeapRelation attributes;
    private final TableNames known = new TableNames();

    OwnCatalog(StorageManager smgr, UnloggedNumbers unlogged, int database) {
        this.smgr = smgr;
        this.unlogged = unlogged;
        this.database = database;
        classes = fixed(CLASS, CatalogRows.CLASS);
        attributes = fixed(ATTRIBUTE, CatalogRows.ATTRIBUTE);
    }

    private HeapRelation fixed(int number, TupleDescriptor columns) {
        return new HeapRelation(
                storage(number), number, columns, true, HeapRelation.DEFAULT_FILLFACTOR, null);
    }

    SmgrRelation storage(int fileNumber) {
        return smgr.open(RelFileLocator.DEFAULT_TABLESPACE, database, fileNumber);
    }

    HeapRelation classes() {
        return classes;
    }

    HeapRelation attributes() {
        return attributes;
    }

    TableNames known() {
        return known;
    }

    /** TOAST tables have no names to be found by: they belong to their tables. */
    @Override
    public int find(Backend backend, String name) {
        int hint = known.oid(name);
        if (hint != 0) {
            ClassRow row = row(backend, hint, null);
            if (row != null && row.name().equals(name)) {
                return hint;
            }
        }
        try (CatalogScan scan = backend.catalogScan(classes)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if (CatalogRows.kindOf(row) == CatalogRows.TABLE
                        && CatalogRows.nameOf(row, 1).equals(name)) {
                    int oid = CatalogRows.oidOf(row);
                    known.name(name, oid);
                    known.row(oid, scan.tid());
                    return oid;
                }
            }
        }
        return 0;
    }

    /** True if a table has this number. */
    boolean hasOid(Backend backend, int oid) {
        return row(backend, oid, null) != null;
    }

    /**
     * The table's row as of now; null for none.
     *
     * @param place gets where it is; or null
     */
    ClassRow row(Backend backend, int oid, long[] place) {
        long hint = known.row(oid);
        try (CatalogScan scan = backend.catalogScan(classes)) {
            RowValues row = scan.row();
            boolean found = hint != 0 && scan.fetch(hint) && CatalogRows.oidOf(row) == oid;
            while (!found && scan.next()) {
                found = CatalogRows.oidOf(row) == oid;
            }
            if (!found) {
                return null;
            }
            known.row(oid, scan.tid());
            if (place != null) {
                place[0] = scan.tid();
            }
            return ClassRow.of(row);
        }
    }

    @Override
    public TableEntry read(Backend backend, int oid) {
        boolean mine = backend.tables().hasChanged(oid);
        TableEntry entry = mine ? null : known.entry(oid);
        if (entry != null) {
            return entry;
        }
        ClassRow row = row(backend, oid, null);
        if (row == null) {
            return null;
        }
        entry = new TableEntry(oid, row.name(), heap(backend, row), row.toastOid());
        if (!mine) {
            known.put(entry);
        }
        return entry;
    }

    private HeapRelation heap(Backend backend, ClassRow row) {
        if (row.oid() == CLASS || row.oid() == ATTRIBUTE) {
            return row.oid() == CLASS ? classes : attributes;
        }
        HeapRelation toast = null;
        if (row.toastOid() != 0) {
            ClassRow toastRow = row(backend, row.toastOid(), null);
            if (toastRow == null) {
                throw new DamagedDataException(
                        "the catalogue has no row of a table's TOAST table: table=" + row.name());
            }
            toast = heap(backend, toastRow);
        }
        if (!row.isLogged()) {
            unlogged.add(row.fileNumber());
        }
        return new HeapRelation(
                storage(row.fileNumber()),
                row.oid(),
                columns(backend, row),
                row.isLogged() && !backend.newFiles().contains(row.fileNumber()),
                row.fillFactor(),
                toast);
    }

    private TupleDescriptor columns(Backend backend, ClassRow of) {
        if (of.kind() == CatalogRows.TOAST) {
            return ToastStore.COLUMNS;
        }
        TupleDescriptor descriptor = known.columns(of.oid());
        if (descriptor == null) {
            descriptor = readColumns(backend, of);
            known.columns(of.oid(), descriptor);
        }
        return descriptor;
    }

    private record Column(int number, Attribute attribute) {}

    private TupleDescriptor readColumns(Backend backend, ClassRow of) {
        List<Column> found = new ArrayList<>();
        Set<String> indexed = new HashSet<>();
        Set<String> keys = new HashSet<>();
        try (CatalogScan scan = backend.catalogScan(attributes)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if (CatalogRows.oidOf(row) == of.oid()) {
                    Attribute attribute = CatalogRows.attribute(row);
                    found.add(new Column(CatalogRows.attributeNumber(row), attribute));
                    if (CatalogRows.isIndexed(row)) {
                        indexed.add(attribute.name());
                    }
                    if (CatalogRows.isKey(row)) {
                        keys.add(attribute.name());
                    }
                }
            }
        }
        found.sort(Comparator.comparingInt(Column::number));
        for (int i = 0; i < found.size(); i++) {
            if (found.get(i).number() != i + 1) {
                throw new DamagedDataException(
                        "the catalogue lacks a table's column " + (i + 1) + ": table=" + of.name());
            }
        }
        return new TupleDescriptor(found.stream().map(Column::attribute).toList(), indexed, keys);
    }

    @Override
    public VacuumTarget vacuumTarget(Backend backend, int oid) {
        long[] tid = new long[1];
        ClassRow row = row(backend, oid, tid);
        return row == null
                ? null
                : new VacuumTarget(
                        tid[0],
                        new RelationHistory(
                                row.frozenXid(), row.minMulti(), row.pages(), row.tuples()),
                        row.vacuumTruncate());
    }

    @Override
    public void vacuumed(Backend backend, VacuumTarget target, VacuumResult result) {
        RelationHistory before = target.history();
        long[] values = {
            newer(before.frozenXid(), result.frozenXid()),
            result.minMulti() == 0 ? before.minMulti() : result.minMulti(),
            result.pages(),
            Double.doubleToRawLongBits(result.liveTuples())
        };
        new HeapInPlace(backend.heap()).set(classes, target.tid(), CatalogRows.VACUUMED, values);
    }

    /** (PostgreSQL: vac_update_relstats.) */
    static int newer(int before, int now) {
        boolean goesOn = TransactionId.isNormal(now) && TransactionId.precedes(before, now);
        return goesOn ? now : before;
    }

    /** All tables, TOAST tables too, as of now. */
    List<ClassRow> all(Backend backend) {
        List<ClassRow> rows = new ArrayList<>();
        try (CatalogScan scan = backend.catalogScan(classes)) {
            while (scan.next()) {
                rows.add(ClassRow.of(scan.row()));
            }
        }
        return rows;
    }
}
