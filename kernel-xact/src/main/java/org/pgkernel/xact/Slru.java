package org.pgkernel.xact;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.LongConsumer;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * A log of small fixed-size entries in pages of 8192 bytes and segment files of 32 pages, cached in
 * a few slots with the least recently used page replaced. The pages have no header: every byte
 * belongs to the entries.
 *
 * <p>Control lock: the monitor of this object. The methods that hand out a slot expect the caller
 * to hold it for as long as it uses the slot. Nothing here allocates unless a page is read, written
 * or a file removed. (PostgreSQL: slru.c.)
 */
final class Slru {
    static final int PAGES_PER_SEGMENT = 32;

    private static final int NO_PAGE = -1;

    private final Disk disk;
    private final String directory;
    private final int slots;
    private final int maxPage;
    private final boolean durable;
    private final PageOrder order;

    private final ByteBuffer reservation;
    private final UnsafeBuffer memory = new UnsafeBuffer(0L, 0);
    private final long address;
    private final int[] pageOf;
    private final boolean[] dirty;
    private final long[] lastUse;
    private long clock;
    private int hint;

    private int[] unsynced = new int[4];
    private int unsyncedCount;
    private int latestPage;
    private boolean inRecovery = true;

    /**
     * Up to where the WAL must be durable before the slot's page may be written, one position for
     * each group of a page's entries; under the control lock. Empty when nothing waits for WAL.
     */
    private long[] lsns = new long[0];

    private int groups;
    private LongConsumer flushWal = lsn -> {};

    /**
     * @param directory absolute path of the log's directory
     * @param slots pages kept in memory
     * @param maxPage the highest page number there can be
     * @param durable false for a log whose content is worthless after a crash: it is written at
     *     checkpoints but never synced
     */
    Slru(Disk disk, String directory, int slots, int maxPage, boolean durable, PageOrder order) {
        this.disk = disk;
        this.directory = directory;
        this.slots = slots;
        this.maxPage = maxPage;
        this.durable = durable;
        this.order = order;
        this.reservation = BufferUtil.allocateDirectAligned(slots * Page.SIZE, Page.SIZE);
        this.memory.wrap(reservation);
        this.address = memory.addressOffset();
        this.pageOf = new int[slots];
        this.dirty = new boolean[slots];
        this.lastUse = new long[slots];
        Arrays.fill(pageOf, NO_PAGE);
    }

    /**
     * The order of pages, modulo the number space of the log's keys. (PostgreSQL: PagePrecedes.)
     */
    @FunctionalInterface
    interface PageOrder {
        boolean precedes(int page1, int page2);
    }

    int maxPage() {
        return maxPage;
    }

    /**
     * Lets pages wait for the WAL from now on: an entry whose commit was not flushed must not reach
     * its file before the commit record does. (PostgreSQL: group_lsn, slru.c.)
     *
     * @param groups of entries on a page, each with a position of its own
     * @param flush makes the WAL durable up to a position; called under the control lock
     */
    synchronized void waitForWal(int groups, LongConsumer flush) {
        this.groups = groups;
        lsns = new long[slots * groups];
        flushWal = flush;
    }

    /** The group's entries may be written once the WAL is durable up to there; never goes back. */
    void raiseLsn(int slot, int group, long lsn) {
        assert Thread.holdsLock(this);
        int at = slot * groups + group;
        lsns[at] = Math.max(lsns[at], lsn);
    }

    long lsn(int slot, int group) {
        assert Thread.holdsLock(this);
        return groups == 0 ? 0 : lsns[slot * groups + group];
    }

    /** Tells that redo is over: a missing file is an error from now on. */
    synchronized void recoveryOver() {
        inRecovery = false;
    }

    /** The newest page; {@link #truncate} never removes pages before looking at it. */
    synchronized void latestPage(int page) {
        latestPage = page;
    }

    synchronized int latestPage() {
        return latestPage;
    }

    /** All slots; a slot's page begins at {@link #offset}. */
    UnsafeBuffer memory() {
        return memory;
    }

    static int offset(int slot) {
        return slot * Page.SIZE;
    }

    void markDirty(int slot) {
        assert Thread.holdsLock(this);
        assert pageOf[slot] != NO_PAGE : "dirtying an empty slot";
        dirty[slot] = true;
    }

    /**
     * The slot that holds the page, read if it was not in memory. In recovery a page whose file
     * does not exist reads as zeros: redo may set the status of transactions whose segment was
     * removed later. (PostgreSQL: SimpleLruReadPage, SlruPhysicalReadPage.)
     *
     * @throws DamagedDataException when the file ends before the page, or does not exist outside
     *     recovery
     */
    int readPage(int page) {
        assert Thread.holdsLock(this);
        checkPage(page);
        int slot = hint;
        if (pageOf[slot] != page) {
            slot = find(page);
            if (slot < 0) {
                slot = freeSlot();
                physicalRead(page, slot);
                forgetLsns(slot);
                pageOf[slot] = page;
                dirty[slot] = false;
            }
            hint = slot;
        }
        lastUse[slot] = ++clock;
        return slot;
    }

