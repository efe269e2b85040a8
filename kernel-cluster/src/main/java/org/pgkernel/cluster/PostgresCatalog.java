package org.pgkernel.cluster;

import static org.pgkernel.cluster.CatalogRows.nameOf;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.pgkernel.base.FilenodeMap;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.HeapInPlace;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.RelationHistory;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;
import org.pgkernel.heap.VacuumResult;
import org.pgkernel.smgr.StorageManager;

/**
 * The catalogue of one database of a PostgreSQL cluster, read through our heap. No server runs
 * meanwhile, and nobody here changes it, so what was read once stays true.
 *
 * <p>Opened are permanent tables without an index and without a TOAST table: what such a table's
 * rows need is in its pages, and nothing else has to follow a change. Constraints, triggers,
 * defaults and types are not looked at.
 */
final class PostgresCatalog implements TableCatalog {
    private static final int PG_CLASS = 1259;
    private static final int PG_ATTRIBUTE = 1249;
    private static final int PG_INDEX = 2610;
    private static final int PG_NAMESPACE = 2615;
    private static final int PG_DATABASE = 1262;
    private static final int HEAP_ACCESS_METHOD = 2;

    /** What datconnlimit is from the beginning of a DROP DATABASE on. (PostgreSQL 15.4.) */
    private static final int DATCONNLIMIT_INVALID_DB = -2;

    private static final TupleDescriptor DATABASE_COLUMNS =
            columns(
                    "oid oid",
                    "datname name",
                    "datdba oid",
                    "encoding int4",
                    "datlocprovider char",
                    "datistemplate bool",
                    "datallowconn bool",
                    "datconnlimit int4",
                    "datfrozenxid xid",
                    "datminmxid xid",
                    "dattablespace oid");
    private static final TupleDescriptor NAMESPACE_COLUMNS = columns("oid oid", "nspname name");
    private static final TupleDescriptor INDEX_COLUMNS = columns("indexrelid oid", "indrelid oid");
    private static final TupleDescriptor CLASS_COLUMNS =
            columns(
                    "oid oid",
                    "relname name",
                    "relnamespace oid",
                    "reltype oid",
                    "reloftype oid",
                    "relowner oid",
                    "relam oid",
                    "relfilenode oid",
                    "reltablespace oid",
                    "relpages int4",
                    "reltuples float4",
                    "relallvisible int4",
                    "reltoastrelid oid",
                    "relhasindex bool",
                    "relisshared bool",
                    "relpersistence char",
                    "relkind char",
                    "relnatts int2",
                    "relchecks int2",
                    "relhasrules bool",
                    "relhastriggers bool",
                    "relhassubclass bool",
                    "relrowsecurity bool",
                    "relforcerowsecurity bool",
                    "relispopulated bool",
                    "relreplident char",
                    "relispartition bool",
                    "relrewrite oid",
                    "relfrozenxid xid",
                    "relminmxid xid");
    private static final TupleDescriptor ATTRIBUTE_COLUMNS =
            columns(
                    "attrelid oid",
                    "attname name",
                    "atttypid oid",
                    "attstattarget int4",
                    "attlen int2",
                    "attnum int2",
                    "attndims int4",
                    "attcacheoff int4",
                    "atttypmod int4",
                    "attbyval bool",
                    "attalign char",
                    "attstorage char",
                    "attcompression char",
                    "attnotnull bool",
                    "atthasdef bool",
                    "atthasmissing bool");

    /** A database of the cluster. */
    record Database(int oid, int tablespace) {}

    /** What is read of a row of pg_class. */
    private record ClassRow(int oid, String name, int files, int tablespace) {}

    /** Columns of pg_class that vacuums change. (PostgreSQL: vac_update_relstats.) */
    private static final int[] VACUUMED = {9, 10, 11, 28, 29};

    private final StorageManager smgr;
    private final Database database;
    private final HeapRelation classes;
    private final HeapRelation attributes;
    private final TableNames known = new TableNames();
    private final ConcurrentHashMap<Integer, ClassRow> rows = new ConcurrentHashMap<>();

