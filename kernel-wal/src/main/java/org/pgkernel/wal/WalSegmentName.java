package org.pgkernel.wal;

import java.util.HexFormat;

/**
 * A segment file's name: 24 upper-case hexadecimal digits, eight each for the timeline, the upper
 * and the lower part of the segment number; how the number splits depends on the segment size.
 * (PostgreSQL: XLogFileName, XLogFromFileName, xlog_internal.h.)
 *
 * @param timeline unsigned id
 * @param segment segment number: LSN divided by the segment size
 */
public record WalSegmentName(int timeline, long segment) {
    private static final int LENGTH = 24;
    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    /** The segment that holds the byte at {@code lsn}. */
    public static long segmentOf(long lsn, int segmentSize) {
        return lsn >>> shift(segmentSize);
    }

    /** The segment's first position. */
    public static long startOf(long segment, int segmentSize) {
        return segment << shift(segmentSize);
    }

    /** Offset of {@code lsn} in its segment. */
    public static int offsetIn(long lsn, int segmentSize) {
        return (int) lsn & segmentSize - 1;
    }

    public String fileName(int segmentSize) {
        int low = 32 - shift(segmentSize);
        return HEX.toHexDigits(timeline)
                + HEX.toHexDigits((int) (segment >>> low))
                + HEX.toHexDigits((int) (segment & (1L << low) - 1));
    }

    public static String fileName(int timeline, long segment, int segmentSize) {
        return new WalSegmentName(timeline, segment).fileName(segmentSize);
    }

    /** True for 24 upper-case hexadecimal digits. (PostgreSQL: IsXLogFileName.) */
    public static boolean isSegmentName(String name) {
        if (name.length() != LENGTH) {
            return false;
        }
        for (int i = 0; i < LENGTH; i++) {
            char c = name.charAt(i);
            if (!(c >= '0' && c <= '9' || c >= 'A' && c <= 'F')) {
                return false;
            }
        }
        return true;
    }

    /**
     * Reads a name, or null when it is none, or when its lower part is too large for the segment
     * size.
     */
    public static WalSegmentName parse(String name, int segmentSize) {
        if (!isSegmentName(name)) {
            return null;
        }
        int low = 32 - shift(segmentSize);
        long lower = HexFormat.fromHexDigitsToLong(name, 16, 24);
        if (lower >= 1L << low) {
            return null;
        }
        return new WalSegmentName(
                HexFormat.fromHexDigits(name, 0, 8),
                HexFormat.fromHexDigitsToLong(name, 8, 16) << low | lower);
    }

    /** True for a power of two from 1 MiB to 1 GiB. (PostgreSQL: IsValidWalSegSize.) */
    public static boolean isValidSegmentSize(int segmentSize) {
        return Integer.bitCount(segmentSize) == 1
                && segmentSize >= 1 << 20
                && segmentSize <= 1 << 30;
    }

    private static int shift(int segmentSize) {
        assert Integer.bitCount(segmentSize) == 1 && segmentSize >= WalPageHeader.PAGE_SIZE
                : "segment size " + segmentSize;
        return Integer.numberOfTrailingZeros(segmentSize);
    }
}
