package org.pgkernel.testkit;

import java.util.ArrayList;
import java.util.List;
import org.agrona.DirectBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;

/**
 * Words for two pages that ought to be equal: one short reason, and a dump for whoever hunts the
 * difference.
 */
final class PageExplanation {
    private static final int INFOMASK = 20;
    private static final int HINT_BITS = 0x0F00;
    private static final int MAX_RANGES = 24;

    private PageExplanation() {}

    /**
     * Which part of the page the first differing byte lies in, and whether hint bits explain
     * everything.
     */
    static String reason(DirectBuffer left, DirectBuffer right, int length) {
        if (length < Page.SIZE) {
            return "bytes differ";
        }
        if (isZero(left, length)) {
            return "all zero on the left only";
        }
        if (isZero(right, length)) {
            return "all zero on the right only";
        }
        StringBuilder fields = new StringBuilder();
        append(fields, "pd_lsn", Page.lsn(left) != Page.lsn(right));
        append(fields, "pd_checksum", Page.checksum(left) != Page.checksum(right));
        append(fields, "pd_flags", Page.flags(left) != Page.flags(right));
        append(fields, "pd_lower", Page.lower(left) != Page.lower(right));
        append(fields, "pd_upper", Page.upper(left) != Page.upper(right));
        append(fields, "pd_special", Page.special(left) != Page.special(right));
        append(fields, "pd_prune_xid", Page.pruneXid(left) != Page.pruneXid(right));
        int differing = 0;
        int hints = 0;
        String firstPlace = null;
        for (int at = Page.HEADER_SIZE; at < length; at++) {
            int change = (left.getByte(at) ^ right.getByte(at)) & 0xFF;
            if (change != 0) {
                differing++;
                hints += isHintBit(left, at, change) ? 1 : 0;
                if (firstPlace == null) {
                    firstPlace = place(left, at);
                }
            }
        }
        if (differing > 0) {
            append(
                    fields,
                    hints == differing ? "hint bits" : differing + " bytes from " + firstPlace,
                    true);
        }
        return fields.toString();
    }

    /** Headers, then the differing byte ranges in hexadecimal with the item that each lies in. */
    static String dump(DirectBuffer left, DirectBuffer right, int length) {
        StringBuilder text = new StringBuilder();
        if (length >= Page.SIZE) {
            text.append("  left  ")
                    .append(header(left))
                    .append("\n  right ")
                    .append(header(right))
                    .append('\n');
        }
        List<int[]> ranges = ranges(left, right, length);
        for (int[] range : ranges.subList(0, Math.min(MAX_RANGES, ranges.size()))) {
            int from = range[0];
            int to = range[1];
            text.append("  ")
                    .append(from)
                    .append("..")
                    .append(to - 1)
                    .append(' ')
                    .append(length >= Page.SIZE ? place(left, from) : "")
                    .append('\n');
            text.append("    left  ").append(hex(left, from, Math.min(to, from + 64))).append('\n');
            text.append("    right ")
                    .append(hex(right, from, Math.min(to, from + 64)))
                    .append('\n');
        }
        if (ranges.size() > MAX_RANGES) {
            text.append("  … ").append(ranges.size() - MAX_RANGES).append(" more ranges\n");
        }
        return text.toString();
    }

    /** Every line pointer with its tuple's bytes. */
    static String items(DirectBuffer page) {
        StringBuilder text = new StringBuilder(header(page)).append('\n');
        int count = itemCount(page);
        for (int number = 1; number <= count; number++) {
            int item = Page.itemId(page, number);
            text.append(
                    String.format(
                            "  %3d %s offset=%d length=%d",
                            number, flags(item), Page.lpOffset(item), Page.lpLength(item)));
            int end = Page.lpOffset(item) + Page.lpLength(item);
            if (Page.lpHasStorage(item) && end <= Page.SIZE) {
                text.append(' ')
                        .append(
                                hex(
                                        page,
                                        Page.lpOffset(item),
                                        Math.min(end, Page.lpOffset(item) + 64)));
            }
            text.append('\n');
        }
        if (Page.special(page) < Page.SIZE && Page.special(page) >= Page.HEADER_SIZE) {
            text.append("  special ")
                    .append(
                            hex(
                                    page,
                                    Page.special(page),
                                    Math.min(Page.SIZE, Page.special(page) + 64)))
                    .append('\n');
        }
        return text.toString();
    }

