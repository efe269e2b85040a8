package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;

/**
 * Masks what redo does not promise to restore, in both of two pages. (PostgreSQL: heap_mask,
 * heapam.c; bufmask.c.)
 */
final class PageMask {
    /** Hints, and who uses a combo command id. PostgreSQL masks all that tells of transactions. */
    private static final int HINTS =
            HeapTupleHeader.HEAP_XMIN_COMMITTED
                    | HeapTupleHeader.HEAP_XMIN_INVALID
                    | HeapTupleHeader.HEAP_XMAX_COMMITTED
                    | HeapTupleHeader.HEAP_XMAX_INVALID
                    | HeapTupleHeader.HEAP_COMBOCID;

    private PageMask() {}

    /** LSNs stay: of two pages that nobody gave an LSN by a hint they must be equal. */
    static void heap(UnsafeBuffer... pages) {
        for (UnsafeBuffer page : pages) {
            if (Page.isNew(page) || Page.maxOffsetNumber(page) == 0 && Page.lsn(page) == 0) {
                // Formatted by its owner, who used another one: a page of zeros in redo.
                page.setMemory(0, Page.SIZE, (byte) 0);
                continue;
            }
            page.putShort(Page.PD_CHECKSUM, (short) 0);
            Page.setPruneXid(page, 0);
            Page.setFlags(
                    page,
                    Page.flags(page)
                            & ~(Page.PD_PAGE_FULL | Page.PD_HAS_FREE_LINES | Page.PD_ALL_VISIBLE));
            page.setMemory(Page.lower(page), Page.upper(page) - Page.lower(page), (byte) 0);
            for (int i = PageItems.FIRST_OFFSET_NUMBER; i <= Page.maxOffsetNumber(page); i++) {
                tuple(page, Page.itemId(page, i));
            }
        }
    }

    private static void tuple(UnsafeBuffer page, int itemId) {
        int at = Page.lpOffset(itemId);
        if (Page.lpIsNormal(itemId)) {
            int infomask = HeapTupleHeader.infomask(page, at);
            HeapTupleHeader.setInfomask(
                    page,
                    at,
                    TupleVisibility.isXminFrozen(infomask)
                            ? infomask
                                    & ~(HeapTupleHeader.HEAP_XMAX_INVALID
                                            | HeapTupleHeader.HEAP_XMAX_COMMITTED)
                            : infomask & ~HINTS);
            page.putInt(at + HeapTupleHeader.T_CID, 0);
        }
        int length = Page.lpLength(itemId);
        if (length > 0) {
            page.setMemory(at + length, Page.maxAlign(length) - length, (byte) 0);
        }
    }

    /** The bits must be equal; a clear bit changes no LSN. */
    static void map(UnsafeBuffer... pages) {
        for (UnsafeBuffer page : pages) {
            page.setMemory(0, Page.HEADER_SIZE, (byte) 0);
        }
    }

    static String difference(UnsafeBuffer a, UnsafeBuffer b) {
        for (int i = 0; i < Page.SIZE; i++) {
            if (a.getByte(i) != b.getByte(i)) {
                return "byte "
                        + i
                        + " is "
                        + (a.getByte(i) & 0xFF)
                        + ", after redo "
                        + (b.getByte(i) & 0xFF)
                        + "; lower "
                        + Page.lower(a)
                        + " and "
                        + Page.lower(b)
                        + ", upper "
                        + Page.upper(a)
                        + " and "
                        + Page.upper(b);
            }
        }
        return "none";
    }
}
