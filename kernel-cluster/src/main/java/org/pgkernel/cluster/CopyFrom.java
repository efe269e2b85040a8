package org.pgkernel.cluster;

import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.BulkInsert;
import org.pgkernel.heap.HeapInserter;
import org.pgkernel.heap.HeapRelation;
import org.pgkernel.heap.RowValues;
import org.pgkernel.heap.TupleDescriptor;

/** Reads the rows of a CSV file into a table. One use. (PostgreSQL: CopyFrom, copyfrom.c.) */
final class CopyFrom {
    private static final long MOST_BEFORE_DIGIT = Long.MAX_VALUE / 10;

    private final Path file;
    private final CsvType[] types;
    private final TupleDescriptor columns;
    private final UnsafeBuffer view = new UnsafeBuffer(new byte[0]);
    private byte[] viewed;

    /**
     * @throws RefusedException when the types are not the columns'
     */
    CopyFrom(Path file, TupleDescriptor columns, CsvType[] types) {
        if (types.length != columns.count()) {
            throw new RefusedException(
                    "the table has "
                            + columns.count()
                            + " columns, types are given for "
                            + types.length);
        }
        for (int i = 0; i < types.length; i++) {
            if (!types[i].fits(columns.attribute(i))) {
                throw new RefusedException(
                        "a column does not hold values of this type: column="
                                + columns.attribute(i).name()
                                + " type="
                                + types[i].sqlName());
            }
        }
        this.file = file;
        this.columns = columns;
        this.types = types.clone();
    }

    /**
     * @return rows
     */
    long run(HeapInserter inserter, HeapRelation heap, BulkInsert bulk) {
        long rows = 0;
        RowValues row = new RowValues(columns);
        inserter.beginMany();
        try (CsvReader reader = new CsvReader(file, types.length)) {
            for (int fields; (fields = reader.read()) != CsvReader.END; rows++) {
                if (fields < types.length) {
                    throw reader.refused(
                            "missing data for column \"" + columns.attribute(fields).name() + "\"");
                }
                row.clear();
                for (int i = 0; i < types.length; i++) {
                    if (!reader.isNull(i)) {
                        set(row, i, reader);
                    }
                }
                inserter.add(heap, row, bulk);
            }
        }
        inserter.flush(heap, bulk);
        return rows;
    }

    private void set(RowValues row, int i, CsvReader reader) {
        switch (types[i]) {
            case INT2 -> row.setNumber(i, integer(reader, i, Short.MIN_VALUE, Short.MAX_VALUE));
            case INT4 -> row.setNumber(i, integer(reader, i, Integer.MIN_VALUE, Integer.MAX_VALUE));
            case INT8 -> row.setNumber(i, integer(reader, i, Long.MIN_VALUE, Long.MAX_VALUE));
            case FLOAT8 -> row.setDouble(i, number(reader, i));
            case TEXT -> {
                reader.checkEncoding(i);
                byte[] source = reader.source(i);
                if (source != viewed) {
                    view.wrap(source);
                    viewed = source;
                }
                row.setBytes(i, view, reader.start(i), reader.length(i));
            }
        }
    }

    private double number(CsvReader reader, int i) {
        String text = reader.text(i);
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException e) {
            throw invalid(reader, i);
        }
    }

    /** Blanks around it are allowed. (PostgreSQL: pg_strtoint32, scanint8.) */
    private long integer(CsvReader reader, int i, long least, long most) {
        byte[] source = reader.source(i);
        int at = reader.start(i);
        int end = at + reader.length(i);
        while (at < end && isBlank(source[at])) {
            at++;
        }
        boolean negative = at < end && source[at] == '-';
        if (negative || at < end && source[at] == '+') {
            at++;
        }
        int first = at;
        long value = 0; // below zero, where there is one number more
        for (; at < end && source[at] >= '0' && source[at] <= '9'; at++) {
            int digit = source[at] - '0';
            if (value < -MOST_BEFORE_DIGIT || (value = value * 10) < Long.MIN_VALUE + digit) {
                throw outOfRange(reader, i);
            }
            value -= digit;
        }
        boolean hasDigits = at > first;
        while (at < end && isBlank(source[at])) {
            at++;
        }
        if (!hasDigits || at < end) {
            throw invalid(reader, i);
        }
        if (!negative && value == Long.MIN_VALUE) {
            throw outOfRange(reader, i);
        }
        long signed = negative ? value : -value;
        if (signed < least || signed > most) {
            throw outOfRange(reader, i);
        }
        return signed;
    }

    private static boolean isBlank(byte c) {
        return c == ' ' || c >= '\t' && c <= '\r';
    }

    private RefusedException invalid(CsvReader reader, int i) {
        return reader.refused(
                "invalid input syntax for type "
                        + types[i].sqlName()
                        + ": \""
                        + reader.text(i)
                        + "\" column="
                        + columns.attribute(i).name());
    }

    private RefusedException outOfRange(CsvReader reader, int i) {
        return reader.refused(
                "value \""
                        + reader.text(i)
                        + "\" is out of range for type "
                        + types[i].sqlName()
                        + " column="
                        + columns.attribute(i).name());
    }
}