    /**
     * A slot with the page as zeros, dirty, whatever was there before; it becomes the latest page.
     * (PostgreSQL: SimpleLruZeroPage.)
     */
    int zeroPage(int page) {
        assert Thread.holdsLock(this);
        checkPage(page);
        int slot = find(page);
        if (slot < 0) {
            slot = freeSlot();
        }
        memory.setMemory(offset(slot), Page.SIZE, (byte) 0);
        forgetLsns(slot);
        pageOf[slot] = page;
        dirty[slot] = true;
        lastUse[slot] = ++clock;
        latestPage = page;
        return slot;
    }

    /**
     * Writes the slot's page if dirty; creates the file when there is none. (PostgreSQL:
     * SimpleLruWritePage.)
     */
    void writePage(int slot) {
        assert Thread.holdsLock(this);
        if (dirty[slot]) {
            int segment = pageOf[slot] / PAGES_PER_SEGMENT;
            try (DiskFile file = disk.openOrCreate(path(segment))) {
                physicalWrite(file, segment, slot);
            }
        }
    }

    /** True if the page lies within its file. (PostgreSQL: SimpleLruDoesPhysicalPageExist.) */
    synchronized boolean physicalPageExists(int page) {
        checkPage(page);
        try (DiskFile file = disk.openReadOnly(path(page / PAGES_PER_SEGMENT))) {
            return file != null && file.size() >= (long) (page % PAGES_PER_SEGMENT + 1) * Page.SIZE;
        }
    }

    /**
     * Writes every dirty page and, in a durable log, syncs the written files and the directory.
     * (PostgreSQL: SimpleLruWriteAll; the syncs are ProcessSyncRequests' there.)
     *
     * @throws KernelStoppedException when a sync fails
     */
    synchronized void checkpoint() {
        for (int slot = 0; slot < slots; slot++) {
            if (dirty[slot]) {
                writeSegment(pageOf[slot] / PAGES_PER_SEGMENT);
            }
        }
        if (!durable) {
            unsyncedCount = 0;
            return;
        }
        try {
            for (int i = 0; i < unsyncedCount; i++) {
                try (DiskFile file = disk.openIfExists(path(unsynced[i]))) {
                    if (file != null) {
                        file.sync();
                    }
                }
            }
            disk.syncDirectory(directory);
        } catch (DiskException e) {
            throw new KernelStoppedException(
                    "a transaction log could not be made durable: "
                            + e.getMessage()
                            + " file="
                            + directory,
                    e);
        }
        unsyncedCount = 0;
    }

    /**
     * Removes the segments that lie wholly before the page. Does nothing when the latest page does:
     * the numbers have wrapped. (PostgreSQL: SimpleLruTruncate.)
     *
     * @return false if nothing was done because of an apparent wraparound
     */
    synchronized boolean truncate(int cutoffPage) {
        checkPage(cutoffPage);
        if (order.precedes(latestPage, cutoffPage)) {
            return false;
        }
        for (int slot = 0; slot < slots; slot++) {
            if (pageOf[slot] != NO_PAGE && order.precedes(pageOf[slot], cutoffPage)) {
                writePage(slot);
                pageOf[slot] = NO_PAGE;
            }
        }
        List<String> names = disk.list(directory);
        for (int i = 0; i < names.size(); i++) {
            int segment = segmentOf(names.get(i));
            if (segment >= 0 && mayDelete(segment, cutoffPage)) {
                unlink(segment);
            }
        }
        return true;
    }

    /** True if {@link #truncate} would find a segment to remove. (SlruScanDirCbReportPresence) */
    synchronized boolean hasSegmentBefore(int cutoffPage) {
        List<String> names = disk.list(directory);
        for (int i = 0; i < names.size(); i++) {
            int segment = segmentOf(names.get(i));
            if (segment >= 0 && mayDelete(segment, cutoffPage)) {
                return true;
            }
        }
        return false;
    }

    /** Removes one segment, in memory and on disk. (PostgreSQL: SlruDeleteSegment.) */
    synchronized void deleteSegment(int segment) {
        for (int slot = 0; slot < slots; slot++) {
            if (pageOf[slot] != NO_PAGE && pageOf[slot] / PAGES_PER_SEGMENT == segment) {
                pageOf[slot] = NO_PAGE;
                dirty[slot] = false;
            }
        }
        unlink(segment);
    }