    PostgresCatalog(StorageManager smgr, Database database) {
        this.smgr = smgr;
        this.database = database;
        FilenodeMap map = FilenodeMap.read(smgr.disk(), databaseDirectory());
        classes = catalogTable(PG_CLASS, map.relNumberOf(PG_CLASS), CLASS_COLUMNS);
        attributes = catalogTable(PG_ATTRIBUTE, map.relNumberOf(PG_ATTRIBUTE), ATTRIBUTE_COLUMNS);
    }

    private String databaseDirectory() {
        return smgr.dataDirectory()
                + "/"
                + RelFileLocator.databasePath(database.tablespace(), database.oid());
    }

    private HeapRelation catalogTable(int oid, int files, TupleDescriptor columns) {
        return new HeapRelation(
                smgr.open(database.tablespace(), database.oid(), files),
                oid,
                columns,
                true,
                HeapRelation.DEFAULT_FILLFACTOR,
                null);
    }

    /** Each {@code "name type"}. */
    private static TupleDescriptor columns(String... described) {
        List<Attribute> columns = new ArrayList<>();
        for (String column : described) {
            String[] words = column.split(" ");
            columns.add(Attribute.of(words[0], words[1]));
        }
        return new TupleDescriptor(columns);
    }

    /**
     * The database with this name.
     *
     * @throws RefusedException when there is none, or a DROP DATABASE of it was interrupted: files
     *     and pages of it may be gone already (C12)
     */
    static Database database(Backend backend, StorageManager smgr, String name) {
        int files =
                FilenodeMap.read(smgr.disk(), smgr.dataDirectory() + "/global")
                        .relNumberOf(PG_DATABASE);
        HeapRelation databases =
                new HeapRelation(
                        smgr.open(RelFileLocator.GLOBAL_TABLESPACE, 0, files),
                        PG_DATABASE,
                        DATABASE_COLUMNS,
                        true,
                        HeapRelation.DEFAULT_FILLFACTOR,
                        null);
        try (CatalogScan scan = backend.catalogScan(databases)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if (nameOf(row, 1).equals(name)) {
                    if ((int) row.number(7) == DATCONNLIMIT_INVALID_DB) {
                        throw new RefusedException(
                                "a DROP DATABASE of this database was interrupted, so that it can only"
                                        + " be dropped again: database="
                                        + name);
                    }
                    return new Database((int) row.number(0), (int) row.number(10));
                }
            }
        }
        throw new RefusedException("there is no such database: database=" + name);
    }

    @Override
    public int find(Backend backend, String name) {
        int hint = known.oid(name);
        if (hint != 0) {
            return hint;
        }
        int dot = name.indexOf('.');
        if (dot <= 0) {
            throw new RefusedException(
                    "in a PostgreSQL cluster a table is named with its schema: table=" + name);
        }
        int namespace = namespace(backend, name.substring(0, dot));
        String bare = name.substring(dot + 1);
        try (CatalogScan scan = backend.catalogScan(classes)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if ((int) row.number(2) == namespace && nameOf(row, 1).equals(bare)) {
                    ClassRow found = checked(row, name);
                    if (hasIndex(backend, found.oid())) {
                        throw refused("has an index", name);
                    }
                    rows.put(found.oid(), found);
                    known.name(name, found.oid());
                    return found.oid();
                }
            }
        }
        return 0;
    }

    private int namespace(Backend backend, String name) {
        int oid = lookup(backend, plainTable(backend, PG_NAMESPACE, NAMESPACE_COLUMNS), name);
        if (oid == 0) {
            throw new RefusedException("there is no such schema: schema=" + name);
        }
        return oid;
    }

    private static int lookup(Backend backend, HeapRelation table, String name) {
        try (CatalogScan scan = backend.catalogScan(table)) {
            while (scan.next()) {
                if (nameOf(scan.row(), 1).equals(name)) {
                    return (int) scan.row().number(0);
                }
            }
        }
        return 0;
    }

    /** Index entries may lie about what is gone, so pg_index tells, not relhasindex. */
    private boolean hasIndex(Backend backend, int oid) {
        HeapRelation indexes = plainTable(backend, PG_INDEX, INDEX_COLUMNS);
        try (CatalogScan scan = backend.catalogScan(indexes)) {
            while (scan.next()) {
                if ((int) scan.row().number(1) == oid) {
                    return true;
                }
            }
        }
        return false;
    }

    /** A table of the catalogue whose files pg_class tells. */
    private HeapRelation plainTable(Backend backend, int oid, TupleDescriptor columns) {
        try (CatalogScan scan = backend.catalogScan(classes)) {
            while (scan.next()) {
                if ((int) scan.row().number(0) == oid) {
                    return catalogTable(oid, (int) scan.row().number(7), columns);
                }
            }
        }
        throw new DamagedDataException(
                "pg_class has no row of a system catalogue: oid=" + oid + " rel=" + classes);
    }

    /** Refuses what cannot be opened, in one sentence. */
    private static ClassRow checked(RowValues row, String name) {
        int oid = (int) row.number(0);
        if (Integer.compareUnsigned(oid, ClusterCreation.FIRST_NORMAL_OID) < 0) {
            throw refused("is part of the system catalogue", name);
        }
        if (row.number(16) != 'r' || row.number(6) != HEAP_ACCESS_METHOD) {
            throw refused("is no plain table", name);
        }
        if (row.number(15) != 'p') {
            throw refused("is not permanent", name);
        }
        if (row.number(12) != 0) {
            throw refused("has a TOAST table", name);
        }
        return new ClassRow(oid, name, (int) row.number(7), (int) row.number(8));
    }

    private static RefusedException refused(String why, String name) {
        return new RefusedException(
                "the relation "
                        + why
                        + ", and of a PostgreSQL cluster only permanent tables without index and TOAST"
                        + " table are opened: table="
                        + name);
    }

    @Override
    public TableEntry read(Backend backend, int oid) {
        TableEntry entry = known.entry(oid);
        ClassRow row = rows.get(oid);
        if (entry == null && row != null) {
            HeapRelation heap =
                    new HeapRelation(
                            smgr.open(
                                    row.tablespace() == 0
                                            ? database.tablespace()
                                            : row.tablespace(),
                                    database.oid(),
                                    row.files()),
                            oid,
                            readColumns(backend, oid),
                            true,
                            HeapRelation.DEFAULT_FILLFACTOR,
                            null);
            entry = new TableEntry(oid, row.name(), heap, 0);
            known.put(entry);
        }
        return entry;
    }

    @Override
    public VacuumTarget vacuumTarget(Backend backend, int oid) {
        try (CatalogScan scan = backend.catalogScan(classes)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if ((int) row.number(0) == oid) {
                    return new VacuumTarget(
                            scan.tid(),
                            new RelationHistory(
                                    (int) row.number(28),
                                    (int) row.number(29),
                                    (int) row.number(9),
                                    row.floatValue(10)),
                            true);
                }
            }
        }
        return null;
    }

    /** In place, so that the indexes of pg_class stay as they are. */
    @Override
    public void vacuumed(Backend backend, VacuumTarget target, VacuumResult result) {
        RelationHistory before = target.history();
        long[] values = {
            result.pages(),
            Float.floatToRawIntBits((float) result.liveTuples()),
            result.allVisiblePages(),
            OwnCatalog.newer(before.frozenXid(), result.frozenXid()),
            result.minMulti() == 0 ? before.minMulti() : result.minMulti()
        };
        new HeapInPlace(backend.heap()).set(classes, target.tid(), VACUUMED, values);
    }

    private record Column(int number, Attribute attribute) {}

    private TupleDescriptor readColumns(Backend backend, int oid) {
        List<Column> found = new ArrayList<>();
        try (CatalogScan scan = backend.catalogScan(attributes)) {
            RowValues row = scan.row();
            while (scan.next()) {
                if ((int) row.number(0) == oid && row.number(5) > 0) {
                    if (row.number(15) != 0) {
                        throw new RefusedException(
                                "a column was added with a default that older rows do not hold: column="
                                        + nameOf(row, 1)
                                        + " oid="
                                        + Integer.toUnsignedString(oid));
                    }
                    found.add(new Column((int) row.number(5), attribute(row)));
                }
            }
        }
        found.sort(Comparator.comparingInt(Column::number));
        return new TupleDescriptor(found.stream().map(Column::attribute).toList());
    }

    private static Attribute attribute(RowValues row) {
        return new Attribute(
                nameOf(row, 1),
                (int) row.number(4),
                (char) row.number(10),
                row.number(9) != 0,
                (char) row.number(11),
                row.number(12) == Attribute.LZ4 ? Attribute.LZ4 : Attribute.PGLZ);
    }
}
