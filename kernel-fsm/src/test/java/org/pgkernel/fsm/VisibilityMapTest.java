package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;

final class VisibilityMapTest {
    private final UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);

    @Test
    void everyHeapBlockHasTwoBitsOfItsOwn() {
        Set<Integer> seen = new HashSet<>();
        for (int block = 0; block < 32672; block++) {
            assertEquals(0, VisibilityMap.mapBlock(block));
            int bit = VisibilityMap.byteOffset(block) * 8 + VisibilityMap.bitOffset(block);
            assertTrue(bit >= 24 * 8 && bit + 1 < 8192 * 8);
            assertTrue(seen.add(bit) && seen.add(bit + 1));
        }
        assertEquals(1, VisibilityMap.mapBlock(32672));
        assertEquals(24, VisibilityMap.byteOffset(32672));
        assertEquals((int) (4294967294L / 32672), VisibilityMap.mapBlock(0xFFFFFFFE));
    }

    @Test
    void settingStampsTheLsnOnlyWhenABitChanges() {
        Page.init(page, 0);
        assertTrue(VisibilityMap.set(page, 5, VisibilityMap.ALL_VISIBLE, 0x1_0000_0001L));
        assertEquals(0b0000_0100, page.getByte(25));
        assertEquals(0x1_0000_0001L, Page.lsn(page));
        assertFalse(VisibilityMap.set(page, 5, VisibilityMap.ALL_VISIBLE, 0x2_0000_0002L));
        assertEquals(0x1_0000_0001L, Page.lsn(page));
        assertTrue(VisibilityMap.set(page, 5, VisibilityMap.VALID_BITS, 0x2_0000_0002L));
        assertEquals(0b0000_1100, page.getByte(25));
        assertEquals(0x2_0000_0002L, Page.lsn(page));
        assertTrue(VisibilityMap.set(page, 7, VisibilityMap.VALID_BITS, 3));
        assertEquals((byte) 0b1100_1100, page.getByte(25));
    }
}
