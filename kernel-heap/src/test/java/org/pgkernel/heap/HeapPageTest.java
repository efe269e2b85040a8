package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;

/** Each record type's effect on a page, byte by byte. */
final class HeapPageTest {
    private static final int XID = 0x0102_0304;
    private static final int BLOCK = 0x000A_000B;
    private static final String CTID_BLOCK = "0a000b00";

    private final byte[] bytes = new byte[Page.SIZE];
    private final UnsafeBuffer page = new UnsafeBuffer(bytes);
    private final HeapPage pages = new HeapPage();

    @BeforeEach
    void emptyPage() {
        Page.init(page, 0);
    }

    /** A record part: {@code b1 s2 i4} fields in order. */
    private static UnsafeBuffer part(Object... fields) {
        ByteBuffer b = ByteBuffer.allocate(4096).order(ByteOrder.LITTLE_ENDIAN);
        for (Object field : fields) {
            switch (field) {
                case Byte v -> b.put(v);
                case Short v -> b.putShort(v);
                case Integer v -> b.putInt(v);
                case byte[] v -> b.put(v);
                default -> throw new IllegalArgumentException();
            }
        }
        return new UnsafeBuffer(Arrays.copyOf(b.array(), b.position()));
    }

    private static byte b(int v) {
        return (byte) v;
    }

    private static short s(int v) {
        return (short) v;
    }

    private static byte[] data(int length, int first) {
        byte[] d = new byte[length];
        for (int i = 0; i < length; i++) {
            d[i] = (byte) (first + i);
        }
        return d;
    }

    private void insert(int offnum, byte[] body) {
        insert(offnum, 0, 0x0802, body);
    }

    private void insert(int offnum, int flags, int infomask, byte[] body) {
        UnsafeBuffer block = part(s(2), s(infomask), b(24), body);
        pages.insert(page, part(s(offnum), b(flags)), block, block.capacity(), XID, BLOCK);
    }

    private String tuple(int offnum) {
        int itemId = Page.itemId(page, offnum);
        int at = Page.lpOffset(itemId);
        return HexFormat.of().formatHex(bytes, at, at + Page.lpLength(itemId));
    }

    @Test
    void insertBuildsTheHeaderFromTheRecord() {
        insert(1, 0, 0x0822, new byte[] {0, 0x11, 0x22});
        assertEquals(
                "04030201"
                        + "00000000"
                        + "00000000"
                        + CTID_BLOCK
                        + "0100"
                        + "0200"
                        + "0208"
                        + "18"
                        + "001122",
                tuple(1));
        assertEquals(Page.packItemId(8160, Page.LP_NORMAL, 26), Page.itemId(page, 1));
        assertEquals(0, Page.lsn(page), "the caller stamps the page");
    }

    @Test
    void insertFlagsSetAndClearAllVisible() {
        insert(1, HeapRecords.INSERT_ALL_FROZEN_SET, 0x0802, data(4, 0));
        assertTrue(Page.isAllVisible(page));
        insert(2, HeapRecords.INSERT_ALL_VISIBLE_CLEARED, 0x0802, data(4, 0));
        assertEquals(0, Page.flags(page));
    }

    @Test
    void deleteKeepsOtherBitsAndMarksThePagePrunable() {
        insert(1, 0, 0x0902 | HeapTupleHeader.HEAP_COMBOCID, data(4, 0));
        Page.setAllVisible(page);
        Page.setPruneXid(page, XID - 5);
        HeapPage.delete(
                page,
                part(
                        77,
                        s(1),
                        b(HeapRecords.KEYS_UPDATED),
                        b(HeapRecords.DELETE_ALL_VISIBLE_CLEARED)),
                XID,
                BLOCK);
        assertEquals(
                "04030201"
                        + "4d000000"
                        + "00000000"
                        + CTID_BLOCK
                        + "0100"
                        + "0220"
                        + "0201"
                        + "18"
                        + "00010203",
                tuple(1));
        assertEquals(XID - 5, Page.pruneXid(page), "the older id stays");
        assertEquals(0, Page.flags(page));
        HeapPage.delete(
                page,
                part(78, s(1), b(0), b(HeapRecords.DELETE_IS_PARTITION_MOVE)),
                XID - 9,
                BLOCK);
        assertEquals(XID - 9, Page.pruneXid(page));
        assertEquals("ffffffff" + "fdff", tuple(1).substring(24, 36));
    }

    @Test
    void superDeleteTakesXminAwayAndLeavesXmax() {
        insert(1, data(4, 0));
        HeapPage.delete(page, part(77, s(1), b(0), b(HeapRecords.DELETE_IS_SUPER)), XID, BLOCK);
        assertEquals("0000000000000000", tuple(1).substring(0, 16));
    }

