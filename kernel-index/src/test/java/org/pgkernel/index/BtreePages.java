package org.pgkernel.index;

import java.util.ArrayList;
import java.util.List;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;

/** Pages and tuples made by hand, and what a reader sees on them. */
final class BtreePages {
    /** A leaf item as a reader sees it: its key and its heap tids. */
    record Item(long key, List<Long> tids) {}

    private BtreePages() {}

    static UnsafeBuffer buffer() {
        return new UnsafeBuffer(new byte[Page.SIZE]);
    }

    /** An empty leaf with a right sibling. */
    static UnsafeBuffer leaf() {
        UnsafeBuffer page = buffer();
        BtreePage.init(page);
        BtreePage.setPrev(page, 7);
        BtreePage.setNext(page, 9);
        BtreePage.setFlags(page, BtreePage.LEAF | BtreePage.HAS_GARBAGE);
        BtreePage.setCycleId(page, 3);
        return page;
    }

    /** Forms a plain tuple of 16 bytes in {@code to} at 0. */
    static int plain(UnsafeBuffer to, long key, long tid) {
        to.setMemory(0, 16, (byte) 0);
        setTid(to, 0, tid);
        IndexTuple.setInfo(to, 0, 16);
        to.putLong(8, key);
        return 16;
    }

    /** Forms a posting list tuple. */
    static int posting(UnsafeBuffer to, long key, List<Long> tids) {
        UnsafeBuffer base = buffer();
        plain(base, key, tids.get(0));
        UnsafeBuffer list = buffer();
        for (int i = 0; i < tids.size(); i++) {
            setTid(list, i * 6, tids.get(i));
        }
        return BtreeTuple.formPosting(to, base, 0, list, tids.size());
    }

    static int form(UnsafeBuffer to, Item item) {
        return item.tids.size() == 1
                ? plain(to, item.key, item.tids.get(0))
                : posting(to, item.key, item.tids);
    }

    static boolean add(UnsafeBuffer page, Item item) {
        UnsafeBuffer tuple = buffer();
        int length = form(tuple, item);
        int offset = Page.maxOffsetNumber(page) + 1;
        return PageItems.addItem(page, tuple, 0, length, offset, false, false) == offset;
    }

    /** A pivot as high key. */
    static void addHighKey(UnsafeBuffer page, long key) {
        UnsafeBuffer tuple = buffer();
        plain(tuple, key, 1);
        IndexTuple.setInfo(tuple, 0, 16 | IndexTuple.ALT_TID);
        PageItems.addItem(page, tuple, 0, 16, 1, false, false);
    }

    /** A tid is packed as block * 65536 + offset number. */
    static void setTid(UnsafeBuffer to, int at, long tid) {
        to.putShort(at, (short) (tid >>> 32));
        to.putShort(at + 2, (short) (tid >>> 16));
        to.putShort(at + 4, (short) tid);
    }

    static long tid(DirectBuffer from, int at) {
        return (long) (from.getShort(at) & 0xFFFF) << 32
                | (long) (from.getShort(at + 2) & 0xFFFF) << 16
                | from.getShort(at + 4) & 0xFFFF;
    }

    static Item read(DirectBuffer from, int at) {
        List<Long> tids = new ArrayList<>();
        if (BtreeTuple.isPosting(from, at)) {
            int list = at + BtreeTuple.postingOffset(from, at);
            for (int i = 0; i < BtreeTuple.postingCount(from, at); i++) {
                tids.add(tid(from, list + i * 6));
            }
        } else {
            tids.add(tid(from, at));
        }
        return new Item(from.getLong(at + 8), tids);
    }

    /** The items from line pointer {@code first} on. */
    static List<Item> items(DirectBuffer page, int first) {
        List<Item> items = new ArrayList<>();
        for (int i = first; i <= Page.maxOffsetNumber(page); i++) {
            items.add(read(page, Page.lpOffset(BtreePage.checkedItemId(page, i))));
        }
        return items;
    }
}
