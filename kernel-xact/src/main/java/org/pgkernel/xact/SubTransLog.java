package org.pgkernel.xact;

import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;

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

    /** True for an xid that is the first one to use its page. (PostgreSQL: ExtendSUBTRANS.) */
    static boolean isFirstOfPage(int xid) {
        return (xid & XACTS_PER_PAGE - 1) == 0 || xid == TransactionId.FIRST_NORMAL;
    }

    void zeroPage(int page) {
        synchronized (slru) {
            slru.zeroPage(page);
        }
    }

    /** Stores a subtransaction's parent, which is older. (PostgreSQL: SubTransSetParent.) */
    void setParent(int xid, int parent) {
        assert TransactionId.follows(xid, parent) : "a parent is older than its subtransaction";
        synchronized (slru) {
            int slot = slru.readPage(pageOf(xid));
            slru.memory().putInt(Slru.offset(slot) + (xid & XACTS_PER_PAGE - 1) * 4, parent);
            slru.markDirty(slot);
        }
    }

    /** The parent of a subtransaction, 0 for a top-level one. (PostgreSQL: SubTransGetParent.) */
    int parent(int xid) {
        if (!TransactionId.isNormal(xid)) {
            return TransactionId.INVALID;
        }
        synchronized (slru) {
            int slot = slru.readPage(pageOf(xid));
            return slru.memory().getInt(Slru.offset(slot) + (xid & XACTS_PER_PAGE - 1) * 4);
        }
    }

    /**
     * The top-level transaction above, or the first one found that precedes {@code oldest}: the log
     * may have been removed before it, and whoever asks treats all those alike. (PostgreSQL:
     * SubTransGetTopmostTransaction.)
     *
     * @throws DamagedDataException when a parent is younger than its child
     */
    int topmost(int xid, int oldest) {
        int top = xid;
        int parent = xid;
        while (TransactionId.isValid(parent)) {
            top = parent;
            if (TransactionId.precedes(parent, oldest)) {
                break;
            }
            parent = parent(top);
            if (TransactionId.isValid(parent) && !TransactionId.precedes(parent, top)) {
                throw new DamagedDataException(
                        "pg_subtrans gives transaction "
                                + Integer.toUnsignedString(top)
                                + " the parent "
                                + Integer.toUnsignedString(parent));
            }
        }
        return top;
    }

    /**
     * Removes the segments that no running transaction can ask for. (PostgreSQL: TruncateSUBTRANS.)
     */
    void truncate(int oldestRunningXid) {
        slru.truncate(pageOf(TransactionId.retreat(oldestRunningXid)));
    }
}