    /**
     * Removes every segment file; pages in memory stay, as in PostgreSQL. (PostgreSQL:
     * SlruScanDirCbDeleteAll.)
     */
    synchronized void deleteAllFiles() {
        List<String> names = disk.list(directory);
        for (int i = 0; i < names.size(); i++) {
            int segment = segmentOf(names.get(i));
            if (segment >= 0) {
                unlink(segment);
            }
        }
    }

    /**
     * True if both ends of the segment precede the cutoff: neither the cutoff nor the wrap point
     * falls inside. (PostgreSQL: SlruMayDeleteSegment.)
     */
    boolean mayDelete(int segment, int cutoffPage) {
        int first = segment * PAGES_PER_SEGMENT;
        return order.precedes(first, cutoffPage)
                && order.precedes(first + PAGES_PER_SEGMENT - 1, cutoffPage);
    }

    /**
     * The file's name: the segment number in hexadecimal, four digits or more. (PostgreSQL:
     * SlruFileName.)
     */
    String path(int segment) {
        return directory + "/" + String.format(Locale.ROOT, "%04X", segment);
    }

    private int find(int page) {
        for (int slot = 0; slot < slots; slot++) {
            if (pageOf[slot] == page) {
                return slot;
            }
        }
        return -1;
    }

    /**
     * An empty slot, else the least recently used one but the latest page's, written if dirty.
     * (PostgreSQL: SlruSelectLRUPage.)
     */
    private int freeSlot() {
        int best = -1;
        for (int slot = 0; slot < slots; slot++) {
            if (pageOf[slot] == NO_PAGE) {
                return slot;
            }
            if (pageOf[slot] != latestPage && (best < 0 || lastUse[slot] < lastUse[best])) {
                best = slot;
            }
        }
        assert best >= 0 : "fewer than two slots";
        writePage(best);
        pageOf[best] = NO_PAGE;
        return best;
    }

    private void physicalRead(int page, int slot) {
        int segment = page / PAGES_PER_SEGMENT;
        String path = path(segment);
        try (DiskFile file = disk.openReadOnly(path)) {
            if (file == null) {
                if (!inRecovery) {
                    throw new DamagedDataException(
                            "a transaction log file is missing. file=" + path + " page=" + page);
                }
                memory.setMemory(offset(slot), Page.SIZE, (byte) 0);
                return;
            }
            long offset = (long) (page % PAGES_PER_SEGMENT) * Page.SIZE;
            if (file.read(address + offset(slot), Page.SIZE, offset) != Page.SIZE) {
                throw new DamagedDataException(
                        "a transaction log file ends before its page. file="
                                + path
                                + " page="
                                + page);
            }
        }
    }

    private void writeSegment(int segment) {
        try (DiskFile file = disk.openOrCreate(path(segment))) {
            for (int slot = 0; slot < slots; slot++) {
                if (dirty[slot] && pageOf[slot] / PAGES_PER_SEGMENT == segment) {
                    physicalWrite(file, segment, slot);
                }
            }
        }
    }

    private void forgetLsns(int slot) {
        Arrays.fill(lsns, slot * groups, (slot + 1) * groups, 0);
    }

    /** WAL before data. (PostgreSQL: SlruPhysicalWritePage.) */
    private void physicalWrite(DiskFile file, int segment, int slot) {
        long lsn = 0;
        for (int i = slot * groups; i < (slot + 1) * groups; i++) {
            lsn = Math.max(lsn, lsns[i]);
        }
        if (lsn != 0) {
            flushWal.accept(lsn);
        }
        file.write(
                address + offset(slot),
                Page.SIZE,
                (long) (pageOf[slot] % PAGES_PER_SEGMENT) * Page.SIZE);
        dirty[slot] = false;
        rememberUnsynced(segment);
    }

    private void rememberUnsynced(int segment) {
        for (int i = 0; i < unsyncedCount; i++) {
            if (unsynced[i] == segment) {
                return;
            }
        }
        if (unsyncedCount == unsynced.length) {
            unsynced = Arrays.copyOf(unsynced, unsyncedCount * 2);
        }
        unsynced[unsyncedCount++] = segment;
    }

    private void unlink(int segment) {
        for (int i = 0; i < unsyncedCount; i++) {
            if (unsynced[i] == segment) {
                unsynced[i] = unsynced[--unsyncedCount];
                break;
            }
        }
        disk.unlink(path(segment));
    }

    /** The segment number of a file's name, -1 for a name that is none. */
    static int segmentOf(String name) {
        if (name.length() < 4 || name.length() > 6) {
            return -1;
        }
        int segment = 0;
        for (int i = 0; i < name.length(); i++) {
            int digit = "0123456789ABCDEF".indexOf(name.charAt(i));
            if (digit < 0) {
                return -1;
            }
            segment = segment << 4 | digit;
        }
        return segment;
    }

    private void checkPage(int page) {
        assert page >= 0 && page <= maxPage : "page out of range: " + page;
    }
}
