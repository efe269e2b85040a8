package org.pgkernel.index;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;

/**
 * A B-tree page: items in key order, the high key first unless the page is the rightmost of its
 * level, and 16 bytes of special space.
 *
 * <pre>
 *   8176 btpo_prev    4  left sibling, 0 for none
 *   8180 btpo_next    4  right sibling, 0 for none
 *   8184 btpo_level   4  0 on leaves
 *   8188 btpo_flags   2
 *   8190 btpo_cycleid 2  the VACUUM that ran when the page was split last
 *
 *   deleted page: 24 safexid 8 instead of items, pd_lower 32
 *
 *   metapage (block 0), pd_lower 72
 *   24 btm_magic 4     28 btm_version 4     32 btm_root 4     36 btm_level 4
 *   40 btm_fastroot 4  44 btm_fastlevel 4   48 btm_last_cleanup_num_delpages 4
 *   56 btm_last_cleanup_num_heap_tuples 8 (a double)          64 btm_allequalimage 1
 * </pre>
 *
 * (PostgreSQL: nbtree.h, _bt_pageinit.)
 */
final class BtreePage {
    static final int SPECIAL_SIZE = 16;
    static final int SPECIAL = Page.SIZE - SPECIAL_SIZE;

    static final int LEAF = 1;
    static final int ROOT = 1 << 1;
    static final int DELETED = 1 << 2;
    static final int META = 1 << 3;
    static final int HALF_DEAD = 1 << 4;
    static final int SPLIT_END = 1 << 5;
    static final int HAS_GARBAGE = 1 << 6;
    static final int INCOMPLETE_SPLIT = 1 << 7;
    static final int HAS_FULLXID = 1 << 8;

    /** No sibling: block 0 is the metapage. */
    static final int NONE = 0;

    static final int HIGH_KEY = 1;

    /**
     * Bytes of the largest item, three of which must fit on a page. (PostgreSQL: BTMaxItemSize.)
     */
    static final int MAX_ITEM_SIZE = 2704;

    static final int META_MAGIC = 0x053162;
    static final int META_LOWER = 72;
    private static final int META_AT = Page.HEADER_SIZE;

    private static final int PREV = SPECIAL;
    private static final int NEXT = SPECIAL + 4;
    private static final int LEVEL = SPECIAL + 8;
    private static final int FLAGS = SPECIAL + 12;
    private static final int CYCLE_ID = SPECIAL + 14;

    private BtreePage() {}

    static void init(MutableDirectBuffer page) {
        Page.init(page, SPECIAL_SIZE);
    }

    /** Throws unless the header is sane and the special space is a B-tree's. */
    static void check(DirectBuffer page) {
        PageItems.checkPointers(page, true);
        if (Page.special(page) != SPECIAL) {
            throw new DamagedDataException("the page's special space is not a B-tree's");
        }
    }

    static int prev(DirectBuffer page) {
        return page.getInt(PREV);
    }

    static void setPrev(MutableDirectBuffer page, int block) {
        page.putInt(PREV, block);
    }

    static int next(DirectBuffer page) {
        return page.getInt(NEXT);
    }

    static void setNext(MutableDirectBuffer page, int block) {
        page.putInt(NEXT, block);
    }

    static int level(DirectBuffer page) {
        return page.getInt(LEVEL);
    }

    static void setLevel(MutableDirectBuffer page, int level) {
        page.putInt(LEVEL, level);
    }

    static int flags(DirectBuffer page) {
        return page.getShort(FLAGS) & 0xFFFF;
    }

    static void setFlags(MutableDirectBuffer page, int flags) {
        page.putShort(FLAGS, (short) flags);
    }

    static void clearFlag(MutableDirectBuffer page, int flag) {
        setFlags(page, flags(page) & ~flag);
    }

    static int cycleId(DirectBuffer page) {
        return page.getShort(CYCLE_ID) & 0xFFFF;
    }

    static void setCycleId(MutableDirectBuffer page, int cycleId) {
        page.putShort(CYCLE_ID, (short) cycleId);
    }

    static boolean isRightmost(DirectBuffer page) {
        return next(page) == NONE;
    }

    /** Line pointer of the first item that is no high key. (PostgreSQL: P_FIRSTDATAKEY.) */
    static int firstDataKey(DirectBuffer page) {
        return isRightmost(page) ? HIGH_KEY : HIGH_KEY + 1;
    }

    /** The item id, after checking that its item is an index tuple inside the page. */
    static int checkedItemId(DirectBuffer page, int offsetNumber) {
        if (offsetNumber < 1 || offsetNumber > Page.maxOffsetNumber(page)) {
            throw new DamagedDataException("there is no item " + offsetNumber + " on the page");
        }
        int itemId = Page.itemId(page, offsetNumber);
        int at = Page.lpOffset(itemId);
        int length = Page.lpLength(itemId);
        if (at < Page.upper(page)
                || length < IndexTuple.HEADER_SIZE
                || at + length > SPECIAL
                || IndexTuple.size(page, at) < IndexTuple.HEADER_SIZE
                || at + Page.maxAlign(IndexTuple.size(page, at)) > SPECIAL) {
            throw new DamagedDataException("item " + offsetNumber + " is not inside the page");
        }
        return itemId;
    }

    /**
     * Empties the page but for the special space: the state in which a copy of a page is rebuilt.
     * (PostgreSQL: PageGetTempPageCopySpecial.)
     */
    static void initLike(MutableDirectBuffer copy, DirectBuffer page) {
        init(copy);
        copy.putBytes(SPECIAL, page, SPECIAL, SPECIAL_SIZE);
    }

    /** Marks a freshly formatted page deleted. (PostgreSQL: BTPageSetDeleted.) */
    static void setDeleted(MutableDirectBuffer page, long safeXid) {
        setFlags(page, flags(page) & ~HALF_DEAD | DELETED | HAS_FULLXID);
        Page.setLower(page, Page.HEADER_SIZE + Long.BYTES);
        Page.setUpper(page, SPECIAL);
        page.putLong(Page.HEADER_SIZE, safeXid);
    }

    /**
     * Formats the metapage.
     *
     * @param data version 4, root 4, level 4, fast root 4, fast level 4, deleted pages at the last
     *     cleanup 4, allequalimage 1 (28 bytes with padding). (PostgreSQL: xl_btree_metadata,
     *     _bt_restore_meta.)
     */
    static void formMeta(MutableDirectBuffer page, DirectBuffer data) {
        init(page);
        page.putInt(META_AT, META_MAGIC);
        page.putBytes(META_AT + 4, data, 0, 24);
        page.putDouble(META_AT + 32, -1.0);
        page.putByte(META_AT + 40, data.getByte(24));
        setFlags(page, META);
        Page.setLower(page, META_LOWER);
    }
}
