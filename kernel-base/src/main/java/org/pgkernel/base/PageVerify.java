package org.pgkernel.base;

import org.agrona.DirectBuffer;

/**
 * Whether bytes read from disk may enter the pool as a page. A page of zeros is valid: a file may
 * have been extended and the server stopped before the page was logged. "Never formatted" is tested
 * before the header, for a page of zeros has neither a sane header nor a checksum; a page that is
 * not formatted and not all zeros is damaged, checksums or none. Line pointers and tuples are not
 * looked at: their readers check them.
 *
 * <p>Thread-safe, allocates nothing. (PostgreSQL: PageIsVerifiedExtended, bufpage.c.)
 */
public final class PageVerify {
    private PageVerify() {}

    /**
     * @param page begins at the page's first byte
     * @param block where it was read from, which the checksum covers
     * @param checksums true if pg_control says that pages carry checksums
     */
    public static boolean isValid(DirectBuffer page, int block, boolean checksums) {
        // BASE-4
        if (!Page.isNew(page)) {
            return headerIsSane(page) && (!checksums || checksumMatches(page, block));
        }
        return isAllZero(page);
    }

    /** True if the stored checksum is the computed one. Only for pages that are not new. */
    public static boolean checksumMatches(DirectBuffer page, int block) {
        return Page.checksum(page) == PageChecksum.compute(page, block);
    }

    /**
     * Known flags; lower, upper, special in order and inside the page; special space aligned to 8.
     */
    public static boolean headerIsSane(DirectBuffer page) {
        int upper = Page.upper(page);
        int special = Page.special(page);
        return (Page.flags(page) & ~Page.PD_VALID_FLAG_BITS) == 0
                && Page.lower(page) <= upper
                && upper <= special
                && special <= Page.SIZE
                && special == Page.maxAlign(special);
    }

    public static boolean isAllZero(DirectBuffer page) {
        for (int at = 0; at < Page.SIZE; at += Long.BYTES) {
            if (page.getLong(at) != 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * What is wrong, as the start of an error sentence; call it for a page that {@link #isValid}
     * refused. Allocates.
     */
    public static String whyInvalid(DirectBuffer page, int block, boolean checksums) {
        if (Page.isNew(page)) {
            return "invalid page: never formatted (pd_upper is 0) but not all zeros";
        }
        if (checksums && !checksumMatches(page, block)) {
            return "page verification failed, calculated checksum "
                    + PageChecksum.compute(page, block)
                    + " but expected "
                    + Page.checksum(page);
        }
        return "invalid page: bad header (pd_flags="
                + Page.flags(page)
                + " pd_lower="
                + Page.lower(page)
                + " pd_upper="
                + Page.upper(page)
                + " pd_special="
                + Page.special(page)
                + ")";
    }
}
