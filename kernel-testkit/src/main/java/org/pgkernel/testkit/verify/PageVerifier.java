package org.pgkernel.testkit.verify;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;

/** One heap page, judged with what became of the transactions. */
final class PageVerifier {
    private static final int HEADER = 23;
    private static final int MOST_COLUMNS = 1664;

    private static final int HAS_NULL = 0x1;
    private static final int XMAX_EXCL_LOCK = 0x40;
    private static final int XMAX_LOCK_ONLY = 0x80;
    private static final int XMIN_COMMITTED = 0x100;
    private static final int XMIN_INVALID = 0x200;
    private static final int XMIN_FROZEN = 0x300;
    private static final int XMAX_COMMITTED = 0x400;
    private static final int XMAX_INVALID = 0x800;
    private static final int XMAX_IS_MULTI = 0x1000;
    private static final int LOCK_BITS = 0x50;

    private static final int COLUMNS = 0x7FF;
    private static final int HOT_UPDATED = 0x4000;
    private static final int HEAP_ONLY = 0x8000;

    private final UnsafeBuffer page;
    private final int block;
    private final TransactionFiles transactions;
    private final List<String> findings = new ArrayList<>();
    private final BitSet reached = new BitSet();
    private final BitSet sound = new BitSet();
    private int last;

    PageVerifier(UnsafeBuffer page, int block, TransactionFiles transactions) {
        this.page = page;
        this.block = block;
        this.transactions = transactions;
    }

    /** Findings, each with the place in the page in front. */
    List<String> findings() {
        return findings;
    }

    private boolean require(boolean holds, int offset, String what) {
        if (!holds) {
            findings.add(" offset " + offset + ": " + what);
        }
        return holds;
    }

    /**
     * @return rows that a new transaction would see
     */
    int verify() {
        if (!headerIsSound()) {
            return 0;
        }
        last = Page.maxOffsetNumber(page);
        BitSet taken = new BitSet();
        for (int offset = 1; offset <= last; offset++) {
            verifyItem(offset, taken);
        }
        int live = 0;
        for (int offset = 1; offset <= last; offset++) {
            verifyLinks(offset);
        }
        for (int offset = 1; offset <= last; offset++) {
            if (sound.get(offset) && isLive(at(offset))) {
                live++;
                if ((infomask2(at(offset)) & HEAP_ONLY) != 0) {
                    require(reached.get(offset), offset, "no chain leads to a live HOT tuple");
                }
            }
        }
        return live;
    }

    private boolean headerIsSound() {
        int lower = Page.lower(page);
        int upper = Page.upper(page);
        int special = Page.special(page);
        int version = page.getShort(Page.PD_PAGESIZE_VERSION) & 0xFFFF;
        return require(
                lower >= Page.HEADER_SIZE
                        && lower % Page.ITEM_ID_SIZE == 0
                        && lower <= upper
                        && upper <= special
                        && special == Page.SIZE
                        && version == (Page.SIZE | Page.LAYOUT_VERSION)
                        && (Page.flags(page) & ~Page.PD_VALID_FLAG_BITS) == 0,
                0,
                "page header lower " + lower + " upper " + upper + " special " + special);
    }

    private void verifyItem(int offset, BitSet taken) {
        int item = Page.itemId(page, offset);
        int at = Page.lpOffset(item);
        int length = Page.lpLength(item);
        switch (Page.lpFlags(item)) {
            case Page.LP_UNUSED, Page.LP_DEAD ->
                    require(length == 0, offset, "a line pointer without a tuple has a length");
            case Page.LP_REDIRECT -> {
                boolean inside = at >= 1 && at <= last && at != offset;
                if (require(inside, offset, "redirect to " + at)) {
                    require(
                            Page.lpIsNormal(Page.itemId(page, at)),
                            offset,
                            "redirect to " + at + ", where no tuple is");
                    require(!reached.get(at), offset, "a second redirect to " + at);
                    reached.set(at);
                }
            }
            default -> {
                boolean inside =
                        at % 8 == 0
                                && length >= HEADER
                                && at >= Page.upper(page)
                                && at + length <= Page.SIZE;
                if (require(inside, offset, "tuple at " + at + " length " + length)) {
                    int end = at + Page.maxAlign(length);
                    require(taken.get(at, end).isEmpty(), offset, "tuples overlap");
                    taken.set(at, end);
                    verifyTuple(offset, at, length);
                }
            }
        }
    }

    private void verifyTuple(int offset, int at, int length) {
        int infomask = infomask(at);
        int columns = infomask2(at) & COLUMNS;
        int hoff = page.getByte(at + 22) & 0xFF;
        int expected = Page.maxAlign(HEADER + ((infomask & HAS_NULL) != 0 ? (columns + 7) / 8 : 0));
        boolean shaped =
                require(
                        columns <= MOST_COLUMNS
                                && hoff == expected
                                && hoff <= Page.maxAlign(length),
                        offset,
                        "header of " + hoff + " bytes for " + columns + " columns");
        boolean known = verifyXmin(offset, at, infomask) & verifyXmax(offset, at, infomask);
        if (shaped && known) {
            sound.set(offset);
        }
    }

