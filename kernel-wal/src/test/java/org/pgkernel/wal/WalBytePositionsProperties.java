package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

class WalBytePositionsProperties {
    /** Counting usable bytes one by one gives the same LSNs. */
    @Property(tries = 200)
    void positionsAreTheUsableBytesCounted(
            @ForAll @LongRange(min = 0, max = 1L << 62) long anywhere,
            @ForAll @IntRange(min = 13, max = 30) int segmentBits) {
        WalBytePositions positions = new WalBytePositions(1 << segmentBits);
        long page = anywhere & -WalPageHeader.PAGE_SIZE;
        long position = positions.of(page);
        int usable = WalPageHeader.PAGE_SIZE - WalPageHeader.sizeAt(page, 1 << segmentBits);
        assertEquals(position + usable, positions.of(page + WalPageHeader.PAGE_SIZE));
        assertEquals(page, positions.endLsn(position));
        assertEquals(page + WalPageHeader.PAGE_SIZE - usable, positions.startLsn(position));
        for (int at = 8; at < usable; at += 8) {
            long lsn = page + WalPageHeader.PAGE_SIZE - usable + at;
            assertEquals(position + at, positions.of(lsn));
            assertEquals(lsn, positions.startLsn(position + at));
            assertEquals(lsn, positions.endLsn(position + at));
        }
    }

    @Property(tries = 200)
    void startsAreNeverInAPageHeader(
            @ForAll @LongRange(min = 0, max = 1L << 59) long eighth,
            @ForAll @IntRange(min = 13, max = 30) int segmentBits) {
        WalBytePositions positions = new WalBytePositions(1 << segmentBits);
        long lsn = positions.startLsn(8 * eighth);
        assertTrue(
                lsn % WalPageHeader.PAGE_SIZE
                        >= WalPageHeader.sizeAt(lsn & -WalPageHeader.PAGE_SIZE, 1 << segmentBits));
        assertEquals(8 * eighth, positions.of(lsn));
        assertEquals(8 * eighth, positions.of(positions.endLsn(8 * eighth)));
    }

    /** The division by multiplication is exact on both sides of every segment's border. */
    @Property(tries = 2000)
    void aSegmentsBorderIsBetweenTwoPositions(
            @ForAll @LongRange(min = 1, max = 1L << 62) long anywhere,
            @ForAll @IntRange(min = 13, max = 30) int segmentBits) {
        WalBytePositions positions = new WalBytePositions(1 << segmentBits);
        long border = (anywhere >>> segmentBits) + 1 << segmentBits;
        long position = positions.of(border);
        assertEquals(border - 8, positions.startLsn(position - 8));
        assertEquals(border + WalPageHeader.LONG_SIZE, positions.startLsn(position));
        assertEquals(border + WalPageHeader.LONG_SIZE + 8, positions.startLsn(position + 8));
        assertEquals(border, positions.endLsn(position));
    }
}
