package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;

/** The order of pages that hold a fixed number of xids each. */
final class XidPages {
    private XidPages() {}

    /**
     * True if every xid of {@code page1} is logically earlier than every xid of {@code page2}. Both
     * are shifted past the special xids, which are not ordered modulo 2^32. (PostgreSQL:
     * CLOGPagePrecedes, SubTransPagePrecedes, CommitTsPagePrecedes.)
     */
    static boolean precedes(int page1, int page2, int xidsPerPage) {
        int xid1 = page1 * xidsPerPage + TransactionId.FIRST_NORMAL + 1;
        int xid2 = page2 * xidsPerPage + TransactionId.FIRST_NORMAL + 1;
        return TransactionId.precedes(xid1, xid2)
                && TransactionId.precedes(xid1, xid2 + xidsPerPage - 1);
    }
}
