package org.pgkernel.base;

import java.util.zip.CRC32C;
import org.agrona.BufferUtil;
import org.agrona.DirectBuffer;
import org.agrona.UnsafeApi;

/**
 * CRC-32C (Castagnoli) as PostgreSQL keeps it in WAL records, pg_control and pg_filenode.map: start
 * with all ones, take in bytes, end with all bits turned over.
 *
 * <p>One object serves any number of sums one after another and is not thread-safe: each reader or
 * writer owns one. Allocates nothing per use. Native memory goes through a small copy, since the
 * JDK's fast sum takes arrays; that costs less than a view object for each piece. (PostgreSQL:
 * INIT_CRC32C, COMP_CRC32C, FIN_CRC32C, pg_crc32c.h.)
 */
public final class Crc32c {
    private static final int COPY_BYTES = 8192;

    private final CRC32C sum = new CRC32C();
    private final byte[] copy = new byte[COPY_BYTES];

    /** Begins a new sum. */
    public void reset() {
        sum.reset();
    }

    /** Takes in {@code length} bytes at a native address. */
    public void update(long address, int length) {
        assert length >= 0;
        long from = address;
        int left = length;
        while (left > 0) {
            int part = Math.min(left, COPY_BYTES);
            UnsafeApi.copyMemory(null, from, copy, BufferUtil.ARRAY_BASE_OFFSET, part);
            sum.update(copy, 0, part);
            from += part;
            left -= part;
        }
    }

    /** Takes in a range of a buffer. */
    public void update(DirectBuffer buffer, int offset, int length) {
        buffer.boundsCheck(offset, length);
        byte[] array = buffer.byteArray();
        if (array == null) {
            update(buffer.addressOffset() + offset, length);
        } else {
            sum.update(
                    array,
                    (int) (buffer.addressOffset() - BufferUtil.ARRAY_BASE_OFFSET) + offset,
                    length);
        }
    }

    /** Takes in a range of an array. */
    public void update(byte[] array, int offset, int length) {
        sum.update(array, offset, length);
    }

    /** The finished sum of what was taken in since {@link #reset}; more may follow. */
    public int value() {
        return (int) sum.getValue();
    }

    /** The sum of one range; makes an object, so not for hot paths. */
    public static int of(DirectBuffer buffer, int offset, int length) {
        Crc32c crc = new Crc32c();
        crc.update(buffer, offset, length);
        return crc.value();
    }
}