    private static String header(DirectBuffer page) {
        return String.format(
                "lsn=%s checksum=%04X flags=%04X lower=%d upper=%d special=%d prune_xid=%s items=%d",
                Lsn.format(Page.lsn(page)),
                Page.checksum(page),
                Page.flags(page),
                Page.lower(page),
                Page.upper(page),
                Page.special(page),
                Integer.toUnsignedString(Page.pruneXid(page)),
                itemCount(page));
    }

    private static String place(DirectBuffer page, int offset) {
        if (offset < Page.HEADER_SIZE) {
            return "page header byte " + offset;
        }
        if (offset < Page.lower(page) && Page.lower(page) <= Page.SIZE) {
            return "line pointer " + ((offset - Page.HEADER_SIZE) / Page.ITEM_ID_SIZE + 1);
        }
        int number = itemAt(page, offset);
        if (number > 0) {
            return "item "
                    + number
                    + " byte "
                    + (offset - Page.lpOffset(Page.itemId(page, number)));
        }
        if (offset >= Page.special(page)) {
            return "special space byte " + (offset - Page.special(page));
        }
        return offset < Page.upper(page) ? "hole at " + offset : "no item, at " + offset;
    }

    private static boolean isHintBit(DirectBuffer page, int offset, int change) {
        int number = itemAt(page, offset);
        if (number == 0 || Page.special(page) != Page.SIZE) {
            return false;
        }
        int inTuple = offset - Page.lpOffset(Page.itemId(page, number));
        return inTuple == INFOMASK + 1 && (change & ~(HINT_BITS >>> 8)) == 0;
    }

    private static int itemAt(DirectBuffer page, int offset) {
        int count = itemCount(page);
        for (int number = 1; number <= count; number++) {
            int item = Page.itemId(page, number);
            if (Page.lpHasStorage(item)
                    && offset >= Page.lpOffset(item)
                    && offset < Page.lpOffset(item) + Page.lpLength(item)) {
                return number;
            }
        }
        return 0;
    }

    private static int itemCount(DirectBuffer page) {
        return Page.lower(page) > Page.SIZE ? 0 : Page.maxOffsetNumber(page);
    }

    private static String flags(int item) {
        return switch (Page.lpFlags(item)) {
            case Page.LP_UNUSED -> "unused  ";
            case Page.LP_NORMAL -> "normal  ";
            case Page.LP_REDIRECT -> "redirect";
            default -> "dead    ";
        };
    }

    /** Differing ranges; ranges fewer than 8 bytes apart count as one. */
    private static List<int[]> ranges(DirectBuffer left, DirectBuffer right, int length) {
        List<int[]> ranges = new ArrayList<>();
        for (int at = 0; at < length; at++) {
            if (left.getByte(at) != right.getByte(at)) {
                if (!ranges.isEmpty() && at - ranges.getLast()[1] < 8) {
                    ranges.getLast()[1] = at + 1;
                } else {
                    ranges.add(new int[] {at, at + 1});
                }
            }
        }
        return ranges;
    }

    private static boolean isZero(DirectBuffer page, int length) {
        for (int at = 0; at < length; at++) {
            if (page.getByte(at) != 0) {
                return false;
            }
        }
        return true;
    }

    private static String hex(DirectBuffer page, int from, int to) {
        StringBuilder text = new StringBuilder();
        for (int at = from; at < to; at++) {
            text.append(String.format(at == from ? "%02x" : " %02x", page.getByte(at)));
        }
        return text.toString();
    }

    private static void append(StringBuilder text, String field, boolean differs) {
        if (differs) {
            text.append(text.isEmpty() ? "" : ", ").append(field);
        }
    }
}