    private boolean verifyXmin(int offset, int at, int infomask) {
        int xmin = xmin(at);
        if (!require(
                TransactionId.isValid(xmin) && transactions.mayExist(xmin),
                offset,
                "xmin " + Integer.toUnsignedString(xmin) + " was not assigned yet")) {
            return false;
        }
        switch (infomask & XMIN_FROZEN) {
            case XMIN_COMMITTED ->
                    require(
                            transactions.committed(xmin),
                            offset,
                            "hint says committed, pg_xact does not: xmin " + xmin);
            case XMIN_INVALID ->
                    require(
                            !transactions.committed(xmin),
                            offset,
                            "hint says aborted, pg_xact says committed: xmin " + xmin);
            default -> {
                // frozen, or no hint
            }
        }
        return true;
    }

    private boolean verifyXmax(int offset, int at, int infomask) {
        int xmax = xmax(at);
        if ((infomask & XMAX_IS_MULTI) != 0) {
            require((infomask & XMAX_COMMITTED) == 0, offset, "a multixact with a commit hint");
            return require(
                    (infomask & XMAX_INVALID) != 0 || transactions.multiMayExist(xmax),
                    offset,
                    "multixact " + Integer.toUnsignedString(xmax) + " was not made yet");
        }
        if (!require(
                transactions.mayExist(xmax),
                offset,
                "xmax " + Integer.toUnsignedString(xmax) + " was not assigned yet")) {
            return false;
        }
        if ((infomask & (XMAX_COMMITTED | XMAX_INVALID)) == XMAX_COMMITTED
                && !isLockOnly(infomask)) {
            require(
                    transactions.committed(xmax),
                    offset,
                    "hint says committed, pg_xact does not: xmax " + xmax);
        }
        return true;
    }

    private void verifyLinks(int offset) {
        if (!sound.get(offset)) {
            return;
        }
        int at = at(offset);
        int deleter = deleter(at);
        long linkBlock =
                (page.getShort(at + 12) & 0xFFFFL) << 16 | page.getShort(at + 14) & 0xFFFFL;
        int link = page.getShort(at + 16) & 0xFFFF;
        boolean hotUpdated =
                (infomask2(at) & HOT_UPDATED) != 0
                        && (infomask(at) & XMAX_INVALID) == 0
                        && (infomask(at) & XMIN_FROZEN) != XMIN_INVALID;
        if (!hotUpdated) {
            if (transactions.committed(deleter) && linkBlock == block && link != offset) {
                verifyPlainSuccessor(offset, link, deleter);
            }
            return;
        }
        if (!require(linkBlock == block && link != offset, offset, "HOT link leaves the page")) {
            return;
        }
        boolean committed = transactions.committed(deleter);
        boolean there = link >= 1 && link <= last && sound.get(link) && xmin(at(link)) == deleter;
        if (there) {
            require(
                    (infomask2(at(link)) & HEAP_ONLY) != 0,
                    offset,
                    "HOT link to " + link + ", which is no HOT tuple");
            reached.set(link);
        }
        require(there || !committed, offset, "HOT link to " + link + " leads to nothing of its");
    }

    /** The next version of an update that was not HOT is no HOT tuple. */
    private void verifyPlainSuccessor(int offset, int link, int deleter) {
        if (link >= 1 && link <= last && sound.get(link) && xmin(at(link)) == deleter) {
            require(
                    (infomask2(at(link)) & HEAP_ONLY) == 0,
                    offset,
                    "plain link to " + link + ", which is a HOT tuple");
        }
    }

    /** Why not all tuples are visible to everybody, null if they are. */
    String notVisible() {
        for (int offset = 1; offset <= last; offset++) {
            int item = Page.itemId(page, offset);
            if (Page.lpFlags(item) == Page.LP_DEAD) {
                return "offset " + offset + " is dead";
            }
            if (sound.get(offset) && !isLive(at(offset))) {
                return "offset " + offset + " is not visible";
            }
        }
        return null;
    }

    /** Why not all tuples are frozen, null if they are. */
    String notFrozen() {
        for (int offset = 1; offset <= last; offset++) {
            if (!sound.get(offset)) {
                continue;
            }
            int infomask = infomask(at(offset));
            boolean xminFrozen =
                    (infomask & XMIN_FROZEN) == XMIN_FROZEN
                            || !TransactionId.isNormal(xmin(at(offset)));
            boolean xmaxNone = (infomask & XMAX_INVALID) != 0 && xmax(at(offset)) == 0;
            if (!xminFrozen || !xmaxNone) {
                return "offset " + offset + " is not frozen";
            }
        }
        return null;
    }

    private boolean isLive(int at) {
        boolean inserted =
                (infomask(at) & XMIN_FROZEN) == XMIN_FROZEN || transactions.committed(xmin(at));
        return inserted && !transactions.committed(deleter(at));
    }

    /** Who updated or deleted the tuple, or tried to; invalid for nobody. */
    private int deleter(int at) {
        int infomask = infomask(at);
        if ((infomask & XMAX_INVALID) != 0 || isLockOnly(infomask)) {
            return TransactionId.INVALID;
        }
        return (infomask & XMAX_IS_MULTI) != 0 ? transactions.updater(xmax(at)) : xmax(at);
    }

    private static boolean isLockOnly(int infomask) {
        return (infomask & XMAX_LOCK_ONLY) != 0
                || (infomask & (XMAX_IS_MULTI | LOCK_BITS)) == XMAX_EXCL_LOCK;
    }

    private int at(int offset) {
        return Page.lpOffset(Page.itemId(page, offset));
    }

    private int xmin(int at) {
        return page.getInt(at);
    }

    private int xmax(int at) {
        return page.getInt(at + 4);
    }

    private int infomask2(int at) {
        return page.getShort(at + 18) & 0xFFFF;
    }

    private int infomask(int at) {
        return page.getShort(at + 20) & 0xFFFF;
    }
}
