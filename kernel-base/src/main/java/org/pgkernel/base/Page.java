package org.pgkernel.base;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The formatted bytes of a block, 8192 of them, little-endian. Every accessor takes a buffer that
 * begins at the page's first byte.
 *
 * <pre>
 *   0 pd_lsn      8  (upper half first, then lower half, each little-endian)
 *   8 pd_checksum 2
 *  10 pd_flags    2
 *  12 pd_lower    2  end of the item ids
 *  14 pd_upper    2  start of the tuples
 *  16 pd_special  2  start of the special space
 *  18 pd_pagesize_version 2   8192 | 4
 *  20 pd_prune_xid 4
 *  24 item ids, 4 bytes each, growing upward; tuples grow downward from pd_special
 * </pre>
 *
 * An item id packs, from the low bit: offset 15, flags 2, length 15. Offsets of item ids (line
 * pointers) count from 1. (PostgreSQL: bufpage.h, itemid.h, bufpage.c.)
 */
public final class Page {
    public static final int SIZE = 8192;
    public static final int HEADER_SIZE = 24;
    public static final int LAYOUT_VERSION = 4;
    public static final int ITEM_ID_SIZE = 4;

    public static final int PD_LSN = 0;
    public static final int PD_CHECKSUM = 8;
    public static final int PD_FLAGS = 10;
    public static final int PD_LOWER = 12;
    public static final int PD_UPPER = 14;
    public static final int PD_SPECIAL = 16;
    public static final int PD_PAGESIZE_VERSION = 18;
    public static final int PD_PRUNE_XID = 20;

    public static final int PD_HAS_FREE_LINES = 0x0001;
    public static final int PD_PAGE_FULL = 0x0002;
    public static final int PD_ALL_VISIBLE = 0x0004;
    public static final int PD_VALID_FLAG_BITS = 0x0007;

    public static final int LP_UNUSED = 0;
    public static final int LP_NORMAL = 1;
    public static final int LP_REDIRECT = 2;
    public static final int LP_DEAD = 3;

    private Page() {}

    public static int maxAlign(int length) {
        return length + 7 & ~7;
    }

    public static long lsn(DirectBuffer page) {
        return (long) page.getInt(PD_LSN) << 32 | page.getInt(PD_LSN + 4) & 0xFFFFFFFFL;
    }

    public static void setLsn(MutableDirectBuffer page, long lsn) {
        page.putInt(PD_LSN, (int) (lsn >>> 32));
        page.putInt(PD_LSN + 4, (int) lsn);
    }

    public static int checksum(DirectBuffer page) {
        return page.getShort(PD_CHECKSUM) & 0xFFFF;
    }

    public static void setChecksum(MutableDirectBuffer page, int checksum) {
        page.putShort(PD_CHECKSUM, (short) checksum);
    }

    public static int flags(DirectBuffer page) {
        return page.getShort(PD_FLAGS) & 0xFFFF;
    }

    public static void setFlags(MutableDirectBuffer page, int flags) {
        page.putShort(PD_FLAGS, (short) flags);
    }

    public static boolean isAllVisible(DirectBuffer page) {
        return (flags(page) & PD_ALL_VISIBLE) != 0;
    }

    public static void setAllVisible(MutableDirectBuffer page) {
        setFlags(page, flags(page) | PD_ALL_VISIBLE);
    }

    public static void clearAllVisible(MutableDirectBuffer page) {
        setFlags(page, flags(page) & ~PD_ALL_VISIBLE);
    }

    public static int lower(DirectBuffer page) {
        return page.getShort(PD_LOWER) & 0xFFFF;
    }

    public static void setLower(MutableDirectBuffer page, int lower) {
        page.putShort(PD_LOWER, (short) lower);
    }

    public static int upper(DirectBuffer page) {
        return page.getShort(PD_UPPER) & 0xFFFF;
    }

    public static void setUpper(MutableDirectBuffer page, int upper) {
        page.putShort(PD_UPPER, (short) upper);
    }

    public static int special(DirectBuffer page) {
        return page.getShort(PD_SPECIAL) & 0xFFFF;
    }

    public static int pruneXid(DirectBuffer page) {
        return page.getInt(PD_PRUNE_XID);
    }

    public static void setPruneXid(MutableDirectBuffer page, int xid) {
        page.putInt(PD_PRUNE_XID, xid);
    }

    /** A page that was never formatted: {@code pd_upper} is zero. (PostgreSQL: PageIsNew.) */
    public static boolean isNew(DirectBuffer page) {
        return upper(page) == 0;
    }

    /**
     * Formats an empty page with a special space of {@code specialSize} bytes, rounded up to 8.
     * (PostgreSQL: PageInit.)
     */
    public static void init(MutableDirectBuffer page, int specialSize) {
        page.setMemory(0, SIZE, (byte) 0);
        int special = SIZE - maxAlign(specialSize);
        setLower(page, HEADER_SIZE);
        setUpper(page, special);
        page.putShort(PD_SPECIAL, (short) special);
        page.putShort(PD_PAGESIZE_VERSION, (short) (SIZE | LAYOUT_VERSION));
    }

    /** The highest line pointer, 0 when there is none. (PostgreSQL: PageGetMaxOffsetNumber.) */
    public static int maxOffsetNumber(DirectBuffer page) {
        int lower = lower(page);
        return lower <= HEADER_SIZE ? 0 : (lower - HEADER_SIZE) / ITEM_ID_SIZE;
    }

    public static int itemIdOffset(int offsetNumber) {
        return HEADER_SIZE + (offsetNumber - 1) * ITEM_ID_SIZE;
    }

    public static int itemId(DirectBuffer page, int offsetNumber) {
        return page.getInt(itemIdOffset(offsetNumber));
    }

    public static void setItemId(MutableDirectBuffer page, int offsetNumber, int itemId) {
        page.putInt(itemIdOffset(offsetNumber), itemId);
    }

    public static int packItemId(int offset, int flags, int length) {
        return offset & 0x7FFF | flags << 15 | length << 17;
    }

    public static int lpOffset(int itemId) {
        return itemId & 0x7FFF;
    }

    public static int lpFlags(int itemId) {
        return itemId >>> 15 & 3;
    }

    public static int lpLength(int itemId) {
        return itemId >>> 17;
    }

    public static boolean lpIsUsed(int itemId) {
        return lpFlags(itemId) != LP_UNUSED;
    }

    public static boolean lpIsNormal(int itemId) {
        return lpFlags(itemId) == LP_NORMAL;
    }

    public static boolean lpHasStorage(int itemId) {
        return lpLength(itemId) != 0;
    }

    /**
     * Bytes between the item ids and the tuples, never negative. (PostgreSQL:
     * PageGetExactFreeSpace.)
     */
    public static int exactFreeSpace(DirectBuffer page) {
        return Math.max(0, upper(page) - lower(page));
    }

    /** Room for one more tuple with its line pointer. (PostgreSQL: PageGetFreeSpace.) */
    public static int freeSpace(DirectBuffer page) {
        int space = upper(page) - lower(page);
        return space < ITEM_ID_SIZE ? 0 : space - ITEM_ID_SIZE;
    }
}
