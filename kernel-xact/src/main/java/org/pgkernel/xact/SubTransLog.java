package org.pgkernel.xact;

import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;

/**
 * The parent of each subtransaction, four bytes each, in {@code pg_subtrans}. Nothing of it is
 * needed after a crash: it is never synced, and start-up zeroes the pages in use. (PostgreSQL:
 * subtrans.c.)
 */
final class SubTransLog {
    static final int XACTS_PER_PAGE = Page.SIZE / 4;

    private static final int SLOTS = 32;

    private final Slru slru;

    SubTransLog(Disk disk, String dataDirectory) {
        slru =
                new Slru(
                        disk,
                        dataDirectory + "/pg_subtrans",
                        SLOTS,
                        pageOf(-1),
                        false,
                        SubTransLog::pagePrecedes);
    }

    Slru slru() {
        return slru;
    }

    static int pageOf(int xid) {
        return Integer.divideUnsigned(xid, XACTS_PER_PAGE);
    }

    static boolean pagePrecedes(int page1, int page2) {
        return XidPages.precedes(page1, page2, XACTS_PER_PAGE);
    }

    /**
     * Zeroes the pages from the oldest running xid's to the next xid's. (PostgreSQL:
     * StartupSUBTRANS.)
     */
    void startup(int oldestActiveXid, int nextXid) {
        synchronized (slru) {
            int page = pageOf(oldestActiveXid);
            int end = pageOf(nextXid);
            while (page != end) {
                slru.zeroPage(page);
                page = page == slru.maxPage() ? 0 : page + 1;
            }
            slru.zeroPage(page);
        }
    }

    /**
     * Removes the segments that no running transaction can ask for. (PostgreSQL: TruncateSUBTRANS.)
     */
    void truncate(int oldestRunningXid) {
        slru.truncate(pageOf(TransactionId.retreat(oldestRunningXid)));
    }
}
