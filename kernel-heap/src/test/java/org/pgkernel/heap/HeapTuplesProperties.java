package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;

/** HEAP-6 and HEAP-7. */
class HeapTuplesProperties {
    private static final int AT = 64;

    @Property(tries = 1000)
    void whatIsFormedIsDeformedAndFormedAgainWithTheSameBytes(@ForAll long seed) {
        Random random = new Random(seed);
        TupleDescriptor descriptor = RandomRows.descriptor(random);
        RowValues row = RandomRows.row(descriptor, random);
        byte[] tuple = form(row, (byte) 0x5A);
        RowValues back = new RowValues(descriptor);
        HeapTuples.deform(new UnsafeBuffer(tuple), AT, tuple.length - AT, back);
        for (int i = 0; i < descriptor.count(); i++) {
            assertEquals(row.isNull(i), back.isNull(i), "column " + i);
            if (!row.isNull(i)) {
                assertSame(row, back, i);
            }
        }
        assertArrayEquals(tuple, form(back, (byte) 0x5A));
    }

    /** Values are the same whatever header they carry. */
    private static void assertSame(RowValues row, RowValues back, int i) {
        Attribute column = row.descriptor().attribute(i);
        if (column.byValue()) {
            assertEquals(row.number(i), back.number(i), "column " + i);
            return;
        }
        boolean wrapped =
                column.length() == Attribute.VARLENA
                        && (row.isExternal(i)
                                || Varlena.isCompressed(row.source(i), row.offset(i)));
        assertArrayEquals(
                wrapped ? stored(row, i) : row.bytes(i),
                wrapped ? stored(back, i) : back.bytes(i),
                "column " + i);
    }

    private static byte[] stored(RowValues row, int i) {
        byte[] copy = new byte[row.size(i)];
        row.source(i).getBytes(row.offset(i), copy);
        return copy;
    }

    private static byte[] form(RowValues row, byte background) {
        int size = HeapTuples.size(row);
        byte[] bytes = new byte[AT + size + 8];
        Arrays.fill(bytes, background);
        assertEquals(size, HeapTuples.form(row, new UnsafeBuffer(bytes), AT));
        for (int i = 0; i < bytes.length; i++) {
            if (i < AT || i >= AT + size) {
                assertEquals(background, bytes[i], "byte " + i + " outside the tuple was written");
            }
        }
        return Arrays.copyOf(bytes, AT + size);
    }

    @Property(tries = 2000)
    void anyBytesAreDeformedOrRefusedAndNothingOutsideIsRead(@ForAll long seed) {
        Random random = new Random(seed);
        TupleDescriptor descriptor = RandomRows.descriptor(random);
        byte[] whole = form(RandomRows.row(descriptor, random), (byte) 0);
        byte[] tuple = Arrays.copyOfRange(whole, AT, whole.length);
        for (int hits = random.nextInt(4); hits >= 0; hits--) {
            tuple[18 + random.nextInt(tuple.length - 18)] = (byte) random.nextInt();
        }
        int length = random.nextInt(tuple.length + 1);
        // A view of just these bytes: a read past them is an error of its own.
        UnsafeBuffer view = new UnsafeBuffer(Arrays.copyOf(tuple, length));
        RowValues row = new RowValues(descriptor);
        try {
            HeapTuples.deform(view, 0, length, row);
        } catch (DamagedDataException e) {
            return;
        }
        for (int i = 0; i < descriptor.count(); i++) {
            if (!row.isNull(i) && !descriptor.isByValue(i)) {
                assertTrue(row.offset(i) + row.size(i) <= length);
            }
        }
    }

    /** int4, text, bool, int8, text: written down by hand from the format. */
    @Example
    void vectorByHand() {
        TupleDescriptor descriptor =
                TupleDescriptor.of(
                        Attribute.of("a", "int4"),
                        Attribute.of("b", "text"),
                        Attribute.of("c", "bool"),
                        Attribute.of("d", "int8"),
                        Attribute.of("e", "text"));
        RowValues row = new RowValues(descriptor);
        row.setNumber(0, 258);
        row.setText(1, "ab");
        row.setNumber(3, -1);
        row.setText(4, "");
        String formed = HexFormat.of().formatHex(form(row, (byte) 0), AT, AT + 41);
        assertEquals(
                "00".repeat(18)
                        + "0500"
                        + "0300"
                        + "18"
                        + "1b"
                        + "02010000"
                        + "07"
                        + "6162"
                        + "00"
                        + "ffffffffffffffff"
                        + "03",
                formed);
        row.setNumber(2, 1);
        UnsafeBuffer tuple = new UnsafeBuffer(form(row, (byte) 0));
        assertEquals("18", HexFormat.of().toHexDigits(tuple.getByte(AT + 22)));
        HeapTuples.prepareInsert(tuple, AT, 77, 3);
        assertEquals(0x0802, HeapTupleHeader.infomask(tuple, AT));
        assertEquals(77, HeapTupleHeader.xmin(tuple, AT));
        assertEquals(3, HeapTupleHeader.commandId(tuple, AT));
    }

    @Example
    void columnsAddedLaterAreNull() {
        RowValues row = new RowValues(TupleDescriptor.of(Attribute.of("a", "int4")));
        row.setNumber(0, 5);
        byte[] tuple = form(row, (byte) 0);
        RowValues wider =
                new RowValues(
                        TupleDescriptor.of(Attribute.of("a", "int4"), Attribute.of("b", "text")));
        wider.setText(1, "left over");
        HeapTuples.deform(new UnsafeBuffer(tuple), AT, tuple.length - AT, wider);
        assertEquals(5, wider.number(0));
        assertTrue(wider.isNull(1));
    }

    @Example
    void damageIsToldWithTheColumn() {
        RowValues row = new RowValues(TupleDescriptor.of(Attribute.of("b", "text")));
        row.setText(0, "abc");
        UnsafeBuffer tuple = new UnsafeBuffer(form(row, (byte) 0));
        tuple.putByte(AT + 24, (byte) 0xFF);
        DamagedDataException e =
                assertThrows(
                        DamagedDataException.class,
                        () -> HeapTuples.deform(tuple, AT, tuple.capacity() - AT, row));
        assertTrue(
                e.getMessage().contains("column b: value of 127 bytes reaches past"),
                e.getMessage());
    }
}
