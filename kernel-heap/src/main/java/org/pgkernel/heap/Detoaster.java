package org.pgkernel.heap;

import io.airlift.compress.v3.lz4.Lz4JavaCompressor;
import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.Pglz;
import org.pgkernel.wal.PglzCompressor;

/**
 * Compresses and decompresses values. Keeps scratch memory as large as the largest value seen: one
 * thread. (PostgreSQL: toast_compression.c, detoast.c.)
 */
public final class Detoaster {
    /** Neither method can make more of a byte; so garbage asks for no memory. */
    private static final int MOST_EXPANSION = 256;

    private final PglzCompressor pglz = new PglzCompressor();
    private final Lz4JavaCompressor lz4 = new Lz4JavaCompressor();
    private final Lz4JavaDecompressor unLz4 = new Lz4JavaDecompressor();
    private byte[] raw = new byte[0];
    private byte[] packed = new byte[0];
    private final UnsafeBuffer packedView = new UnsafeBuffer(packed);

    /**
     * The value, short or plain, compressed with the method of its column, as a varlena at the
     * beginning of {@link #result}. Kept only if it saves more than 2 bytes: with less, header and
     * alignment could eat up the gain. (PostgreSQL: toast_compress_datum.)
     *
     * @return its size with header, or -1 when it is not worth it
     */
    int compress(DirectBuffer in, int at, char compression) {
        int header = Varlena.headerSize(in, at);
        int length = Varlena.size(in, at) - header;
        copyToRaw(in, at + header, length);
        boolean isLz4 = compression == Attribute.LZ4;
        int stored = isLz4 ? compressLz4(length) : compressPglz(length);
        int size = stored + Varlena.COMPRESSED_HEADER_SIZE;
        if (stored < 0 || size >= length - 2) {
            return -1;
        }
        packedView.wrap(packed);
        Varlena.putCompressedHeader(
                packedView, 0, size, length, isLz4 ? Varlena.METHOD_LZ4 : Varlena.METHOD_PGLZ);
        return size;
    }

    /** What {@link #compress} made. */
    DirectBuffer result() {
        return packedView;
    }

    private int compressPglz(int length) {
        if (length < PglzCompressor.MIN_INPUT) {
            return -1;
        }
        growPacked(PglzCompressor.maxOutput(length));
        int stored = pglz.compress(raw, 0, length, packed);
        if (stored > 0) {
            shiftForHeader(stored);
        }
        return stored;
    }

    private int compressLz4(int length) {
        int most = lz4.maxCompressedLength(length);
        growPacked(most);
        int stored = lz4.compress(raw, 0, length, packed, 0, most);
        if (stored > length) {
            return -1;
        }
        shiftForHeader(stored);
        return stored;
    }

    private void shiftForHeader(int stored) {
        System.arraycopy(packed, 0, packed, Varlena.COMPRESSED_HEADER_SIZE, stored);
    }

    private void growPacked(int length) {
        int need = length + Varlena.COMPRESSED_HEADER_SIZE;
        if (packed.length < need) {
            packed = new byte[need];
        }
    }

    private void copyToRaw(DirectBuffer in, int at, int length) {
        if (raw.length < length) {
            raw = new byte[length];
        }
        in.getBytes(at, raw, 0, length);
    }

    /**
     * The data of a varlena in the row, without header, decompressed. Not of an external one: fetch
     * its chunks and use {@link #value(DirectBuffer, int, byte[])}. (PostgreSQL: detoast_attr.)
     */
    public byte[] value(DirectBuffer in, int at) {
        int size = Varlena.size(in, at);
        if (Varlena.isExternal(in, at)) {
            throw new IllegalArgumentException("the value is out of line");
        }
        if (Varlena.isCompressed(in, at)) {
            int stored = size - Varlena.COMPRESSED_HEADER_SIZE;
            byte[] compressed = new byte[stored];
            in.getBytes(at + Varlena.COMPRESSED_HEADER_SIZE, compressed);
            return decompress(compressed, 0, Varlena.rawLength(in, at), Varlena.method(in, at));
        }
        int header = Varlena.headerSize(in, at);
        byte[] copy = new byte[size - header];
        in.getBytes(at + header, copy);
        return copy;
    }

    /**
     * The data of an external varlena.
     *
     * @param in the TOAST pointer at {@code at}
     * @param stored its chunks' data in order
     */
    public byte[] value(DirectBuffer in, int at, byte[] stored) {
        int expected = Varlena.externalStoredSize(in, at);
        if (stored.length != expected) {
            throw new DamagedDataException(
                    "toast value "
                            + Integer.toUnsignedString(Varlena.valueId(in, at))
                            + " in TOAST table "
                            + Integer.toUnsignedString(Varlena.toastRelation(in, at))
                            + " has "
                            + stored.length
                            + " bytes instead of "
                            + expected);
        }
        if (!Varlena.isExternalCompressed(in, at)) {
            return stored.clone();
        }
        if (stored.length < Varlena.HEADER_SIZE) {
            throw new DamagedDataException("compressed toast value has no length");
        }
        // Chunks begin with the raw length and method word of the compressed varlena.
        int rawLength = Varlena.externalRawSize(in, at) - Varlena.HEADER_SIZE;
        return decompress(stored, Varlena.HEADER_SIZE, rawLength, Varlena.externalMethod(in, at));
    }

    private byte[] decompress(byte[] from, int offset, int rawLength, int method) {
        int length = from.length - offset;
        if (rawLength > MOST_EXPANSION * (long) length) {
            throw new DamagedDataException(
                    "compressed data is corrupt: " + length + " bytes for " + rawLength);
        }
        byte[] to = new byte[rawLength];
        boolean whole =
                switch (method) {
                    case Varlena.METHOD_PGLZ -> {
                        byte[] source = offset == 0 ? from : tail(from, offset);
                        yield Pglz.decompress(source, length, to, rawLength);
                    }
                    case Varlena.METHOD_LZ4 -> decompressLz4(from, offset, length, to);
                    default ->
                            throw new DamagedDataException(
                                    "invalid compression method id " + method);
                };
        if (!whole) {
            throw new DamagedDataException(
                    "compressed data is corrupt: " + length + " bytes for " + rawLength);
        }
        return to;
    }

    private static byte[] tail(byte[] from, int offset) {
        return Arrays.copyOfRange(from, offset, from.length);
    }

    private boolean decompressLz4(byte[] from, int offset, int length, byte[] to) {
        try {
            return unLz4.decompress(from, offset, length, to, 0, to.length) == to.length;
        } catch (RuntimeException e) {
            // MalformedInputException, and whatever else garbage may provoke in a decoder.
            return false;
        }
    }
}
