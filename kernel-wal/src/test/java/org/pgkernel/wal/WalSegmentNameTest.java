package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class WalSegmentNameTest {
    @Example
    void namesAreThoseOfPostgres() {
        assertEquals("000000010000000000000001", WalSegmentName.fileName(1, 1, 16 << 20));
        assertEquals("0000000A00000002000000FF", WalSegmentName.fileName(10, 0x2FF, 16 << 20));
        assertEquals("000000010000000200000FFF", WalSegmentName.fileName(1, 0x2FFF, 1 << 20));
        assertEquals("000000010000000200000003", WalSegmentName.fileName(1, 11, 1 << 30));
        assertEquals(0x2FF, WalSegmentName.segmentOf(0x2_FF123456L, 16 << 20));
        assertEquals(0x2_FF000000L, WalSegmentName.startOf(0x2FF, 16 << 20));
        assertEquals(0x123456, WalSegmentName.offsetIn(0x2_FF123456L, 16 << 20));
    }

    @Property
    void everyNameIsReadBack(
            @ForAll int timeline,
            @ForAll long lsn,
            @ForAll @IntRange(min = 20, max = 30) int shift) {
        int size = 1 << shift;
        assertTrue(WalSegmentName.isValidSegmentSize(size));
        WalSegmentName name = new WalSegmentName(timeline, WalSegmentName.segmentOf(lsn, size));
        assertEquals(name, WalSegmentName.parse(name.fileName(size), size));
    }

    @Example
    void otherNamesAreNone() {
        for (String name :
                new String[] {
                    "",
                    "000000010000000000000001.partial",
                    "00000001000000000000000g",
                    "00000001000000000000000a",
                    "00000002.history",
                    "000000010000000000000100",
                    "00000001000000000000FFFF"
                }) {
            assertNull(WalSegmentName.parse(name, 16 << 20), name);
        }
        assertFalse(WalSegmentName.isValidSegmentSize(1 << 19));
        assertFalse(WalSegmentName.isValidSegmentSize(3 << 20));
    }
}
