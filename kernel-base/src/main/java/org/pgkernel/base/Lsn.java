package org.pgkernel.base;

import java.util.HexFormat;

/**
 * Log sequence numbers: byte positions in the WAL, unsigned 64-bit, carried as {@code long}.
 *
 * <p>Text form as PostgreSQL prints it: two hexadecimal halves, {@code 0/16B3748}. (PostgreSQL:
 * XLogRecPtr, xlogdefs.h.)
 */
public final class Lsn {
    /** No position. (PostgreSQL: InvalidXLogRecPtr.) */
    public static final long INVALID = 0L;

    private Lsn() {}

    /** True if {@code a} lies before {@code b}, both unsigned. */
    public static boolean before(long a, long b) {
        return Long.compareUnsigned(a, b) < 0;
    }

    /** True if {@code a} is {@code b} or lies after it, both unsigned. */
    public static boolean atOrAfter(long a, long b) {
        return Long.compareUnsigned(a, b) >= 0;
    }

    public static long max(long a, long b) {
        return before(a, b) ? b : a;
    }

    /** {@code hi/lo} in upper-case hexadecimal. */
    public static String format(long lsn) {
        return Long.toHexString(lsn >>> 32).toUpperCase()
                + "/"
                + Long.toHexString(lsn & 0xFFFFFFFFL).toUpperCase();
    }

    /**
     * Reads the text form.
     *
     * @throws IllegalArgumentException when {@code text} is not two hexadecimal halves of 1 to 8
     *     digits
     */
    public static long parse(String text) {
        int slash = text.indexOf('/');
        if (slash < 1
                || slash > 8
                || text.length() - slash - 1 < 1
                || text.length() - slash - 1 > 8) {
            throw new IllegalArgumentException("not an LSN: \"" + text + "\"");
        }
        try {
            long hi = HexFormat.fromHexDigitsToLong(text, 0, slash);
            long lo = HexFormat.fromHexDigitsToLong(text, slash + 1, text.length());
            return hi << 32 | lo;
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("not an LSN: \"" + text + "\"", e);
        }
    }
}
