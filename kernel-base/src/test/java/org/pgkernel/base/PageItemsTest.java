package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.error.DamagedDataException;

final class PageItemsTest {
    private final byte[] bytes = new byte[Page.SIZE];
    private final UnsafeBuffer page = new UnsafeBuffer(bytes);
    private final PageItems items = new PageItems();

    private int add(int fill, int length) {
        byte[] item = new byte[length];
        Arrays.fill(item, (byte) fill);
        return PageItems.addItem(page, new UnsafeBuffer(item), 0, length, 0, false, true);
    }

    private byte[] range(int from, int to) {
        return Arrays.copyOfRange(bytes, from, to);
    }

    private static byte[] filled(int fill, int length) {
        byte[] b = new byte[length];
        Arrays.fill(b, (byte) fill);
        return b;
    }

    @Test
    void itemsGrowDownwardAlignedAndPaddingIsNotTouched() {
        Page.init(page, 0);
        Arrays.fill(bytes, 8100, 8192, (byte) 0x55);
        assertEquals(1, add(1, 13));
        assertEquals(2, add(2, 16));
        assertEquals(8176, Page.lpOffset(Page.itemId(page, 1)));
        assertEquals(13, Page.lpLength(Page.itemId(page, 1)));
        assertEquals(8160, Page.lpOffset(Page.itemId(page, 2)));
        assertEquals(32, Page.lower(page));
        assertEquals(8160, Page.upper(page));
        assertArrayEquals(filled(1, 13), range(8176, 8189));
        assertArrayEquals(filled(0x55, 3), range(8189, 8192), "padding keeps what was there");
        assertArrayEquals(filled(2, 16), range(8160, 8176));
    }

    @Test
    void repairOfAPresortedPageLeavesTheOldBytesInTheHole() {
        Page.init(page, 0);
        for (int i = 1; i <= 4; i++) {
            add(i, 16);
        }
        Page.setItemId(page, 2, 0);
        items.repairFragmentation(page);
        assertEquals(8192 - 48, Page.upper(page));
        assertArrayEquals(filled(1, 16), range(8176, 8192));
        assertArrayEquals(filled(3, 16), range(8160, 8176));
        assertArrayEquals(filled(4, 16), range(8144, 8160));
        assertArrayEquals(filled(4, 16), range(8128, 8144), "freed space keeps its stale bytes");
        assertTrue((Page.flags(page) & Page.PD_HAS_FREE_LINES) != 0);
    }

    @Test
    void repairOfAnUnsortedPageReordersItemsByLinePointer() {
        Page.init(page, 0);
        for (int i = 1; i <= 4; i++) {
            add(i, 16);
        }
        int third = Page.itemId(page, 3);
        Page.setItemId(page, 3, Page.itemId(page, 2));
        Page.setItemId(page, 2, third);
        Page.setItemId(page, 4, 0);
        items.repairFragmentation(page);
        assertArrayEquals(filled(1, 16), range(8176, 8192));
        assertArrayEquals(filled(3, 16), range(8160, 8176));
        assertArrayEquals(filled(2, 16), range(8144, 8160));
        assertArrayEquals(filled(4, 16), range(8128, 8144));
        assertEquals(3, Page.maxOffsetNumber(page), "unused line pointers at the end go");
        assertEquals(0, Page.flags(page) & Page.PD_HAS_FREE_LINES);
    }

    @Test
    void repairOfAPageWithoutItemsResetsUpperOnly() {
        Page.init(page, 0);
        add(7, 40);
        add(8, 40);
        Page.setItemId(page, 1, Page.packItemId(0, Page.LP_DEAD, 0));
        Page.setItemId(page, 2, 0);
        items.repairFragmentation(page);
        assertEquals(8192, Page.upper(page));
        assertEquals(28, Page.lower(page));
        assertArrayEquals(filled(8, 40), range(8112, 8152));
        assertArrayEquals(new byte[4], range(28, 32));
    }

    @Test
    void truncationOfLinePointersLeavesOne() {
        Page.init(page, 0);
        add(1, 24);
        add(2, 24);
        add(3, 24);
        for (int i = 1; i <= 3; i++) {
            Page.setItemId(page, i, 0);
        }
        PageItems.truncateLinePointerArray(page);
        assertEquals(1, Page.maxOffsetNumber(page));
        assertTrue((Page.flags(page) & Page.PD_HAS_FREE_LINES) != 0);
    }

    @Test
    void truncationClearsTheHintWhenNoFreeLinePointerIsLeft() {
        Page.init(page, 0);
        add(1, 24);
        add(2, 24);
        Page.setItemId(page, 2, 0);
        Page.setFlags(page, Page.PD_HAS_FREE_LINES);
        PageItems.truncateLinePointerArray(page);
        assertEquals(1, Page.maxOffsetNumber(page));
        assertEquals(0, Page.flags(page));
    }