    @Test
    void hotUpdateTakesPrefixAndSuffixFromTheOldVersion() {
        // body of the old tuple: one bitmap/padding byte, then 20 bytes of data
        insert(1, concat(new byte[] {0}, data(20, 0x40)));
        UnsafeBuffer main =
                part(
                        XID,
                        s(1),
                        b(0),
                        b(HeapRecords.UPDATE_PREFIX_FROM_OLD | HeapRecords.UPDATE_SUFFIX_FROM_OLD),
                        99,
                        s(2));
        UnsafeBuffer block =
                part(s(5), s(3), s(0x8002), s(0x2802), b(24), new byte[] {0x77, b(0xAA), b(0xBB)});
        pages.updateNew(page, main, block, block.capacity(), XID, BLOCK, true);
        HeapPage.updateOld(page, main, XID, BLOCK, true);
        assertEquals(
                "04030201"
                        + "63000000"
                        + "00000000"
                        + CTID_BLOCK
                        + "0200"
                        + "0280"
                        + "0228"
                        + "18"
                        + "77"
                        + "4041424344"
                        + "aabb"
                        + "515253",
                tuple(2));
        assertEquals(
                "04030201" + "04030201" + "00000000" + CTID_BLOCK + "0200" + "0240" + "0200" + "18",
                tuple(1).substring(0, 46));
        assertEquals(XID, Page.pruneXid(page));
    }

    @Test
    void suffixAloneTakesTheBodyInOnePiece() {
        insert(1, concat(new byte[] {0}, data(20, 0x40)));
        UnsafeBuffer main = part(XID, s(1), b(0), b(HeapRecords.UPDATE_SUFFIX_FROM_OLD), 0, s(2));
        UnsafeBuffer block = part(s(20), s(2), s(2), b(24), new byte[] {0x66});
        pages.updateNew(page, main, block, block.capacity(), XID, BLOCK, true);
        assertEquals("66" + HexFormat.of().formatHex(data(20, 0x40)), tuple(2).substring(46));
    }

    @Test
    void anUpdateThatDoesNotFitLeavesThePageAlone() {
        insert(1, data(4000, 0));
        insert(2, data(4000, 0));
        byte[] before = bytes.clone();
        UnsafeBuffer main = part(XID, s(1), b(0), b(0), 0, s(3));
        UnsafeBuffer block = part(s(2), s(2), b(24), data(200, 0));
        assertThrows(
                DamagedDataException.class,
                () -> pages.updateNew(page, main, block, block.capacity(), XID, BLOCK, true));
        assertArrayEquals(before, bytes);
    }

    @Test
    void aLockThatIsNoUpdateCutsTheForwardLink() {
        insert(1, data(4, 0));
        HeapPage.updateOld(page, part(XID, s(1), b(0), b(0), 0, s(7)), XID, BLOCK + 1, true);
        HeapPage.lock(
                page,
                part(55, s(1), b(HeapRecords.XMAX_LOCK_ONLY | HeapRecords.XMAX_EXCL_LOCK), b(0)),
                BLOCK);
        assertEquals(
                "04030201" + "37000000" + "00000000" + CTID_BLOCK + "0100" + "0200" + "c200" + "18",
                tuple(1).substring(0, 46));
    }

    @Test
    void aLockOfAnUpdatedTupleKeepsTheForwardLink() {
        insert(1, data(4, 0));
        HeapPage.updateOld(page, part(XID, s(1), b(0), b(0), 0, s(7)), XID, BLOCK, true);
        HeapPage.lock(
                page,
                part(56, s(1), b(HeapRecords.XMAX_IS_MULTI | HeapRecords.KEYS_UPDATED), b(0)),
                BLOCK);
        assertEquals(
                "04030201" + "38000000" + "00000000" + CTID_BLOCK + "0700" + "0260" + "0210" + "18",
                tuple(1).substring(0, 46));
    }

    @Test
    void lockUpdatedLeavesTheCommandId() {
        insert(1, 0, 0x0802, data(4, 0));
        int at = Page.lpOffset(Page.itemId(page, 1));
        page.putInt(at + HeapTupleHeader.T_CID, 9);
        HeapPage.lockUpdated(
                page,
                part(57, s(1), b(HeapRecords.XMAX_KEYSHR_LOCK | HeapRecords.XMAX_LOCK_ONLY), b(0)));
        assertEquals(
                "04030201" + "39000000" + "09000000" + CTID_BLOCK + "0100" + "0200" + "9200" + "18",
                tuple(1).substring(0, 46));
    }

    @Test
    void confirmPutsTheTuplesOwnPlaceInItsLink() {
        insert(1, data(4, 0));
        HeapTupleHeader.setCtid(page, Page.lpOffset(Page.itemId(page, 1)), 123, 0xFFFE);
        HeapPage.confirm(page, part(s(1)), BLOCK);
        assertEquals(CTID_BLOCK + "0100", tuple(1).substring(24, 36));
    }

    @Test
    void inplaceReplacesTheDataOnly() {
        insert(1, concat(new byte[] {0}, data(6, 0x10)));
        String header = tuple(1).substring(0, 48);
        UnsafeBuffer block = part(data(6, 0x50));
        HeapPage.inplace(page, part(s(1)), block, 6);
        assertEquals(header + HexFormat.of().formatHex(data(6, 0x50)), tuple(1));
        assertThrows(
                DamagedDataException.class, () -> HeapPage.inplace(page, part(s(1)), block, 5));
    }

