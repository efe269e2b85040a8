package org.pgkernel.cluster;

import org.pgkernel.heap.Attribute;

/** What a field of a CSV file is read as: {@link Attribute} knows bytes, not types. */
public enum CsvType {
    INT2(2, true, "smallint"),
    INT4(4, true, "integer"),
    INT8(8, true, "bigint"),
    FLOAT8(8, true, "double precision"),
    /** text, varchar and bpchar; the latter as it stands in the file, not padded. */
    TEXT(Attribute.VARLENA, false, "text");

    private final int length;
    private final boolean byValue;
    private final String sqlName;

    CsvType(int length, boolean byValue, String sqlName) {
        this.length = length;
        this.byValue = byValue;
        this.sqlName = sqlName;
    }

    boolean fits(Attribute column) {
        return column.length() == length && column.byValue() == byValue;
    }

    /** As PostgreSQL's messages have it. */
    String sqlName() {
        return sqlName;
    }
}