    @Test
    void aWrongHintIsClearedAndARightOneUsed() {
        Page.init(page, 0);
        add(1, 24);
        Page.setFlags(page, Page.PD_HAS_FREE_LINES);
        assertEquals(2, add(2, 24));
        assertEquals(0, Page.flags(page));
        Page.setItemId(page, 1, 0);
        assertEquals(3, add(3, 24), "without the hint nobody looks");
        Page.setFlags(page, Page.PD_HAS_FREE_LINES);
        assertEquals(1, add(4, 24));
    }

    @Test
    void usedLinePointersAreNotOverwrittenAndGapsAreRefused() {
        Page.init(page, 0);
        add(1, 24);
        UnsafeBuffer item = new UnsafeBuffer(new byte[24]);
        assertEquals(0, PageItems.addItem(page, item, 0, 24, 1, true, true));
        assertEquals(0, PageItems.addItem(page, item, 0, 24, 3, true, true));
        assertEquals(0, PageItems.addItem(page, item, 0, 24, 0xFFFF, true, true));
        assertEquals(0, PageItems.addItem(page, item, 0, 9000, 2, true, true));
        assertEquals(2, PageItems.addItem(page, item, 0, 24, 2, true, true));
    }

    @Test
    void aHeapPageHoldsAtMost291LinePointers() {
        Page.init(page, 0);
        for (int i = 1; i <= 291; i++) {
            assertEquals(i, PageItems.addItem(page, page, 0, 0, 0, false, true));
        }
        assertEquals(0, PageItems.addItem(page, page, 0, 0, 0, false, true));
        assertEquals(292, PageItems.addItem(page, page, 0, 0, 0, false, false));
        assertEquals(0, PageItems.heapFreeSpace(page));
    }

    @Test
    void anItemThatDoesNotFitChangesNothing() {
        Page.init(page, 16);
        assertEquals(1, add(1, 8000));
        byte[] before = bytes.clone();
        assertEquals(0, add(2, 200));
        assertArrayEquals(before, bytes);
    }

    @Test
    void overwriteKeepsFlagsAndMovesLowerItems() {
        Page.init(page, 16);
        add(1, 16);
        add(2, 16);
        add(3, 16);
        Page.setItemId(page, 2, Page.packItemId(8144, Page.LP_DEAD, 16));
        assertTrue(PageItems.indexTupleOverwrite(page, 2, new UnsafeBuffer(filled(9, 32)), 0, 30));
        assertEquals(Page.packItemId(8128, Page.LP_DEAD, 30), Page.itemId(page, 2));
        assertArrayEquals(filled(9, 30), range(8128, 8158));
        assertArrayEquals(filled(3, 16), range(8112, 8128));
        assertEquals(8112, Page.upper(page));
        assertFalse(
                PageItems.indexTupleOverwrite(page, 2, new UnsafeBuffer(new byte[8192]), 0, 8192));
    }

    @Test
    void damagedPagesAreRefusedUntouched() {
        Page.init(page, 0);
        for (int i = 1; i <= 5; i++) {
            add(i, 16);
        }
        byte[] good = bytes.clone();
        int[] badItemIds = {
            Page.packItemId(100, Page.LP_NORMAL, 16),
            Page.packItemId(8184, Page.LP_NORMAL, 16),
            Page.packItemId(8192, Page.LP_NORMAL, 8),
            Page.packItemId(0x7FFF, Page.LP_NORMAL, 0x7FFF),
        };
        for (int bad : badItemIds) {
            Page.setItemId(page, 3, bad);
            byte[] damaged = bytes.clone();
            assertThrows(DamagedDataException.class, () -> items.repairFragmentation(page));
            assertThrows(DamagedDataException.class, () -> PageItems.indexTupleDelete(page, 3));
            assertThrows(
                    DamagedDataException.class, () -> PageItems.indexTupleDeleteNoCompact(page, 3));
            assertThrows(
                    DamagedDataException.class,
                    () -> items.indexMultiDelete(page, new int[] {1, 2, 4}, 3));
            assertArrayEquals(damaged, bytes);
        }
        System.arraycopy(good, 0, bytes, 0, bytes.length);
        assertThrows(
                DamagedDataException.class,
                () -> items.indexMultiDelete(page, new int[] {2, 1, 3}, 3));
        assertThrows(DamagedDataException.class, () -> PageItems.indexTupleDelete(page, 6));
        assertThrows(DamagedDataException.class, () -> PageItems.indexTupleDelete(page, 0));
        assertArrayEquals(good, bytes);
        Page.setLower(page, 9000);
        assertThrows(DamagedDataException.class, () -> add(1, 8));
        assertThrows(DamagedDataException.class, () -> items.repairFragmentation(page));
    }
}
