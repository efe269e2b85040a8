package org.pgkernel.heap;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;

/** Descriptors and rows of any shape, from a seed. */
final class RandomRows {
    private static final String[] TYPES = {
        "bool", "char", "int2", "int4", "int8", "float4", "float8", "name", "uuid", "tid",
        "numeric", "text", "bytea", "cstring"
    };

    private RandomRows() {}

    static TupleDescriptor descriptor(Random random) {
        List<Attribute> columns = new ArrayList<>();
        int count = random.nextInt(20);
        for (int i = 0; i < count; i++) {
            Attribute column = Attribute.of("c" + i, TYPES[random.nextInt(TYPES.length)]);
            if (column.length() == Attribute.VARLENA && random.nextInt(4) == 0) {
                column = column.stored("pmex".charAt(random.nextInt(4)));
            }
            columns.add(column);
        }
        return new TupleDescriptor(columns);
    }

    static RowValues row(TupleDescriptor descriptor, Random random) {
        RowValues row = new RowValues(descriptor);
        boolean nulls = random.nextBoolean();
        for (int i = 0; i < descriptor.count(); i++) {
            if (nulls && random.nextInt(3) == 0) {
                continue;
            }
            Attribute column = descriptor.attribute(i);
            if (column.byValue()) {
                row.setNumber(i, random.nextLong() >> 64 - 8 * column.length());
            } else if (column.length() > 0) {
                row.setBytes(i, bytes(random, column.length()));
            } else if (column.length() == Attribute.CSTRING) {
                row.setText(i, "x".repeat(random.nextInt(9)));
            } else {
                varlena(row, i, random);
            }
        }
        return row;
    }

    private static void varlena(RowValues row, int i, Random random) {
        UnsafeBuffer stored = new UnsafeBuffer(new byte[300]);
        boolean plain = row.descriptor().attribute(i).storage() == Attribute.PLAIN;
        switch (plain ? 5 : random.nextInt(6)) {
            case 0 -> {
                Varlena.putToastPointer(stored, 0, 9000, 4000, random.nextInt(), 77);
                row.setVarlena(i, stored, 0, Varlena.TOAST_POINTER_SIZE);
            }
            case 1 -> {
                int size = 8 + random.nextInt(50);
                Varlena.putCompressedHeader(stored, 0, size, 500, Varlena.METHOD_PGLZ);
                row.setVarlena(i, stored, 0, size);
            }
            case 2 -> {
                int size = 1 + random.nextInt(127);
                Varlena.putShortHeader(stored, 0, size);
                row.setVarlena(i, stored, 0, size);
            }
            case 3 -> row.setBytes(i, bytes(random, 120 + random.nextInt(15)));
            default -> row.setBytes(i, bytes(random, random.nextInt(200)));
        }
    }

    static byte[] bytes(Random random, int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }
}
