package org.pgkernel.base;

import static org.pgkernel.base.Page.HEADER_SIZE;
import static org.pgkernel.base.Page.ITEM_ID_SIZE;
import static org.pgkernel.base.Page.PD_HAS_FREE_LINES;
import static org.pgkernel.base.Page.SIZE;
import static org.pgkernel.base.Page.maxAlign;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Adding, removing and compacting the items of a page.
 *
 * <p>After any of these calls <em>every</em> byte of the page is what PostgreSQL 15 would have
 * left, the stale bytes between {@code pd_lower} and {@code pd_upper} included: redo is judged by
 * whole pages. So nothing here zeroes freed space, and {@link #compactify} moves tuples in the same
 * runs and through the same kind of copy as PostgreSQL does.
 *
 * <p>The caller holds the page's exclusive (where it removes heap items: cleanup) lock. A page or
 * line pointer that contradicts itself is a {@link DamagedDataException} <em>without</em> the
 * place, which only the caller knows; nothing was moved by then. Instances own scratch memory and
 * are not thread-safe; nothing allocates but the constructor. (PostgreSQL: bufpage.c.)
 */
public final class PageItems {
    /** No line pointer. (PostgreSQL: InvalidOffsetNumber.) */
    public static final int INVALID_OFFSET_NUMBER = 0;

    public static final int FIRST_OFFSET_NUMBER = 1;

    /** Most line pointers of a heap page. (PostgreSQL: MaxHeapTuplesPerPage, htup_details.h.) */
    public static final int MAX_HEAP_TUPLES_PER_PAGE = 291;

    /** Most line pointers that the bytes of a page can hold, whatever they say. */
    public static final int MAX_LINE_POINTERS = (SIZE - HEADER_SIZE) / ITEM_ID_SIZE;

    private static final int LP_OFFSET_MASK = 0x7FFF;

    private final int[] lineIndex = new int[MAX_LINE_POINTERS];
    private final int[] itemOffset = new int[MAX_LINE_POINTERS];
    private final int[] alignedLength = new int[MAX_LINE_POINTERS];
    private final int[] keptItemIds = new int[MAX_LINE_POINTERS];
    private final UnsafeBuffer scratch = new UnsafeBuffer(new byte[SIZE]);
    private int itemCount;
    private int totalLength;
    private int lastOffset;
    private boolean presorted;

    /**
     * Puts an item on the page below the others and points a line pointer at it.
     *
     * @param offset of the item's first byte in {@code item}
     * @param length bytes
     * @param offsetNumber the line pointer to use, or {@link #INVALID_OFFSET_NUMBER} for the first
     *     free one
     * @param overwrite an unused line pointer {@code offsetNumber} is taken over; else later ones
     *     shift up by one
     * @param heap no more than {@link #MAX_HEAP_TUPLES_PER_PAGE} line pointers
     * @return the line pointer used, or {@link #INVALID_OFFSET_NUMBER} when the item does not fit
     *     or {@code offsetNumber} is taken or lies past the first free one; the page's items are
     *     then as before. (PostgreSQL: PageAddItemExtended.)
     */
    public static int addItem(
            MutableDirectBuffer page,
            DirectBuffer item,
            int offset,
            int length,
            int offsetNumber,
            boolean overwrite,
            boolean heap) {
        checkPointers(page, false);
        int limit = Page.maxOffsetNumber(page) + 1;
        boolean shuffle = false;
        int at = offsetNumber;
        if (at == INVALID_OFFSET_NUMBER) {
            at = firstFree(page, limit);
        } else if (at < limit) {
            if (!overwrite) {
                shuffle = true;
            } else if (usedOrStored(Page.itemId(page, at))) {
                return INVALID_OFFSET_NUMBER;
            }
        }
        if (at < 0 || at > limit || heap && at > MAX_HEAP_TUPLES_PER_PAGE) {
            return INVALID_OFFSET_NUMBER;
        }
        int oldLower = Page.lower(page);
        int lower = at == limit || shuffle ? oldLower + ITEM_ID_SIZE : oldLower;
        if (length < 0 || length > SIZE) {
            return INVALID_OFFSET_NUMBER;
        }
        int upper = Page.upper(page) - maxAlign(length);
        if (lower > upper) {
            return INVALID_OFFSET_NUMBER;
        }
        if (shuffle) {
            int from = Page.itemIdOffset(at);
            page.putBytes(from + ITEM_ID_SIZE, page, from, (limit - at) * ITEM_ID_SIZE);
        }
        Page.setItemId(page, at, Page.packItemId(upper, Page.LP_NORMAL, length));
        page.putBytes(upper, item, offset, length);
        Page.setLower(page, lower);
        Page.setUpper(page, upper);
        return at;
    }

    /**
     * The first unused line pointer if the page's hint promises one, else {@code limit}; a wrong
     * hint is cleared.
     */
    private static int firstFree(MutableDirectBuffer page, int limit) {
        if ((Page.flags(page) & PD_HAS_FREE_LINES) == 0) {
            return limit;
        }
        for (int i = FIRST_OFFSET_NUMBER; i < limit; i++) {
            if (!usedOrStored(Page.itemId(page, i))) {
                return i;
            }
        }
        Page.setFlags(page, Page.flags(page) & ~PD_HAS_FREE_LINES);
        return limit;
    }

    /**
     * Squeezes the gaps out of a heap page after pruning, drops unused line pointers at the end and
     * sets or clears the hint on free ones. (PostgreSQL: PageRepairFragmentation.)
     */
    public void repairFragmentation(MutableDirectBuffer page) {
        checkPointers(page, true);
        int special = Page.special(page);
        int lower = Page.lower(page);
        int lines = Page.maxOffsetNumber(page);
        int unused = 0;
        int finalUsed = INVALID_OFFSET_NUMBER;
        beginItems(special);
        for (int i = FIRST_OFFSET_NUMBER; i <= lines; i++) {
            int itemId = Page.itemId(page, i);
            if (!Page.lpIsUsed(itemId)) {
                unused++;
                continue;
            }
            finalUsed = i;
            if (Page.lpLength(itemId) != 0) {
                checkItem(page, itemId);
                collect(i - 1, itemId);
            }
        }
        checkTotal(special - lower);
        for (int i = FIRST_OFFSET_NUMBER; unused > 0 && i <= lines; i++) {
            if (!Page.lpIsUsed(Page.itemId(page, i))) {
                Page.setItemId(page, i, 0);
            }
        }
        if (itemCount == 0) {
            Page.setUpper(page, special);
        } else {
            compactify(page);
        }
        if (finalUsed != lines) {
            int cut = lines - finalUsed;
            unused -= cut;
            Page.setLower(page, lower - cut * ITEM_ID_SIZE);
        }
        hintFreeLines(page, unused > 0);
    }

    /**
     * Drops unused line pointers at the end of a heap page's array but leaves at least one, and
     * sets or clears the hint on free ones. (PostgreSQL: PageTruncateLinePointerArray.)
     */
    public static void truncateLinePointerArray(MutableDirectBuffer page) {
        checkPointers(page, false);
        int last = Page.maxOffsetNumber(page);
        while (last > FIRST_OFFSET_NUMBER && !Page.lpIsUsed(Page.itemId(page, last))) {
            last--;
        }
        int cut = Page.maxOffsetNumber(page) - last;
        boolean free = false;
        for (int i = last; i >= FIRST_OFFSET_NUMBER && !free; i--) {
            free = !Page.lpIsUsed(Page.itemId(page, i));
        }
        if (cut > 0) {
            Page.setLower(page, Page.lower(page) - cut * ITEM_ID_SIZE);
        }
        hintFreeLines(page, free);
    }

    /** Removes an index item and its line pointer. (PostgreSQL: PageIndexTupleDelete.) */
    public static void indexTupleDelete(MutableDirectBuffer page, int offsetNumber) {
        int itemId = checkedIndexItem(page, offsetNumber);
        int lines = Page.maxOffsetNumber(page);
        int offset = Page.lpOffset(itemId);
        int size = maxAlign(Page.lpLength(itemId));
        int tail = (lines - offsetNumber) * ITEM_ID_SIZE;
        if (tail > 0) {
            int to = Page.itemIdOffset(offsetNumber);
            page.putBytes(to, page, to + ITEM_ID_SIZE, tail);
        }
        Page.setLower(page, Page.lower(page) - ITEM_ID_SIZE);
        closeGap(page, offset, size);
        shiftLinePointers(page, lines - 1, offset, size, false);
    }

    /**
     * Removes an index item; its line pointer becomes unused, or goes if it is the last, so that
     * other items keep their numbers. (PostgreSQL: PageIndexTupleDeleteNoCompact.)
     */
    public static void indexTupleDeleteNoCompact(MutableDirectBuffer page, int offsetNumber) {
        int itemId = checkedIndexItem(page, offsetNumber);
        int lines = Page.maxOffsetNumber(page);
        int offset = Page.lpOffset(itemId);
        int size = maxAlign(Page.lpLength(itemId));
        if (offsetNumber < lines) {
            Page.setItemId(page, offsetNumber, 0);
        } else {
            Page.setLower(page, Page.lower(page) - ITEM_ID_SIZE);
            lines--;
        }
        closeGap(page, offset, size);
        shiftLinePointers(page, lines, offset, size, true);
    }

    /**
     * Replaces an index item in its place, moving the items below it up or down when the size
     * changes.
     *
     * @return false, and nothing changed, when the new item does not fit. (PostgreSQL:
     *     PageIndexTupleOverwrite.)
     */
    public static boolean indexTupleOverwrite(
            MutableDirectBuffer page, int offsetNumber, DirectBuffer item, int from, int length) {
        int itemId = checkedIndexItem(page, offsetNumber);
        int offset = Page.lpOffset(itemId);
        int oldSize = maxAlign(Page.lpLength(itemId));
        int newSize = maxAlign(length);
        if (newSize > oldSize + (Page.upper(page) - Page.lower(page))) {
            return false;
        }
        int shrink = oldSize - newSize;
        if (shrink != 0) {
            int upper = Page.upper(page);
            page.putBytes(upper + shrink, page, upper, offset - upper);
            Page.setUpper(page, upper + shrink);
            shiftLinePointers(page, Page.maxOffsetNumber(page), offset, shrink, true);
        }
        Page.setItemId(
                page, offsetNumber, Page.packItemId(offset + shrink, Page.lpFlags(itemId), length));
        page.putBytes(offset + shrink, item, from, length);
        return true;
    }

    /**
     * Removes several index items and their line pointers.
     *
     * @param offsetNumbers ascending
     * @throws DamagedDataException also when a number is out of range or out of order. (PostgreSQL:
     *     PageIndexMultiDelete.)
     */
    public void indexMultiDelete(MutableDirectBuffer page, int[] offsetNumbers, int count) {
        if (count <= 2) {
            for (int i = count - 1; i >= 0; i--) {
                indexTupleDelete(page, offsetNumbers[i]);
            }
            return;
        }
        checkPointers(page, true);
        int special = Page.special(page);
        int lines = Page.maxOffsetNumber(page);
        int next = 0;
        beginItems(special);
        for (int i = FIRST_OFFSET_NUMBER; i <= lines; i++) {
            int itemId = Page.itemId(page, i);
            checkAlignedItem(page, itemId);
            if (next < count && i == offsetNumbers[next]) {
                next++;
            } else {
                keptItemIds[itemCount] = itemId;
                collect(itemCount, itemId);
            }
        }
        if (next != count) {
            throw new DamagedDataException("incorrect index offsets supplied");
        }
        checkTotal(special - Page.lower(page));
        for (int i = 0; i < itemCount; i++) {
            Page.setItemId(page, i + 1, keptItemIds[i]);
        }
        Page.setLower(page, HEADER_SIZE + itemCount * ITEM_ID_SIZE);
        if (itemCount > 0) {
            compactify(page);
        } else {
            Page.setUpper(page, special);
        }
    }

    /**
     * Free bytes between the line pointers and the items, less one line pointer; 0 when there is
     * none or when a heap page has all the line pointers it may have. (PostgreSQL:
     * PageGetHeapFreeSpace.)
     */
    public static int heapFreeSpace(DirectBuffer page) {
        int space = Page.freeSpace(page);
        if (space > 0) {
            int lines = Page.maxOffsetNumber(page);
            if (lines >= MAX_HEAP_TUPLES_PER_PAGE) {
                if ((Page.flags(page) & PD_HAS_FREE_LINES) == 0) {
                    return 0;
                }
                for (int i = FIRST_OFFSET_NUMBER; i <= Math.min(lines, MAX_LINE_POINTERS); i++) {
                    if (!Page.lpIsUsed(Page.itemId(page, i))) {
                        return space;
                    }
                }
                return 0;
            }
        }
        return space;
    }

    /**
     * Throws unless {@code 24 <= lower <= upper <= special <= 8192}.
     *
     * @param aligned {@code pd_special} must be a multiple of 8 too
     */
    public static void checkPointers(DirectBuffer page, boolean aligned) {
        int lower = Page.lower(page);
        int upper = Page.upper(page);
        int special = Page.special(page);
        if (lower < HEADER_SIZE
                || lower > upper
                || upper > special
                || special > SIZE
                || aligned && special != maxAlign(special)) {
            throw new DamagedDataException(
                    "corrupted page pointers: lower = "
                            + lower
                            + ", upper = "
                            + upper
                            + ", special = "
                            + special);
        }
    }

    private static boolean usedOrStored(int itemId) {
        return Page.lpIsUsed(itemId) || Page.lpLength(itemId) != 0;
    }

    private static void hintFreeLines(MutableDirectBuffer page, boolean free) {
        int flags = Page.flags(page);
        Page.setFlags(page, free ? flags | PD_HAS_FREE_LINES : flags & ~PD_HAS_FREE_LINES);
    }

    private static int checkedIndexItem(DirectBuffer page, int offsetNumber) {
        checkPointers(page, true);
        if (offsetNumber <= 0 || offsetNumber > Page.maxOffsetNumber(page)) {
            throw new DamagedDataException("invalid index offnum: " + offsetNumber);
        }
        int itemId = Page.itemId(page, offsetNumber);
        checkAlignedItem(page, itemId);
        return itemId;
    }

    /**
     * PostgreSQL checks the start of a heap item only; its end, rounded up, must lie on the page
     * too or the copy would leave it.
     */
    private static void checkItem(DirectBuffer page, int itemId) {
        int offset = Page.lpOffset(itemId);
        if (offset < Page.upper(page)
                || offset >= Page.special(page)
                || offset + maxAlign(Page.lpLength(itemId)) > Page.special(page)) {
            throw damagedLinePointer(itemId);
        }
    }

    private static void checkAlignedItem(DirectBuffer page, int itemId) {
        int offset = Page.lpOffset(itemId);
        if (offset < Page.upper(page)
                || offset + Page.lpLength(itemId) > Page.special(page)
                || offset != maxAlign(offset)) {
            throw damagedLinePointer(itemId);
        }
    }

    private static DamagedDataException damagedLinePointer(int itemId) {
        return new DamagedDataException(
                "corrupted line pointer: offset = "
                        + Page.lpOffset(itemId)
                        + ", size = "
                        + Page.lpLength(itemId));
    }

    /** Moves the items below a removed one up over it. */
    private static void closeGap(MutableDirectBuffer page, int offset, int size) {
        int upper = Page.upper(page);
        if (offset > upper) {
            page.putBytes(upper + size, page, upper, offset - upper);
        }
        Page.setUpper(page, upper + size);
    }

    private static void shiftLinePointers(
            MutableDirectBuffer page, int lines, int offset, int by, boolean onlyWithStorage) {
        for (int i = FIRST_OFFSET_NUMBER; i <= lines; i++) {
            int itemId = Page.itemId(page, i);
            if (Page.lpOffset(itemId) <= offset
                    && (!onlyWithStorage || Page.lpLength(itemId) != 0)) {
                Page.setItemId(page, i, withOffset(itemId, Page.lpOffset(itemId) + by));
            }
        }
    }

    private static int withOffset(int itemId, int offset) {
        return itemId & ~LP_OFFSET_MASK | offset & LP_OFFSET_MASK;
    }

    private void beginItems(int special) {
        itemCount = 0;
        totalLength = 0;
        lastOffset = special;
        presorted = true;
    }

    private void collect(int index, int itemId) {
        int offset = Page.lpOffset(itemId);
        if (lastOffset > offset) {
            lastOffset = offset;
        } else {
            presorted = false;
        }
        lineIndex[itemCount] = index;
        itemOffset[itemCount] = offset;
        alignedLength[itemCount] = maxAlign(Page.lpLength(itemId));
        totalLength += alignedLength[itemCount];
        itemCount++;
    }

    private void checkTotal(int available) {
        if (totalLength > available) {
            throw new DamagedDataException(
                    "corrupted item lengths: total "
                            + totalLength
                            + ", available space "
                            + available);
        }
    }

    /**
     * Moves the collected items, in the order of their line pointers, up against the special space.
     *
     * <p>When a higher line pointer always means a lower offset ({@link #presorted}), moving runs
     * of adjacent items within the page, first run first, can overwrite only what has moved
     * already. Otherwise the items are copied out first and back from there: one by one when more
     * than three quarters of the line pointers hold nothing, else the whole range. Items already in
     * place at the top are skipped but in the one-by-one case. (PostgreSQL: compactify_tuples.)
     */
    private void compactify(MutableDirectBuffer page) {
        int upper = Page.special(page);
        int first = 0;
        DirectBuffer source = page;
        if (!presorted && itemCount < Page.maxOffsetNumber(page) / 4) {
            for (int i = 0; i < itemCount; i++) {
                scratch.putBytes(itemOffset[i], page, itemOffset[i], alignedLength[i]);
            }
            source = scratch;
        } else {
            while (first < itemCount && upper == itemOffset[first] + alignedLength[first]) {
                upper -= alignedLength[first];
                first++;
            }
            if (!presorted) {
                int from = Page.upper(page);
                scratch.putBytes(from, page, from, upper - from);
                source = scratch;
            }
        }
        moveRuns(page, source, first, upper);
    }

    private void moveRuns(MutableDirectBuffer page, DirectBuffer source, int first, int top) {
        int upper = top;
        int start = Math.min(first, itemCount - 1);
        int tail = itemOffset[start] + alignedLength[start];
        int head = tail;
        for (int i = first; i < itemCount; i++) {
            int end = itemOffset[i] + alignedLength[i];
            if (head != end) {
                page.putBytes(upper, source, head, tail - head);
                tail = end;
            }
            upper -= alignedLength[i];
            head = itemOffset[i];
            int line = lineIndex[i] + 1;
            Page.setItemId(page, line, withOffset(Page.itemId(page, line), upper));
        }
        page.putBytes(upper, source, head, tail - head);
        Page.setUpper(page, upper);
    }
}
