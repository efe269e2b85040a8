package org.pgkernel.wal;

/**
 * PostgreSQL's own LZ compression, decoding side; {@link PglzCompressor} encodes.
 *
 * <p>A control byte says, from its low bit, what each of the next eight items is: 0 a literal byte;
 * 1 a reference back, two bytes or three: {@code oooollll oooooooo [extra]}, length {@code llll +
 * 3} (18 adds the extra byte) and distance 1 to 4095. (PostgreSQL: pg_lzcompress.c.)
 */
public final class Pglz {
    private Pglz() {}

    /**
     * Decodes all of the source into exactly {@code rawSize} bytes. (PostgreSQL: pglz_decompress
     * with check_complete.)
     *
     * @return false when the source is not that: it ends early or late, or refers to before the
     *     beginning
     */
    public static boolean decompress(byte[] source, int sourceLength, byte[] to, int rawSize) {
        int from = 0;
        int at = 0;
        while (from < sourceLength && at < rawSize) {
            int control = source[from++];
            for (int item = 0;
                    item < 8 && from < sourceLength && at < rawSize;
                    item++, control >>= 1) {
                if ((control & 1) == 0) {
                    to[at++] = source[from++];
                    continue;
                }
                if (sourceLength - from < 2) {
                    return false;
                }
                int length = (source[from] & 0x0F) + 3;
                int distance = (source[from] & 0xF0) << 4 | source[from + 1] & 0xFF;
                from += 2;
                if (length == 18) {
                    if (from == sourceLength) {
                        return false;
                    }
                    length += source[from++] & 0xFF;
                }
                if (distance == 0 || distance > at) {
                    return false;
                }
                length = Math.min(length, rawSize - at);
                copy(to, at, distance, length);
                at += length;
            }
        }
        return from == sourceLength && at == rawSize;
    }

    /**
     * Copies from {@code distance} back; where source and target overlap, what was just written is
     * read again.
     */
    private static void copy(byte[] to, int at, int distance, int length) {
        if (distance >= length) {
            System.arraycopy(to, at - distance, to, at, length);
            return;
        }
        for (int end = at + length; at < end; at++) {
            to[at] = to[at - distance];
        }
    }
}
