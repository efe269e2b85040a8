package org.pgkernel.heap;

import java.nio.charset.StandardCharsets;
import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The values of one row, by column from 0. Numbers are held as {@code long}; other values are bytes
 * somewhere else: in the page they were deformed from, which must stay pinned while they are used,
 * or in this row's own memory, into which the setters copy.
 *
 * <p>A varlena is held with its header, in any of its forms. Reused from row to row; allocates only
 * when a row is larger than all before it. One thread.
 */
public final class RowValues {
    private final TupleDescriptor descriptor;
    private final boolean[] nulls;
    private final long[] numbers;
    private final DirectBuffer[] sources;
    private final int[] offsets;
    private final int[] sizes;
    private final ExpandableArrayBuffer own = new ExpandableArrayBuffer(256);
    private int ownEnd;

    public RowValues(TupleDescriptor descriptor) {
        this.descriptor = descriptor;
        int count = descriptor.count();
        nulls = new boolean[count];
        numbers = new long[count];
        sources = new DirectBuffer[count];
        offsets = new int[count];
        sizes = new int[count];
        clear();
    }

    public TupleDescriptor descriptor() {
        return descriptor;
    }

    /** All columns null, and own memory free again. */
    public void clear() {
        for (int i = 0; i < nulls.length; i++) {
            setNull(i);
        }
        ownEnd = 0;
    }

    public boolean isNull(int i) {
        return nulls[i];
    }

    boolean hasNulls() {
        for (boolean isNull : nulls) {
            if (isNull) {
                return true;
            }
        }
        return false;
    }

    public void setNull(int i) {
        nulls[i] = true;
        sources[i] = null;
        sizes[i] = 0;
    }

    /** Of a column by value; what does not fit its length is cut off. */
    public void setNumber(int i, long value) {
        nulls[i] = false;
        numbers[i] = value;
    }

    public void setDouble(int i, double value) {
        setNumber(i, Double.doubleToRawLongBits(value));
    }

    public void setFloat(int i, float value) {
        setNumber(i, Float.floatToRawIntBits(value));
    }

    /** Of a column by value, sign-extended. */
    public long number(int i) {
        return numbers[i];
    }

    public double doubleValue(int i) {
        return Double.longBitsToDouble(numbers[i]);
    }

    public float floatValue(int i) {
        return Float.intBitsToFloat((int) numbers[i]);
    }

    /** The value's bytes as they are, a varlena's with its header; not copied. */
    void refer(int i, DirectBuffer source, int offset, int size) {
        nulls[i] = false;
        sources[i] = source;
        offsets[i] = offset;
        sizes[i] = size;
    }

    /**
     * Copies a value without header: a varlena gets a 4-byte one (forming makes it short where it
     * may), a column of fixed length is padded with zero bytes, a string gets its zero byte.
     */
    public void setBytes(int i, DirectBuffer value, int offset, int length) {
        int to = reserve(i, length);
        int header = descriptor.length(i) == Attribute.VARLENA ? Varlena.HEADER_SIZE : 0;
        own.putBytes(to + header, value, offset, length);
    }

    public void setBytes(int i, byte[] value) {
        int to = reserve(i, value.length);
        int header = descriptor.length(i) == Attribute.VARLENA ? Varlena.HEADER_SIZE : 0;
        own.putBytes(to + header, value);
    }

    public void setText(int i, String value) {
        setBytes(i, value.getBytes(StandardCharsets.UTF_8));
    }

    /** Copies a varlena with its header, in whatever form. */
    public void setVarlena(int i, DirectBuffer value, int offset, int size) {
        int to = allocate(size);
        own.putBytes(to, value, offset, size);
        refer(i, own, to, size);
    }

    /** A value that was stored compressed out of line: word of raw length and method, data. */
    void setCompressed(int i, DirectBuffer value, int length) {
        int size = Varlena.HEADER_SIZE + length;
        int to = allocate(size);
        Varlena.putStoredCompressedHeader(own, to, size);
        own.putBytes(to + Varlena.HEADER_SIZE, value, 0, length);
        refer(i, own, to, size);
    }

