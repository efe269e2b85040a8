package org.pgkernel.xact;

import java.util.function.LongConsumer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;

/**
 * What became of each transaction, two bits each, in {@code pg_xact}.
 *
 * <pre>
 *   page = xid / 32768, byte = xid % 32768 / 4, bits from the low end: xid % 4 * 2
 *   00 in progress   01 committed   10 aborted   11 subtransaction committed, parent not known yet
 * </pre>
 *
 * Xids wrap; pages are ordered modulo 2^32 xids. (PostgreSQL: clog.c.)
 */
final class CommitLog {
    static final int XACTS_PER_PAGE = Page.SIZE * 4;

    static final int IN_PROGRESS = 0;
    static final int COMMITTED = 1;
    static final int ABORTED = 2;
    static final int SUB_COMMITTED = 3;

    /** Transactions that share one position of the WAL. (PostgreSQL: CLOG_XACTS_PER_LSN_GROUP.) */
    static final int XACTS_PER_LSN_GROUP = 32;

    private static final int SLOTS = 128;

    private final Slru slru;

    CommitLog(Disk disk, String dataDirectory) {
        this(disk, dataDirectory, SLOTS);
    }

    CommitLog(Disk disk, String dataDirectory, int slots) {
        slru =
                new Slru(
                        disk,
                        dataDirectory + "/pg_xact",
                        slots,
                        pageOf(-1),
                        true,
                        CommitLog::pagePrecedes);
    }

    Slru slru() {
        return slru;
    }

    static int pageOf(int xid) {
        return Integer.divideUnsigned(xid, XACTS_PER_PAGE);
    }

    private static int indexOf(int xid) {
        return xid & XACTS_PER_PAGE - 1;
    }

    static boolean pagePrecedes(int page1, int page2) {
        return XidPages.precedes(page1, page2, XACTS_PER_PAGE);
    }

    /** Lets the pages of transactions that committed asynchronously wait for their records. */
    void waitForWal(LongConsumer flush) {
        slru.waitForWal(XACTS_PER_PAGE / XACTS_PER_LSN_GROUP, flush);
    }

    /**
     * True for an xid that is the first one to use its page. (PostgreSQL: ExtendCLOG: right after
     * the wrap the first xid of page zero is the first normal one.)
     */
    static boolean isFirstOfPage(int xid) {
        return indexOf(xid) == 0 || xid == TransactionId.FIRST_NORMAL;
    }

    /** The page becomes zeros in memory; its record is the caller's. (PostgreSQL: ZeroCLOGPage.) */
    void zeroPage(int page) {
        synchronized (slru) {
            slru.zeroPage(page);
        }
    }

    /**
     * Up to where the WAL must be durable before a hint that the transaction has committed may
     * reach disk; 0 when it is already. (PostgreSQL: TransactionIdGetCommitLSN.)
     */
    long commitLsn(int xid) {
        synchronized (slru) {
            return slru.lsn(slru.readPage(pageOf(xid)), indexOf(xid) / XACTS_PER_LSN_GROUP);
        }
    }

    /** (PostgreSQL: StartupCLOG.) */
    void startup(int nextXid) {
        slru.latestPage(pageOf(nextXid));
    }

    /** A transaction's status. (PostgreSQL: TransactionIdGetStatus.) */
    int status(int xid) {
        synchronized (slru) {
            int slot = slru.readPage(pageOf(xid));
            return slru.memory().getByte(Slru.offset(slot) + indexOf(xid) / 4) >> (xid & 3) * 2 & 3;
        }
    }

    /**
     * Sets the final status of a transaction and of its subtransactions, in the order that shows a
     * reader at any moment either none or all of them committed: subtransactions on other pages
     * first become "subcommitted", the page with the parent decides, the others follow.
     * (PostgreSQL: TransactionIdSetTreeStatus.)
     *
     * @param subxids buffer with {@code count} xids from {@code offset} on
     */
    void setTreeStatus(int xid, DirectBuffer subxids, int offset, int count, int status) {
        setTreeStatus(xid, subxids, offset, count, status, 0);
    }