    @Test
    void freezeWritesThePlan() {
        insert(1, data(4, 0));
        insert(2, data(4, 0));
        UnsafeBuffer block =
                part(
                        0,
                        s(2),
                        s(0x0002),
                        s(0x0B02),
                        b(0),
                        b(0),
                        44,
                        s(1),
                        s(0x0003),
                        s(0x0902),
                        b(HeapRecords.FREEZE_XVAC),
                        b(0));
        HeapPage.freeze(page, part(100, s(2)), block, block.capacity());
        assertEquals(
                "04030201" + "00000000" + "00000000" + CTID_BLOCK + "0200" + "0200" + "020b" + "18",
                tuple(2).substring(0, 46));
        assertEquals(
                "04030201" + "2c000000" + "02000000" + CTID_BLOCK + "0100" + "0300" + "0209" + "18",
                tuple(1).substring(0, 46));
    }

    @Test
    void pruneRedirectsKillsFreesAndCompacts() {
        for (int i = 1; i <= 5; i++) {
            insert(i, data(9, i * 16));
        }
        String third = tuple(3);
        String fifth = tuple(5);
        UnsafeBuffer block = part(s(1), s(3), s(2), s(4));
        pages.prune(page, part(0, s(1), s(1)), block, 8);
        assertEquals(Page.packItemId(3, Page.LP_REDIRECT, 0), Page.itemId(page, 1));
        assertEquals(Page.packItemId(0, Page.LP_DEAD, 0), Page.itemId(page, 2));
        assertEquals(0, Page.itemId(page, 4));
        assertEquals(third, tuple(3));
        assertEquals(fifth, tuple(5));
        assertEquals(8192 - 64, Page.upper(page));
        assertEquals(Page.PD_HAS_FREE_LINES, Page.flags(page));
    }

    @Test
    void vacuumFreesDeadLinePointersAndMovesNothing() {
        for (int i = 1; i <= 3; i++) {
            insert(i, data(9, i));
        }
        pages.prune(page, part(0, s(0), s(2)), part(s(2), s(3)), 4);
        int upper = Page.upper(page);
        HeapPage.vacuum(page, part(s(2)), part(s(2), s(3)), 4);
        assertEquals(1, Page.maxOffsetNumber(page));
        assertEquals(upper, Page.upper(page));
        assertEquals(0, Page.flags(page));
    }

    @Test
    void multiInsertAlignsEachTupleInTheRecord() {
        UnsafeBuffer block =
                part(
                        s(2),
                        s(1),
                        s(0x0801),
                        b(24),
                        new byte[] {0, 5},
                        b(0),
                        s(3),
                        s(1),
                        s(0x0801),
                        b(24),
                        new byte[] {0, 6, 7});
        pages.multiInsert(
                page, part(b(0), b(0), s(2)), 4, block, block.capacity(), XID, BLOCK, true);
        assertEquals(
                "04030201"
                        + "00000000"
                        + "00000000"
                        + CTID_BLOCK
                        + "0100"
                        + "0100"
                        + "0108"
                        + "18"
                        + "0005",
                tuple(1));
        assertEquals(
                "04030201"
                        + "00000000"
                        + "00000000"
                        + CTID_BLOCK
                        + "0200"
                        + "0100"
                        + "0108"
                        + "18"
                        + "000607",
                tuple(2));
        Page.setItemId(page, 1, 0);
        pages.multiInsert(
                page,
                part(b(0), b(0), s(2), s(1), s(3)),
                8,
                block,
                block.capacity(),
                XID,
                BLOCK,
                false);
        assertEquals("0005", tuple(1).substring(46));
        assertEquals("000607", tuple(3).substring(46));
    }

    @Test
    void aMultiInsertThatFailsHalfwayIsUndone() {
        insert(1, data(9, 1));
        byte[] before = bytes.clone();
        UnsafeBuffer block =
                part(
                        s(2),
                        s(1),
                        s(1),
                        b(24),
                        new byte[] {0, 5},
                        b(0),
                        s(300),
                        s(1),
                        s(1),
                        b(24),
                        new byte[] {0});
        assertThrows(
                DamagedDataException.class,
                () ->
                        pages.multiInsert(
                                page,
                                part(b(0), b(0), s(2), s(2), s(3)),
                                8,
                                block,
                                block.capacity(),
                                XID,
                                BLOCK,
                                false));
        assertEquals(Page.lower(page), 28);
        assertArrayEquals(Arrays.copyOf(before, 28), Arrays.copyOf(bytes, 28));
        assertEquals(Page.upper(new UnsafeBuffer(before)), Page.upper(page));
    }

    private static byte[] concat(byte[] a, byte[] b) {
        byte[] c = Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, c, a.length, b.length);
        return c;
    }
}
