package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * Values that say their own length. The low bits of the first byte tell which form it is.
 *
 * <pre>
 *   .......1   short    0 length 7 bits, this byte included | data                1 to 127 bytes, not aligned
 *   00000001   external 0 01 | 1 tag 1 (18: on disk) | 2 va_rawsize 4 | 6 va_extinfo 4 | 10 va_valueid 4 | 14 va_toastrelid 4
 *   ......00   plain    0 length 30 bits, these 4 bytes included | data
 *   ......10   compressed
 *                       0 length 30 bits, all included | 4 raw length 30 bits, method 2 bits | compressed data
 *   va_extinfo          stored length 30 bits, method 2 bits; va_rawsize counts a 4-byte header
 *   method              0 pglz, 1 lz4
 * </pre>
 *
 * (PostgreSQL: postgres.h, varattrib_4b, varatt_external.)
 */
public final class Varlena {
    /** (PostgreSQL: VARHDRSZ.) */
    public static final int HEADER_SIZE = 4;

    /** Header of a compressed value. (PostgreSQL: VARHDRSZ_COMPRESSED.) */
    public static final int COMPRESSED_HEADER_SIZE = 8;

    /** (PostgreSQL: VARATT_SHORT_MAX.) */
    public static final int SHORT_MAX = 127;

    /** (PostgreSQL: TOAST_POINTER_SIZE.) */
    public static final int TOAST_POINTER_SIZE = 18;

    public static final int METHOD_PGLZ = 0;
    public static final int METHOD_LZ4 = 1;

    /** Longest value, header included. (PostgreSQL: MaxAllocSize.) */
    public static final int MAX_SIZE = 0x3FFFFFFF;

    static final int VARTAG_ONDISK = 18;
    static final int EXTERNAL = 0x01;
    private static final int RAW_SIZE = 2;
    private static final int EXT_INFO = 6;
    private static final int VALUE_ID = 10;
    private static final int TOAST_RELATION = 14;
    private static final int SIZE_MASK = 0x3FFFFFFF;

    private Varlena() {}

    public static boolean isShort(DirectBuffer in, int at) {
        return (in.getByte(at) & 1) != 0 && in.getByte(at) != EXTERNAL;
    }

    /** The value is a pointer into the TOAST table. */
    public static boolean isExternal(DirectBuffer in, int at) {
        return in.getByte(at) == EXTERNAL;
    }

    /** Short or external: begins at any place. */
    static boolean isUnaligned(DirectBuffer in, int at) {
        return (in.getByte(at) & 1) != 0;
    }

    public static boolean isCompressed(DirectBuffer in, int at) {
        return (in.getByte(at) & 3) == 2;
    }

    public static boolean isPlain(DirectBuffer in, int at) {
        return (in.getByte(at) & 3) == 0;
    }

    /** Bytes with the header, as stored here. (PostgreSQL: VARSIZE_ANY.) */
    public static int size(DirectBuffer in, int at) {
        int first = in.getByte(at);
        if (first == EXTERNAL) {
            return TOAST_POINTER_SIZE;
        }
        return (first & 1) != 0 ? (first & 0xFF) >>> 1 : in.getInt(at) >>> 2;
    }

    public static int headerSize(DirectBuffer in, int at) {
        return isUnaligned(in, at) ? 1 : HEADER_SIZE;
    }

    static void putPlainHeader(MutableDirectBuffer to, int at, int size) {
        to.putInt(at, size << 2);
    }

    static void putShortHeader(MutableDirectBuffer to, int at, int size) {
        to.putByte(at, (byte) (size << 1 | 1));
    }

    static void putCompressedHeader(
            MutableDirectBuffer to, int at, int size, int rawLength, int method) {
        to.putInt(at, size << 2 | 2);
        to.putInt(at + 4, rawLength | method << 30);
    }

    /** The word of raw length and method follows, as chunks keep it. */
    static void putStoredCompressedHeader(MutableDirectBuffer to, int at, int size) {
        to.putInt(at, size << 2 | 2);
    }

    /** Of a compressed value. */
    public static int rawLength(DirectBuffer in, int at) {
        return in.getInt(at + 4) & SIZE_MASK;
    }

    /** Of a compressed value. */
    public static int method(DirectBuffer in, int at) {
        return in.getInt(at + 4) >>> 30;
    }

    static void putToastPointer(
            MutableDirectBuffer to,
            int at,
            int rawSize,
            int extInfo,
            int valueId,
            int toastRelation) {
        to.putByte(at, (byte) EXTERNAL);
        to.putByte(at + 1, (byte) VARTAG_ONDISK);
        to.putInt(at + RAW_SIZE, rawSize);
        to.putInt(at + EXT_INFO, extInfo);
        to.putInt(at + VALUE_ID, valueId);
        to.putInt(at + TOAST_RELATION, toastRelation);
    }

    /** Of an external value: length uncompressed, with a 4-byte header. */
    public static int externalRawSize(DirectBuffer in, int at) {
        return in.getInt(at + RAW_SIZE);
    }

    /** Of an external value: bytes in the TOAST table. */
    public static int externalStoredSize(DirectBuffer in, int at) {
        return in.getInt(at + EXT_INFO) & SIZE_MASK;
    }

    /** Of an external value: fewer bytes are stored than it has. */
    public static boolean isExternalCompressed(DirectBuffer in, int at) {
        return externalStoredSize(in, at) < externalRawSize(in, at) - HEADER_SIZE;
    }

    /** Of an external compressed value. */
    public static int externalMethod(DirectBuffer in, int at) {
        return in.getInt(at + EXT_INFO) >>> 30;
    }

    /** Of an external value. */
    public static int valueId(DirectBuffer in, int at) {
        return in.getInt(at + VALUE_ID);
    }

    /** Of an external value: OID of the TOAST table. */
    public static int toastRelation(DirectBuffer in, int at) {
        return in.getInt(at + TOAST_RELATION);
    }
}