    /**
     * The same.
     *
     * @param lsn end of a commit record that was not flushed: the pages wait for it; else 0
     *     (PostgreSQL: TransactionIdAsyncCommitTree)
     */
    void setTreeStatus(int xid, DirectBuffer subxids, int offset, int count, int status, long lsn) {
        assert status == COMMITTED || status == ABORTED;
        int page = pageOf(xid);
        int onFirstPage = 0;
        while (onFirstPage < count && pageOf(subxids.getInt(offset + onFirstPage * 4)) == page) {
            onFirstPage++;
        }
        synchronized (slru) {
            if (onFirstPage < count && status == COMMITTED) {
                setByPages(subxids, offset, onFirstPage, count, SUB_COMMITTED, lsn);
            }
            int slot = slru.readPage(page);
            if (status == COMMITTED) {
                setRun(slot, subxids, offset, 0, onFirstPage, SUB_COMMITTED, lsn);
            }
            setStatus(slot, xid, status, lsn);
            setRun(slot, subxids, offset, 0, onFirstPage, status, lsn);
            slru.markDirty(slot);
            if (onFirstPage < count) {
                setByPages(subxids, offset, onFirstPage, count, status, lsn);
            }
        }
    }

    private void setByPages(
            DirectBuffer subxids, int offset, int from, int to, int status, long lsn) {
        int i = from;
        while (i < to) {
            int page = pageOf(subxids.getInt(offset + i * 4));
            int end = i + 1;
            while (end < to && pageOf(subxids.getInt(offset + end * 4)) == page) {
                end++;
            }
            int slot = slru.readPage(page);
            setRun(slot, subxids, offset, i, end, status, lsn);
            slru.markDirty(slot);
            i = end;
        }
    }

    private void setRun(
            int slot, DirectBuffer subxids, int offset, int from, int to, int status, long lsn) {
        for (int i = from; i < to; i++) {
            setStatus(slot, subxids.getInt(offset + i * 4), status, lsn);
        }
    }

    /**
     * In replay the final state may be there already; it is not set back to the intermediate one.
     * (PostgreSQL: TransactionIdSetStatusBit.)
     */
    private void setStatus(int slot, int xid, int status, long lsn) {
        UnsafeBuffer memory = slru.memory();
        int at = Slru.offset(slot) + indexOf(xid) / 4;
        int shift = (xid & 3) * 2;
        int bits = memory.getByte(at);
        if (status == SUB_COMMITTED && (bits >> shift & 3) == COMMITTED) {
            return;
        }
        memory.putByte(at, (byte) (bits & ~(3 << shift) | status << shift));
        if (lsn != 0) {
            slru.raiseLsn(slot, indexOf(xid) / XACTS_PER_LSN_GROUP, lsn);
        }
    }

    /** The page becomes zeros, in the file too. (PostgreSQL: clog_redo, CLOG_ZEROPAGE.) */
    void zeroPageNow(int page) {
        synchronized (slru) {
            slru.writePage(slru.zeroPage(page));
        }
    }

    /** Removes the segments before the page. @return false on an apparent wraparound */
    boolean truncate(int cutoffPage) {
        return slru.truncate(cutoffPage);
    }

    /**
     * Zeroes what lies past the next xid on its page: subtransaction commits reach the log without
     * WAL, so the page may hold the status of xids that will be assigned again. Right after the
     * wrap the page of the first normal xid need not be there yet, which PostgreSQL would miss.
     * (PostgreSQL: TrimCLOG.)
     */
    void trim(int nextXid) {
        if (indexOf(nextXid) == 0
                || nextXid == TransactionId.FIRST_NORMAL && !slru.physicalPageExists(0)) {
            return;
        }
        synchronized (slru) {
            int slot = slru.readPage(pageOf(nextXid));
            int page = Slru.offset(slot);
            int inPage = indexOf(nextXid) / 4;
            UnsafeBuffer memory = slru.memory();
            memory.putByte(
                    page + inPage,
                    (byte) (memory.getByte(page + inPage) & (1 << (nextXid & 3) * 2) - 1));
            memory.setMemory(page + inPage + 1, Page.SIZE - inPage - 1, (byte) 0);
            slru.markDirty(slot);
        }
    }

    static boolean isValidForLog(int xid) {
        return TransactionId.isNormal(xid);
    }
}