    /** Becomes the same row, whose values stay where they are. */
    void copyReferences(RowValues other) {
        ownEnd = 0;
        for (int i = 0; i < nulls.length; i++) {
            nulls[i] = other.nulls[i];
            numbers[i] = other.numbers[i];
            sources[i] = other.sources[i];
            offsets[i] = other.offsets[i];
            sizes[i] = other.sizes[i];
        }
    }

    /** Copies what is still elsewhere, so that the row can be read for as long as it exists. */
    public void keep() {
        for (int i = 0; i < sources.length; i++) {
            if (sources[i] != null && sources[i] != own) {
                setVarlena(i, sources[i], offsets[i], sizes[i]);
            }
        }
    }

    private int reserve(int i, int length) {
        int fixed = descriptor.length(i);
        int size =
                switch (fixed) {
                    case Attribute.VARLENA -> Varlena.HEADER_SIZE + length;
                    case Attribute.CSTRING -> length + 1;
                    default -> fixed;
                };
        if (length > size || size > Varlena.MAX_SIZE) {
            throw new IllegalArgumentException(
                    "value of " + length + " bytes is too long for " + descriptor.attribute(i));
        }
        int to = allocate(size);
        if (fixed == Attribute.VARLENA) {
            Varlena.putPlainHeader(own, to, size);
        } else {
            own.setMemory(to, size, (byte) 0);
        }
        refer(i, own, to, size);
        return to;
    }

    private int allocate(int size) {
        int at = ownEnd;
        ownEnd = Math.addExact(at, size);
        own.checkLimit(ownEnd);
        return at;
    }

    DirectBuffer source(int i) {
        return sources[i];
    }

    int offset(int i) {
        return offsets[i];
    }

    /** Bytes of the value, a varlena's with its header. */
    int size(int i) {
        return sizes[i];
    }

    /** True of a varlena whose bytes are elsewhere. */
    public boolean isExternal(int i) {
        return descriptor.length(i) == Attribute.VARLENA
                && !nulls[i]
                && Varlena.isExternal(sources[i], offsets[i]);
    }

    boolean hasExternal() {
        for (int i = 0; i < nulls.length; i++) {
            if (isExternal(i)) {
                return true;
            }
        }
        return false;
    }

    /** Both columns are external and point to the same value. */
    boolean isSameExternal(RowValues other, int i) {
        for (int k = 0; k < Varlena.TOAST_POINTER_SIZE; k++) {
            if (sources[i].getByte(offsets[i] + k)
                    != other.sources[i].getByte(other.offsets[i] + k)) {
                return false;
            }
        }
        return true;
    }

    /** Points at the value as stored: a varlena with its header, whatever its form. */
    public void wrap(int i, UnsafeBuffer view) {
        view.wrap(sources[i], offsets[i], sizes[i]);
    }

    /**
     * A copy of the value without header. Of a varlena that is neither compressed nor external; see
     * {@link Detoaster} for those. A string comes without its zero byte.
     */
    public byte[] bytes(int i) {
        int header = 0;
        int tail = 0;
        if (descriptor.length(i) == Attribute.VARLENA) {
            if (Varlena.isExternal(sources[i], offsets[i])
                    || Varlena.isCompressed(sources[i], offsets[i])) {
                throw new IllegalStateException(
                        "value of " + descriptor.attribute(i) + " must be detoasted first");
            }
            header = Varlena.headerSize(sources[i], offsets[i]);
        } else if (descriptor.length(i) == Attribute.CSTRING) {
            tail = 1;
        }
        byte[] copy = new byte[sizes[i] - header - tail];
        sources[i].getBytes(offsets[i] + header, copy);
        return copy;
    }

    public String text(int i) {
        return new String(bytes(i), StandardCharsets.UTF_8);
    }
}
