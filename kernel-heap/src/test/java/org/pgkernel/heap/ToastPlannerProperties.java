package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;

/** HEAP-8: whatever is done to make a row fit, its values come back. */
class ToastPlannerProperties {
    private final Map<Integer, ByteArrayOutputStream> table = new TreeMap<>();
    private final Map<Integer, Integer> lastLength = new TreeMap<>();
    private final List<Integer> obsolete = new ArrayList<>();
    private int nextId = 5000;

    private boolean plan(ToastPlanner planner, RowValues row, RowValues old, int toastRelation) {
        return planner.plan(
                row,
                old,
                toastRelation,
                () -> nextId++,
                (id, sequence, data, offset, length) -> {
                    var out = table.computeIfAbsent(id, k -> new ByteArrayOutputStream());
                    assertEquals(out.size(), sequence * ToastPlanner.CHUNK_SIZE);
                    assertEquals(
                            ToastPlanner.CHUNK_SIZE,
                            sequence == 0 ? ToastPlanner.CHUNK_SIZE : lastLength.get(id));
                    byte[] copy = new byte[length];
                    data.getBytes(offset, copy);
                    out.writeBytes(copy);
                    lastLength.put(id, length);
                },
                (id, size) -> obsolete.add(id));
    }

    private byte[] value(RowValues row, int i) {
        Detoaster detoaster = new Detoaster();
        if (!row.isExternal(i)) {
            return detoaster.value(row.source(i), row.offset(i));
        }
        int id = Varlena.valueId(row.source(i), row.offset(i));
        return detoaster.value(row.source(i), row.offset(i), table.get(id).toByteArray());
    }

    @Property(tries = 300)
    void valuesComeBackAndTheTupleFits(@ForAll long seed) {
        Random random = new Random(seed);
        List<Attribute> columns = new ArrayList<>();
        int count = 1 + random.nextInt(6);
        for (int i = 0; i < count; i++) {
            columns.add(
                    Attribute.of("c" + i, "text")
                            .stored("mex".charAt(random.nextInt(3)))
                            .compressed("pl".charAt(random.nextInt(2))));
        }
        TupleDescriptor descriptor = new TupleDescriptor(columns);
        RowValues row = new RowValues(descriptor);
        byte[][] values = new byte[count][];
        boolean onlyMain = columns.stream().allMatch(c -> c.storage() == Attribute.MAIN);
        for (int i = 0; i < count; i++) {
            if (random.nextInt(5) > 0) {
                values[i] = text(random, random.nextInt(random.nextInt(4) == 0 ? 30_000 : 2500));
                row.setBytes(i, values[i]);
            }
        }
        int before = HeapTuples.size(row);
        boolean changed = plan(new ToastPlanner(descriptor), row, null, 4321);
        int after = HeapTuples.size(row);
        assertTrue(after <= 8160, "size " + after);
        if (columns.stream().noneMatch(c -> c.storage() == Attribute.MAIN)) {
            assertTrue(after <= 2032, "size " + after);
        }
        assertEquals(changed, after != before, "before " + before + " after " + after);
        if (before <= 2032) {
            assertFalse(changed);
        }
        if (onlyMain && after > 2032) {
            assertTrue(table.isEmpty() || after <= 8160);
        }
        for (int i = 0; i < count; i++) {
            assertEquals(values[i] == null, row.isNull(i));
            if (values[i] != null) {
                assertArrayEquals(values[i], value(row, i), "column " + i);
            }
        }
    }

    private static byte[] text(Random random, int length) {
        byte[] text = RandomRows.bytes(random, length);
        int letters = 1 + random.nextInt(256);
        for (int i = 0; i < length; i++) {
            text[i] = (byte) (Math.floorMod(text[i], letters) + 32);
        }
        return text;
    }

    @Example
    void withoutAToastTableValuesAreOnlyCompressed() {
        TupleDescriptor descriptor = TupleDescriptor.of(Attribute.of("a", "text"));
        RowValues row = new RowValues(descriptor);
        row.setText(0, "ab".repeat(4000));
        assertTrue(ToastPlanner.needed(row));
        assertTrue(plan(new ToastPlanner(descriptor), row, null, 0));
        assertTrue(Varlena.isCompressed(row.source(0), row.offset(0)));
        assertTrue(table.isEmpty());
        row.clear();
        row.setBytes(0, RandomRows.bytes(new Random(1), 4000));
        assertFalse(plan(new ToastPlanner(descriptor), row, null, 0));
        assertArrayEquals(RandomRows.bytes(new Random(1), 4000), value(row, 0));
    }

    @Example
    void anUnchangedValueIsKeptAndAReplacedOneIsToldObsolete() {
        TupleDescriptor descriptor =
                TupleDescriptor.of(Attribute.of("a", "bytea"), Attribute.of("b", "bytea"));
        ToastPlanner planner = new ToastPlanner(descriptor);
        RowValues old = new RowValues(descriptor);
        old.setBytes(0, RandomRows.bytes(new Random(1), 6000));
        old.setBytes(1, RandomRows.bytes(new Random(2), 5000));
        plan(planner, old, null, 99);
        assertEquals(2, table.size());
        RowValues row = new RowValues(descriptor);
        row.setVarlena(0, old.source(0), old.offset(0), old.size(0));
        row.setBytes(1, RandomRows.bytes(new Random(3), 7000));
        assertTrue(plan(planner, row, old, 99));
        assertEquals(List.of(Varlena.valueId(old.source(1), old.offset(1))), obsolete);
        assertArrayEquals(RandomRows.bytes(new Random(1), 6000), value(row, 0));
        assertArrayEquals(RandomRows.bytes(new Random(3), 7000), value(row, 1));
        assertThrows(
                IllegalArgumentException.class,
                () -> plan(planner, row, null, 99),
                "someone else's value");
    }

    @Example
    void damagedCompressedDataIsRefused() {
        TupleDescriptor descriptor = TupleDescriptor.of(Attribute.of("a", "text"));
        for (char method : new char[] {Attribute.PGLZ, Attribute.LZ4}) {
            UnsafeBuffer plain = new UnsafeBuffer(new byte[3004]);
            Varlena.putPlainHeader(plain, 0, 3004);
            Detoaster detoaster = new Detoaster();
            int size = detoaster.compress(plain, 0, method);
            UnsafeBuffer stored = new UnsafeBuffer(new byte[size]);
            stored.putBytes(0, detoaster.result(), 0, size);
            assertArrayEquals(new byte[3000], detoaster.value(stored, 0));
            stored.putInt(4, stored.getInt(4) + 1);
            assertThrows(DamagedDataException.class, () -> detoaster.value(stored, 0));
            stored.putInt(4, stored.getInt(4) | 0x3FFFFFFF);
            assertThrows(DamagedDataException.class, () -> detoaster.value(stored, 0));
        }
        assertEquals(1, descriptor.count());
    }
}
