package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Tuples from rows, and rows from tuples.
 *
 * <pre>
 *   header 23 | null bitmap, one bit a column, 1 = not null, only if there is a null | padding to 8 | values
 * </pre>
 *
 * Values follow each other in column order, nulls take no space, each at its column's alignment
 * counted from {@code t_hoff}; a short or external varlena is not aligned. A varlena of up to 126
 * bytes of data gets the short header unless its column is stored plain. Padding is zero, which is
 * how deforming tells it from a short header.
 *
 * <p>HEAP-6: {@link #deform} of what {@link #form} made gives the row back, and every tuple that
 * PostgreSQL stored is formed again from its row with the same bytes. HEAP-7: no bytes make
 * deforming leave the tuple; a contradiction is {@link DamagedDataException} without the place.
 *
 * <p>Stateless; allocates nothing. (PostgreSQL: heap_compute_data_size, heap_fill_tuple,
 * heap_deform_tuple, heaptuple.c.)
 */
public final class HeapTuples {
    static final int HEAP_HASNULL = 0x0001;
    static final int HEAP_HASVARWIDTH = 0x0002;
    static final int HEAP_HASEXTERNAL = 0x0004;

    /** Bits about transactions, to be set anew when a tuple is inserted. */
    private static final int HEAP_XACT_MASK = 0xFFF0;

    private static final int HEAP2_XACT_MASK = 0xE000;

    private HeapTuples() {}

    /** Bytes from the tuple's beginning to its first value. */
    public static int headerSize(int columns, boolean hasNulls) {
        return Page.maxAlign(HeapTupleHeader.SIZE + (hasNulls ? (columns + 7) / 8 : 0));
    }

    /** Bytes of the tuple that {@link #form} makes. */
    public static int size(RowValues row) {
        return headerSize(row.descriptor().count(), row.hasNulls()) + dataSize(row);
    }

    /** Bytes of the values, padding between them included. */
    static int dataSize(RowValues row) {
        TupleDescriptor descriptor = row.descriptor();
        int offset = 0;
        for (int i = 0; i < descriptor.count(); i++) {
            if (row.isNull(i)) {
                continue;
            }
            if (descriptor.isByValue(i)) {
                offset = descriptor.align(i, offset) + descriptor.length(i);
            } else if (descriptor.length(i) == Attribute.VARLENA) {
                offset = startOfVarlena(row, i, offset) + storedSize(row, i);
            } else {
                offset = descriptor.align(i, offset) + row.size(i);
            }
        }
        return offset;
    }

    private static int startOfVarlena(RowValues row, int i, int offset) {
        boolean unaligned =
                Varlena.isUnaligned(row.source(i), row.offset(i)) || becomesShort(row, i);
        return unaligned ? offset : row.descriptor().align(i, offset);
    }

    private static int storedSize(RowValues row, int i) {
        return becomesShort(row, i) ? row.size(i) - Varlena.HEADER_SIZE + 1 : row.size(i);
    }

    private static boolean becomesShort(RowValues row, int i) {
        return row.descriptor().isPackable(i)
                && Varlena.isPlain(row.source(i), row.offset(i))
                && row.size(i) - Varlena.HEADER_SIZE + 1 <= Varlena.SHORT_MAX;
    }

    /** True if both rows' values of a column would be stored alike. (heap_attr_equals) */
    static boolean isSameStored(RowValues a, RowValues b, int i) {
        if (a.isNull(i) || b.isNull(i)) {
            return a.isNull(i) && b.isNull(i);
        }
        TupleDescriptor descriptor = a.descriptor();
        if (descriptor.isByValue(i)) {
            return a.number(i) == b.number(i);
        }
        int from = 0;
        int other = 0;
        if (descriptor.length(i) == Attribute.VARLENA) {
            if (a.isExternal(i) != b.isExternal(i)
                    || Varlena.isCompressed(a.source(i), a.offset(i))
                            != Varlena.isCompressed(b.source(i), b.offset(i))) {
                return false;
            }
            // A short header and a long one of the same bytes become the same.
            boolean external = a.isExternal(i);
            from = external ? 0 : Varlena.headerSize(a.source(i), a.offset(i));
            other = external ? 0 : Varlena.headerSize(b.source(i), b.offset(i));
        }
        int length = a.size(i) - from;
        if (length != b.size(i) - other) {
            return false;
        }
        for (int k = 0; k < length; k++) {
            if (a.source(i).getByte(a.offset(i) + from + k)
                    != b.source(i).getByte(b.offset(i) + other + k)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Writes the tuple at {@code at}, which is {@link #size} bytes. xmin, xmax, command and t_ctid
     * are zero: {@link #prepareInsert} and whoever knows its place set them. The tuple may be
     * longer than a page takes: that is judged when it is stored.
     *
     * @return the tuple's bytes
     */
    public static int form(RowValues row, MutableDirectBuffer to, int at) {
        TupleDescriptor descriptor = row.descriptor();
        int count = descriptor.count();
        boolean hasNulls = row.hasNulls();
        int hoff = headerSize(count, hasNulls);
        to.setMemory(at, hoff, (byte) 0);
        int infomask = hasNulls ? HEAP_HASNULL : 0;
        int data = at + hoff;
        int offset = 0;
        for (int i = 0; i < count; i++) {
            if (row.isNull(i)) {
                continue;
            }
            if (hasNulls) {
                int bits = at + HeapTupleHeader.SIZE + (i >> 3);
                to.putByte(bits, (byte) (to.getByte(bits) | 1 << (i & 7)));
            }
            if (descriptor.isByValue(i)) {
                offset = pad(to, data, offset, descriptor.align(i, offset));
                putNumber(to, data + offset, descriptor.length(i), row.number(i));
                offset += descriptor.length(i);
            } else if (descriptor.length(i) == Attribute.VARLENA) {
                infomask |= HEAP_HASVARWIDTH | (row.isExternal(i) ? HEAP_HASEXTERNAL : 0);
                offset = pad(to, data, offset, startOfVarlena(row, i, offset));
                offset = putVarlena(row, i, to, data, offset);
            } else {
                infomask |= descriptor.length(i) < 0 ? HEAP_HASVARWIDTH : 0;
                offset = pad(to, data, offset, descriptor.align(i, offset));
                to.putBytes(data + offset, row.source(i), row.offset(i), row.size(i));
                offset += row.size(i);
            }
        }
        HeapTupleHeader.setInfomask(to, at, infomask);
        HeapTupleHeader.setInfomask2(to, at, count);
        HeapTupleHeader.setHoff(to, at, hoff);
        return hoff + offset;
    }

    private static int pad(MutableDirectBuffer to, int data, int from, int end) {
        for (int i = from; i < end; i++) {
            to.putByte(data + i, (byte) 0);
        }
        return end;
    }

    private static void putNumber(MutableDirectBuffer to, int at, int length, long value) {
        switch (length) {
            case 1 -> to.putByte(at, (byte) value);
            case 2 -> to.putShort(at, (short) value);
            case 4 -> to.putInt(at, (int) value);
            default -> to.putLong(at, value);
        }
    }

    private static int putVarlena(
            RowValues row, int i, MutableDirectBuffer to, int data, int offset) {
        int size = row.size(i);
        int at = data + offset;
        if (becomesShort(row, i)) {
            int length = size - Varlena.HEADER_SIZE;
            Varlena.putShortHeader(to, at, length + 1);
            to.putBytes(at + 1, row.source(i), row.offset(i) + Varlena.HEADER_SIZE, length);
            return offset + length + 1;
        }
        to.putBytes(at, row.source(i), row.offset(i), size);
        return offset + size;
    }

    /**
     * The header of a tuple about to be inserted; its t_ctid is set with its place. (PostgreSQL:
     * heap_prepare_insert.)
     */
    public static void prepareInsert(MutableDirectBuffer tuple, int at, int xid, int commandId) {
        int infomask = HeapTupleHeader.infomask(tuple, at) & ~HEAP_XACT_MASK;
        HeapTupleHeader.setInfomask(tuple, at, infomask | HeapTupleHeader.HEAP_XMAX_INVALID);
        HeapTupleHeader.setInfomask2(
                tuple, at, HeapTupleHeader.infomask2(tuple, at) & ~HEAP2_XACT_MASK);
        HeapTupleHeader.setXmin(tuple, at, xid);
        HeapTupleHeader.setXmax(tuple, at, 0);
        tuple.putInt(at + HeapTupleHeader.T_CID, commandId);
    }

    /**
     * Reads the values of the tuple at {@code at}; those that are not numbers are not copied.
     * Columns that were added after the tuple was stored are null.
     *
     * @param length of the tuple, as its line pointer says; within {@code in}
     */
    public static void deform(DirectBuffer in, int at, int length, RowValues row) {
        TupleDescriptor descriptor = row.descriptor();
        int count = checkHeader(in, at, length, descriptor);
        boolean hasNulls = (HeapTupleHeader.infomask(in, at) & HEAP_HASNULL) != 0;
        int hoff = HeapTupleHeader.hoff(in, at);
        int data = at + hoff;
        int limit = length - hoff;
        boolean fixed = true;
        int offset = 0;
        for (int i = 0; i < count; i++) {
            if (hasNulls && isNull(in, at, i)) {
                row.setNull(i);
                fixed = false;
                continue;
            }
            int place = fixed ? descriptor.fixedOffset(i) : -1;
            if (place < 0) {
                fixed = false;
                place = startOf(descriptor, i, in, data, offset, limit);
            }
            offset = place + read(descriptor, i, in, data + place, limit - place, row);
        }
        for (int i = count; i < descriptor.count(); i++) {
            row.setNull(i);
        }
    }

    private static int checkHeader(
            DirectBuffer in, int at, int length, TupleDescriptor descriptor) {
        if (length < HeapTupleHeader.SIZE) {
            throw new DamagedDataException("tuple of " + length + " bytes has no whole header");
        }
        int columns = HeapTupleHeader.infomask2(in, at) & HeapTupleHeader.HEAP_NATTS_MASK;
        boolean hasNulls = (HeapTupleHeader.infomask(in, at) & HEAP_HASNULL) != 0;
        int hoff = HeapTupleHeader.hoff(in, at);
        int least = HeapTupleHeader.SIZE + (hasNulls ? (columns + 7) / 8 : 0);
        if (hoff < least || hoff != Page.maxAlign(hoff) || hoff > length) {
            throw new DamagedDataException(
                    "data of a tuple of "
                            + length
                            + " bytes and "
                            + columns
                            + " columns cannot begin at "
                            + hoff);
        }
        return Math.min(columns, descriptor.count());
    }

    private static boolean isNull(DirectBuffer in, int at, int i) {
        return (in.getByte(at + HeapTupleHeader.SIZE + (i >> 3)) & 1 << (i & 7)) == 0;
    }

    private static int startOf(
            TupleDescriptor descriptor, int i, DirectBuffer in, int data, int offset, int limit) {
        if (descriptor.length(i) == Attribute.VARLENA
                && offset < limit
                && in.getByte(data + offset) != 0) {
            // Not padding, so it begins here: short, or aligned already.
            return offset;
        }
        return descriptor.align(i, offset);
    }

    private static int read(
            TupleDescriptor descriptor, int i, DirectBuffer in, int at, int room, RowValues row) {
        int length = descriptor.length(i);
        if (length == Attribute.VARLENA) {
            int size = varlenaSize(descriptor, i, in, at, room);
            row.refer(i, in, at, size);
            return size;
        }
        if (length == Attribute.CSTRING) {
            int size = 1;
            while (size <= room && in.getByte(at + size - 1) != 0) {
                size++;
            }
            checkRoom(descriptor, i, size, room);
            row.refer(i, in, at, size);
            return size;
        }
        checkRoom(descriptor, i, length, room);
        if (descriptor.isByValue(i)) {
            row.setNumber(i, number(in, at, length));
        } else {
            row.refer(i, in, at, length);
        }
        return length;
    }

    private static long number(DirectBuffer in, int at, int length) {
        return switch (length) {
            case 1 -> in.getByte(at);
            case 2 -> in.getShort(at);
            case 4 -> in.getInt(at);
            default -> in.getLong(at);
        };
    }

    private static int varlenaSize(
            TupleDescriptor descriptor, int i, DirectBuffer in, int at, int room) {
        checkRoom(descriptor, i, 1, room);
        boolean unaligned = Varlena.isUnaligned(in, at);
        if (Varlena.isExternal(in, at)) {
            checkRoom(descriptor, i, Varlena.TOAST_POINTER_SIZE, room);
            if (in.getByte(at + 1) != Varlena.VARTAG_ONDISK) {
                throw new DamagedDataException(
                        "column "
                                + descriptor.attribute(i).name()
                                + ": unrecognized TOAST vartag "
                                + in.getByte(at + 1));
            }
            return Varlena.TOAST_POINTER_SIZE;
        }
        checkRoom(descriptor, i, unaligned ? 1 : Varlena.HEADER_SIZE, room);
        int size = Varlena.size(in, at);
        int least =
                Varlena.isCompressed(in, at)
                        ? Varlena.COMPRESSED_HEADER_SIZE
                        : Varlena.headerSize(in, at);
        if (size < least) {
            throw new DamagedDataException(
                    "column "
                            + descriptor.attribute(i).name()
                            + ": value of "
                            + size
                            + " bytes is shorter than its header");
        }
        checkRoom(descriptor, i, size, room);
        return size;
    }

    private static void checkRoom(TupleDescriptor descriptor, int i, int size, int room) {
        if (size > room) {
            throw new DamagedDataException(
                    "column "
                            + descriptor.attribute(i).name()
                            + ": value of "
                            + size
                            + " bytes reaches past the tuple's end");
        }
    }
}
