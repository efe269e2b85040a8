package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.disk.Disk;

/**
 * When each transaction committed, and from which replication origin, in {@code pg_commit_ts}; only
 * while track_commit_timestamp is on.
 *
 * <pre>
 *   819 entries of 10 bytes a page, then 2 unused: time 8 (microseconds since 2000-01-01), origin 2
 * </pre>
 *
 * (PostgreSQL: commit_ts.c.)
 */
final class CommitTimestampLog {
    static final int ENTRY_SIZE = 10;
    static final int XACTS_PER_PAGE = Page.SIZE / ENTRY_SIZE;

    private static final int SLOTS = 32;
    private static final int NO_PAGE = -1;

    private final Slru slru;

    /** Changed by redo and by start-up alone. */
    private volatile boolean active;

    private int pendingPage = NO_PAGE;

    CommitTimestampLog(Disk disk, String dataDirectory) {
        slru =
                new Slru(
                        disk,
                        dataDirectory + "/pg_commit_ts",
                        SLOTS,
                        pageOf(-1),
                        true,
                        CommitTimestampLog::pagePrecedes);
    }

    Slru slru() {
        return slru;
    }

    boolean active() {
        return active;
    }

    static int pageOf(int xid) {
        return Integer.divideUnsigned(xid, XACTS_PER_PAGE);
    }

    /** (PostgreSQL: ExtendCommitTs.) */
    static boolean isFirstOfPage(int xid) {
        return Integer.remainderUnsigned(xid, XACTS_PER_PAGE) == 0
                || xid == TransactionId.FIRST_NORMAL;
    }

    /** The page becomes zeros in memory. (PostgreSQL: ZeroCommitTsPage.) */
    void zeroPage(int page) {
        synchronized (slru) {
            slru.zeroPage(page);
        }
    }

    static boolean pagePrecedes(int page1, int page2) {
        return XidPages.precedes(page1, page2, XACTS_PER_PAGE);
    }

    /**
     * Begins tracking. The page of the next xid is made if it does not exist, but not before the
     * log is used: turning it on must not write as long as recovery may still refuse the cluster.
     * (PostgreSQL: ActivateCommitTs.)
     */
    void activate(XactCounters counters) {
        if (active) {
            return;
        }
        int nextXid = TransactionId.xidOf(counters.nextFullXid());
        int page = pageOf(nextXid);
        slru.latestPage(page);
        if (counters.oldestCommitTsXid() == TransactionId.INVALID) {
            counters.commitTsXids(nextXid, nextXid);
        }
        if (!slru.physicalPageExists(page)) {
            pendingPage = page;
        }
        active = true;
    }

    /** Makes the page that {@link #activate} promised. */
    void writePending() {
        if (pendingPage != NO_PAGE) {
            int page = pendingPage;
            pendingPage = NO_PAGE;
            zeroPageNow(page);
        }
    }

    /** Ends tracking and removes every file. (PostgreSQL: DeactivateCommitTs.) */
    void deactivate(XactCounters counters) {
        writePending();
        active = false;
        counters.commitTsXids(TransactionId.INVALID, TransactionId.INVALID);
        slru.deleteAllFiles();
    }

    void zeroPageNow(int page) {
        writePending();
        synchronized (slru) {
            slru.writePage(slru.zeroPage(page));
        }
    }

    /**
     * Redo of a truncation; the sanity check on the latest page is bypassed, as in PostgreSQL.
     * (PostgreSQL: commit_ts_redo.)
     */
    void truncate(int page) {
        writePending();
        slru.latestPage(page);
        slru.truncate(page);
    }

    /**
     * Stores the commit time of a transaction and its subtransactions; nothing when tracking is
     * off. (PostgreSQL: TransactionTreeSetCommitTsData.)
     */
    void setTree(
            int xid,
            DirectBuffer subxids,
            int offset,
            int count,
            long time,
            int origin,
            XactCounters counters) {
        if (!active) {
            return;
        }
        writePending();
        set(xid, time, origin);
        for (int i = 0; i < count; i++) {
            set(subxids.getInt(offset + i * 4), time, origin);
        }
        int newest = count > 0 ? subxids.getInt(offset + (count - 1) * 4) : xid;
        if (TransactionId.precedes(counters.newestCommitTsXid(), newest)) {
            counters.commitTsXids(counters.oldestCommitTsXid(), newest);
        }
    }

    /**
     * Times of earlier transactions are not asked for any more. (PostgreSQL:
     * AdvanceOldestCommitTsXid.)
     */
    synchronized void oldestXid(int xid, XactCounters counters) {
        int oldest = counters.oldestCommitTsXid();
        if (oldest != TransactionId.INVALID && TransactionId.precedes(oldest, xid)) {
            counters.commitTsXids(xid, counters.newestCommitTsXid());
        }
    }

    private void set(int xid, long time, int origin) {
        synchronized (slru) {
            int slot = slru.readPage(pageOf(xid));
            UnsafeBuffer memory = slru.memory();
            int at =
                    Slru.offset(slot) + Integer.remainderUnsigned(xid, XACTS_PER_PAGE) * ENTRY_SIZE;
            memory.putLong(at, time);
            memory.putShort(at + 8, (short) origin);
            slru.markDirty(slot);
        }
    }

    long time(int xid) {
        synchronized (slru) {
            int slot = slru.readPage(pageOf(xid));
            return slru.memory()
                    .getLong(
                            Slru.offset(slot)
                                    + Integer.remainderUnsigned(xid, XACTS_PER_PAGE) * ENTRY_SIZE);
        }
    }
}
