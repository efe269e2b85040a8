package org.pgkernel.cluster;

import java.nio.charset.StandardCharsets;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.Attribute;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;

/**
 * The two tables of our catalogue, column by column.
 *
 * <pre>
 * pgk_class      oid, relname, relfilenumber, relpersistence p|u, relkind r|t, reltoastrelid,
 *                fillfactor, vacuum_truncate, relfrozenxid, relminmxid, relpages, reltuples
 * pgk_attribute  attrelid, attnum from 1, attname, attlen, attalign, attbyval, attstorage, attcompression,
 *                attindexed: an index is about the column, attkey: the row's key holds it
 * </pre>
 */
final class CatalogRows {
    /** (PostgreSQL: NAMEDATALEN, its zero byte left out.) */
    static final int MAX_NAME_BYTES = 63;

    static final TupleDescriptor CLASS =
            TupleDescriptor.of(
                    Attribute.of("oid", "oid"),
                    Attribute.of("relname", "name"),
                    Attribute.of("relfilenumber", "oid"),
                    Attribute.of("relpersistence", "char"),
                    Attribute.of("relkind", "char"),
                    Attribute.of("reltoastrelid", "oid"),
                    Attribute.of("fillfactor", "int4"),
                    Attribute.of("vacuum_truncate", "bool"),
                    Attribute.of("relfrozenxid", "xid"),
                    Attribute.of("relminmxid", "xid"),
                    Attribute.of("relpages", "int4"),
                    Attribute.of("reltuples", "float8"));
    static final TupleDescriptor ATTRIBUTE =
            TupleDescriptor.of(
                    Attribute.of("attrelid", "oid"),
                    Attribute.of("attnum", "int2"),
                    Attribute.of("attname", "name"),
                    Attribute.of("attlen", "int2"),
                    Attribute.of("attalign", "char"),
                    Attribute.of("attbyval", "bool"),
                    Attribute.of("attstorage", "char"),
                    Attribute.of("attcompression", "char"),
                    Attribute.of("attindexed", "bool"),
                    Attribute.of("attkey", "bool"));

    static final char PERMANENT = 'p';
    static final char UNLOGGED = 'u';
    static final char TABLE = 'r';
    static final char TOAST = 't';

    /** A table that was never vacuumed. */
    static final double UNKNOWN_TUPLES = -1;

    /** Columns of pgk_class that vacuums change. */
    static final int[] VACUUMED = {8, 9, 10, 11};

    private CatalogRows() {}

    /** A value of type name: up to its first zero byte. */
    static String nameOf(RowValues row, int column) {
        byte[] bytes = row.bytes(column);
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    /** A row of pgk_class. */
    record ClassRow(
            int oid,
            String name,
            int fileNumber,
            char persistence,
            char kind,
            int toastOid,
            int fillFactor,
            boolean vacuumTruncate,
            int frozenXid,
            int minMulti,
            int pages,
            double tuples) {
        void put(RowValues to) {
            to.clear();
            to.setNumber(0, oid);
            to.setText(1, name);
            to.setNumber(2, fileNumber);
            to.setNumber(3, persistence);
            to.setNumber(4, kind);
            to.setNumber(5, toastOid);
            to.setNumber(6, fillFactor);
            to.setNumber(7, vacuumTruncate ? 1 : 0);
            to.setNumber(8, frozenXid);
            to.setNumber(9, minMulti);
            to.setNumber(10, pages);
            to.setDouble(11, tuples);
        }

        static ClassRow of(RowValues row) {
            return new ClassRow(
                    oidOf(row),
                    nameOf(row, 1),
                    (int) row.number(2),
                    (char) row.number(3),
                    kindOf(row),
                    (int) row.number(5),
                    (int) row.number(6),
                    row.number(7) != 0,
                    (int) row.number(8),
                    (int) row.number(9),
                    (int) row.number(10),
                    row.doubleValue(11));
        }

        /** Empty, in files of another number. */
        ClassRow withFiles(int number, int newFrozenXid, int newMinMulti) {
            return new ClassRow(
                    oid,
                    name,
                    number,
                    persistence,
                    kind,
                    toastOid,
                    fillFactor,
                    vacuumTruncate,
                    newFrozenXid,
                    newMinMulti,
                    0,
                    UNKNOWN_TUPLES);
        }

        boolean isLogged() {
            return persistence == PERMANENT;
        }
    }

    /** Of either table: the first column. */
    static int oidOf(RowValues row) {
        return (int) row.number(0);
    }

    /** Of pgk_class. */
    static char kindOf(RowValues row) {
        return (char) row.number(4);
    }

    static void putAttribute(int oid, TupleDescriptor columns, int i, RowValues to) {
        Attribute attribute = columns.attribute(i);
        to.clear();
        to.setNumber(0, oid);
        to.setNumber(1, i + 1);
        to.setText(2, attribute.name());
        to.setNumber(3, attribute.length());
        to.setNumber(4, attribute.alignment());
        to.setNumber(5, attribute.byValue() ? 1 : 0);
        to.setNumber(6, attribute.storage());
        to.setNumber(7, attribute.compression());
        to.setNumber(8, columns.isIndexed(i) ? 1 : 0);
        to.setNumber(9, columns.isKey(i) ? 1 : 0);
    }

    static boolean isIndexed(RowValues row) {
        return row.number(8) != 0;
    }

    static boolean isKey(RowValues row) {
        return row.number(9) != 0;
    }

    static int attributeNumber(RowValues row) {
        return (int) row.number(1);
    }

    static Attribute attribute(RowValues row) {
        return new Attribute(
                nameOf(row, 2),
                (int) row.number(3),
                (char) row.number(4),
                row.number(5) != 0,
                (char) row.number(6),
                (char) row.number(7));
    }

    static void checkName(String what, String name) {
        if (name.indexOf(0) >= 0 || !StandardCharsets.UTF_8.newEncoder().canEncode(name)) {
            throw new RefusedException(
                    "a "
                            + what
                            + "'s name has a zero byte or half a character: name="
                            + name.replaceAll("[\\x00\\p{Cs}]", "?"));
        }
        int length = name.getBytes(StandardCharsets.UTF_8).length;
        if (length == 0 || length > MAX_NAME_BYTES) {
            throw new RefusedException(
                    "a "
                            + what
                            + "'s name has from 1 to "
                            + MAX_NAME_BYTES
                            + " bytes: name="
                            + name);
        }
    }
}
