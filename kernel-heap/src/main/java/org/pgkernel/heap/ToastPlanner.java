package org.pgkernel.heap;

import java.util.Arrays;
import java.util.function.IntSupplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Makes a row fit: compresses values and moves them out of line, largest first, until its tuple is
 * at most {@link #TUPLE_TARGET} bytes.
 *
 * <ol>
 *   <li>compress extended columns; one that alone is over the target goes out of line at once
 *   <li>extended and external columns go out of line
 *   <li>compress main columns
 *   <li>main columns go out of line, but only until the tuple fits a page
 * </ol>
 *
 * Values of up to 24 bytes are left alone. HEAP-8: chunks in order give the stored value back, none
 * is longer than {@link #CHUNK_SIZE}, all but the last are exactly that. Owns scratch memory: one
 * thread. (PostgreSQL: heap_toast_insert_or_update, heaptoast.c; toast_tuple_init and others,
 * toast_helper.c; toast_save_datum, toast_internals.c.)
 */
public final class ToastPlanner {
    /** A longer tuple is toasted. (PostgreSQL: TOAST_TUPLE_THRESHOLD.) */
    public static final int TUPLE_THRESHOLD = 2032;

    /** (PostgreSQL: TOAST_TUPLE_TARGET.) */
    public static final int TUPLE_TARGET = 2032;

    /** (PostgreSQL: TOAST_TUPLE_TARGET_MAIN.) */
    public static final int TUPLE_TARGET_MAIN = 8160;

    /** Bytes of a chunk; four chunk tuples fill a page. (PostgreSQL: TOAST_MAX_CHUNK_SIZE.) */
    public static final int CHUNK_SIZE = 1996;

    private static final int WORTH_MOVING = 24;

    /** Where the chunks go: one call a row of the TOAST table, in order. */
    @FunctionalInterface
    public interface ChunkSink {
        /** The data is valid during the call only. */
        void chunk(int valueId, int sequence, DirectBuffer data, int offset, int length);
    }

    /** Learns of values that only the old version of a row used. */
    @FunctionalInterface
    public interface ObsoleteValues {
        /**
         * @param storedSize bytes of all its chunks
         */
        void value(int valueId, int storedSize);
    }

    private final TupleDescriptor descriptor;
    private final Detoaster compression = new Detoaster();
    private final boolean[] settled;
    private final boolean[] incompressible;
    private final UnsafeBuffer pointer = new UnsafeBuffer(new byte[Varlena.TOAST_POINTER_SIZE]);

    public ToastPlanner(TupleDescriptor descriptor) {
        this.descriptor = descriptor;
        settled = new boolean[descriptor.count()];
        incompressible = new boolean[descriptor.count()];
    }

    /** True if the row must go through {@link #plan} before it is stored. */
    public static boolean needed(RowValues row) {
        return HeapTuples.size(row) > TUPLE_THRESHOLD || row.hasExternal();
    }

    /**
     * Changes the row's values to what is stored.
     *
     * @param old the version being replaced, or null; an external value that the row shares with it
     *     is kept as it is. Other external values must have been fetched.
     * @param toastRelation OID of the TOAST table, 0 if there is none: values are compressed only
     * @param valueIds gives an OID not in use in the TOAST table
     * @param obsolete told the values that only the old version used
     * @return true if the row was changed
     */
    public boolean plan(
            RowValues row,
            RowValues old,
            int toastRelation,
            IntSupplier valueIds,
            ChunkSink chunks,
            ObsoleteValues obsolete) {
        begin(row, old, obsolete);
        int hoff = HeapTuples.headerSize(descriptor.count(), row.hasNulls());
        int most = TUPLE_TARGET - hoff;
        boolean changed = false;
        for (int i; HeapTuples.dataSize(row) > most && (i = biggest(row, true, false)) >= 0; ) {
            changed |= tryCompression(row, i);
            if (row.size(i) > most && toastRelation != 0) {
                moveOut(row, i, toastRelation, valueIds, chunks);
                changed = true;
            }
        }
        changed |= moveOut(row, most, false, toastRelation, valueIds, chunks);
        for (int i; HeapTuples.dataSize(row) > most && (i = biggest(row, true, true)) >= 0; ) {
            changed |= tryCompression(row, i);
        }
        most = TUPLE_TARGET_MAIN - hoff;
        return changed | moveOut(row, most, true, toastRelation, valueIds, chunks);
    }

    private void begin(RowValues row, RowValues old, ObsoleteValues obsolete) {
        Arrays.fill(incompressible, false);
        for (int i = 0; i < settled.length; i++) {
            boolean kept =
                    row.isExternal(i)
                            && old != null
                            && old.isExternal(i)
                            && row.isSameExternal(old, i);
            if (row.isExternal(i) && !kept) {
                throw new IllegalArgumentException(
                        "value of " + descriptor.attribute(i) + " belongs to another row");
            }
            settled[i] = row.isNull(i) || kept || !descriptor.isPackable(i);
        }
        for (int i = 0; old != null && i < settled.length; i++) {
            if (old.isExternal(i) && !row.isExternal(i)) {
                obsolete.value(
                        Varlena.valueId(old.source(i), old.offset(i)),
                        Varlena.externalStoredSize(old.source(i), old.offset(i)));
            }
        }
    }

    /** The largest value that may still be changed; the first of equals. */
    private int biggest(RowValues row, boolean toCompress, boolean main) {
        int found = -1;
        int size = WORTH_MOVING;
        for (int i = 0; i < settled.length; i++) {
            if (settled[i]
                    || (descriptor.attribute(i).storage() == Attribute.MAIN) != main
                    || toCompress
                            && (incompressible[i]
                                    || Varlena.isCompressed(row.source(i), row.offset(i)))) {
                continue;
            }
            if (row.size(i) > size) {
                found = i;
                size = row.size(i);
            }
        }
        return found;
    }

    private boolean tryCompression(RowValues row, int i) {
        Attribute attribute = descriptor.attribute(i);
        int size =
                attribute.storage() == Attribute.EXTERNAL
                        ? -1
                        : compression.compress(
                                row.source(i), row.offset(i), attribute.compression());
        if (size < 0) {
            incompressible[i] = true;
            return false;
        }
        row.setVarlena(i, compression.result(), 0, size);
        return true;
    }

    private boolean moveOut(
            RowValues row,
            int most,
            boolean main,
            int toastRelation,
            IntSupplier valueIds,
            ChunkSink chunks) {
        boolean changed = false;
        for (int i;
                toastRelation != 0
                        && HeapTuples.dataSize(row) > most
                        && (i = biggest(row, false, main)) >= 0; ) {
            moveOut(row, i, toastRelation, valueIds, chunks);
            changed = true;
        }
        return changed;
    }

    /** A compressed value goes out with its word of raw length and method before the data. */
    private void moveOut(
            RowValues row, int i, int toastRelation, IntSupplier valueIds, ChunkSink chunks) {
        DirectBuffer in = row.source(i);
        int at = row.offset(i);
        int header = Varlena.headerSize(in, at);
        int length = row.size(i) - header;
        boolean compressed = Varlena.isCompressed(in, at);
        int rawSize = (compressed ? Varlena.rawLength(in, at) : length) + Varlena.HEADER_SIZE;
        int extInfo = compressed ? length | Varlena.method(in, at) << 30 : length;
        int valueId = valueIds.getAsInt();
        int sequence = 0;
        for (int done = 0; done < length; done += CHUNK_SIZE) {
            int size = Math.min(CHUNK_SIZE, length - done);
            chunks.chunk(valueId, sequence++, in, at + header + done, size);
        }
        Varlena.putToastPointer(pointer, 0, rawSize, extInfo, valueId, toastRelation);
        row.setVarlena(i, pointer, 0, Varlena.TOAST_POINTER_SIZE);
        settled[i] = true;
    }
}
