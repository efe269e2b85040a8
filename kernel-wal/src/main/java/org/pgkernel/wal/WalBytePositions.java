package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.LONG_SIZE;
import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;
import static org.pgkernel.wal.WalPageHeader.SHORT_SIZE;

/**
 * Usable byte positions: the WAL counted without its page headers, so that a reservation is one
 * addition wherever the pages' borders are.
 *
 * <p>A position at a page's border has two LSNs: a record that begins there begins behind the
 * header, a record that ends there ends before it. (PostgreSQL: XLogBytePosToRecPtr,
 * XLogBytePosToEndRecPtr, XLogRecPtrToBytePos, xlog.c.)
 */
final class WalBytePositions {
    private static final int USABLE_FIRST = PAGE_SIZE - LONG_SIZE;
    private static final int USABLE = PAGE_SIZE - SHORT_SIZE;

    final int segmentSize;
    private final long usableInSegment;

    /**
     * 2^64 / {@link #usableInSegment}, rounded down: a division costs as much as a record's copy.
     */
    private final long reciprocal;

    WalBytePositions(int segmentSize) {
        this.segmentSize = segmentSize;
        usableInSegment = USABLE_FIRST + (long) (segmentSize / PAGE_SIZE - 1) * USABLE;
        reciprocal = Long.divideUnsigned(-1, usableInSegment);
    }

    /** Position of an LSN; one inside a page header counts as the header's end. */
    long of(long lsn) {
        int offset = WalSegmentName.offsetIn(lsn, segmentSize);
        int page = offset / PAGE_SIZE;
        int inPage = offset % PAGE_SIZE;
        long before = WalSegmentName.segmentOf(lsn, segmentSize) * usableInSegment;
        return page == 0
                ? before + Math.max(0, inPage - LONG_SIZE)
                : before
                        + USABLE_FIRST
                        + (long) (page - 1) * USABLE
                        + Math.max(0, inPage - SHORT_SIZE);
    }

    /** LSN of a record that begins at the position. */
    long startLsn(long position) {
        // Before it is rounded down, the product is too small by less than one, as position < 2^63.
        long segment = Math.multiplyHigh(position, reciprocal);
        long left = position - segment * usableInSegment;
        if (left >= usableInSegment) {
            segment++;
            left -= usableInSegment;
        }
        long start = WalSegmentName.startOf(segment, segmentSize);
        if (left < USABLE_FIRST) {
            return start + left + LONG_SIZE;
        }
        left -= USABLE_FIRST;
        return start + (left / USABLE + 1) * PAGE_SIZE + left % USABLE + SHORT_SIZE;
    }

    /** LSN of the end of a record that ends at the position. */
    long endLsn(long position) {
        long lsn = startLsn(position);
        long page = lsn & -PAGE_SIZE;
        return lsn - page == WalPageHeader.sizeAt(page, segmentSize) ? page : lsn;
    }
}
