package org.pgkernel.wal;

import java.nio.ByteBuffer;
import java.util.List;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/**
 * Finds WAL pages: opens the right segment file, reads it in large pieces into a window of native
 * memory, and checks a page's header when the reader enters it. After any failure the window is
 * forgotten and the file closed, so that the next attempt sees what the disk holds by then: the
 * segment may have grown, or the file of a newer timeline may have come. (PostgreSQL:
 * ReadPageInternal, XLogReaderValidatePageHeader, xlogreader.c; XLogFileReadAnyTLI,
 * xlogrecovery.c.)
 */
final class WalPages implements AutoCloseable {
    static final int MAX_WINDOW = 1 << 20;

    /** No page: pages begin on multiples of 8192. */
    private static final long NONE = -1;

    private final Disk disk;
    private final String directory;
    private final TimelineHistory timelines;
    private final int segmentSize;
    private final long systemIdentifier;

    private final ByteBuffer windowBytes;
    private final UnsafeBuffer window;
    private final long windowAddress;

    /**
     * LSN of the window's first byte, a page's; {@link #NONE} when the window holds nothing good.
     */
    private long windowLsn = NONE;

    private int windowLength;

    /** Page of the window whose header is known to be good. */
    private long goodPage = NONE;

    /**
     * Pieces read so far: a reader that sees it change must look again at what it took from the
     * window.
     */
    private int reads;

    private DiskFile file;
    private long fileSegment = NONE;
    private int fileTimeline;

    /** The file's bytes from here on belong to another timeline; 0 for none. */
    private long fileLimit;

    private EndOfWal.Reason failure;
    private String failureDetail;

    WalPages(
            Disk disk,
            String directory,
            TimelineHistory timelines,
            int segmentSize,
            long systemIdentifier) {
        this.disk = disk;
        this.directory = directory;
        this.timelines = timelines;
        this.segmentSize = segmentSize;
        this.systemIdentifier = systemIdentifier;
        windowBytes = ByteBuffer.allocateDirect(Math.min(segmentSize, MAX_WINDOW));
        window = new UnsafeBuffer(windowBytes);
        windowAddress = window.addressOffset();
    }

    UnsafeBuffer window() {
        return window;
    }

    /** The window's memory, for checksums. */
    ByteBuffer windowBytes() {
        return windowBytes;
    }

    int reads() {
        return reads;
    }

    /** Timeline in the name of the file that was read last. */
    int fileTimeline() {
        return fileTimeline;
    }

    /** WAL-10: false when the byte before {@code end} is not of the file's timeline any more. */
    boolean ownsUpTo(long end) {
        return fileLimit == 0 || !Lsn.before(fileLimit, end);
    }

    EndOfWal.Reason failure() {
        return failure;
    }

    String failureDetail() {
        return failureDetail;
    }

    /**
     * Brings the first {@code needed} bytes of a page into the window, its header checked.
     *
     * @param needed from 24 to 8192
     * @return the page's offset in the window, or -1: then {@link #failure} tells why
     */
    int load(long page, int needed) {
        if (page == goodPage) {
            int at = (int) (page - windowLsn);
            if (at + needed <= windowLength) {
                return at;
            }
        }
        return enter(page, needed);
    }

    /** Forgets everything that was read. */
    void invalidate() {
        windowLsn = NONE;
        windowLength = 0;
        goodPage = NONE;
        if (file != null) {
            DiskFile closing = file;
            file = null;
            fileSegment = NONE;
            closing.close();
        }
    }

    @Override
    public void close() {
        invalidate();
        BufferUtil.free(windowBytes);
    }

    private int enter(long page, int needed) {
        goodPage = NONE;
        if (WalSegmentName.segmentOf(page, segmentSize) != fileSegment && !openSegment(page)) {
            return -1;
        }
        long at = page - windowLsn;
        if (windowLsn == NONE || at < 0 || at + needed > windowLength) {
            fill(page, segmentSize - WalSegmentName.offsetIn(page, segmentSize));
            at = 0;
        }
        return headerIsGood(page, (int) at, needed) ? (int) at : -1;
    }

    /**
     * Opens the segment's file and checks its first page, which identifies the file, even when the
     * page wanted is a later one.
     */
    private boolean openSegment(long page) {
        invalidate();
        long segment = WalSegmentName.segmentOf(page, segmentSize);
        List<TimelineHistory.Entry> entries = timelines.entries();
        // The newest timeline first: its file begins with a copy of its parent's, so it holds all
        // of the segment that counts.
        for (int i = entries.size() - 1; i >= 0 && file == null; i--) {
            TimelineHistory.Entry entry = entries.get(i);
            if (Long.compareUnsigned(segment, WalSegmentName.segmentOf(entry.begin(), segmentSize))
                    >= 0) {
                file =
                        disk.openReadOnly(
                                directory
                                        + "/"
                                        + WalSegmentName.fileName(
                                                entry.timeline(), segment, segmentSize));
                if (file != null) {
                    fileTimeline = entry.timeline();
                    fileLimit = entry.end();
                }
            }
        }
        if (file == null) {
            return fail(
                    EndOfWal.Reason.MISSING_SEGMENT,
                    "there is no WAL segment "
                            + WalSegmentName.fileName(
                                    timelines.timelineAt(page), segment, segmentSize));
        }
        fileSegment = segment;
        long first = WalSegmentName.startOf(segment, segmentSize);
        if (first != page) {
            fill(first, WalPageHeader.PAGE_SIZE);
            return headerIsGood(first, 0, WalPageHeader.SHORT_SIZE);
        }
        return true;
    }

    /**
     * Reads up to a window's length from {@code page} on. Nothing of the window is good until that
     * has succeeded.
     */
    private void fill(long page, int most) {
        windowLsn = NONE;
        windowLength = 0;
        reads++;
        int length =
                file.read(
                        windowAddress,
                        Math.min(windowBytes.capacity(), most),
                        WalSegmentName.offsetIn(page, segmentSize));
        windowLsn = page;
        windowLength = length;
    }

    private boolean headerIsGood(long page, int at, int needed) {
        int have = windowLength - at;
        if (have < WalPageHeader.SHORT_SIZE || have < needed) {
            return fail(
                    EndOfWal.Reason.SHORT_SEGMENT,
                    "WAL segment "
                            + fileName()
                            + " ends at offset "
                            + (WalSegmentName.offsetIn(page, segmentSize) + Math.max(have, 0)));
        }
        int magic = WalPageHeader.magic(window, at);
        if (magic != WalPageHeader.MAGIC) {
            return badHeader(String.format("invalid magic number %04X", magic), page);
        }
        int info = WalPageHeader.info(window, at);
        boolean isLong = (info & WalPageHeader.XLP_LONG_HEADER) != 0;
        if ((info & ~WalPageHeader.XLP_ALL_FLAGS) != 0
                || isLong != (WalPageHeader.sizeAt(page, segmentSize) == WalPageHeader.LONG_SIZE)) {
            return badHeader(String.format("invalid info bits %04X", info), page);
        }
        if (isLong && !identifies(page, at, have)) {
            return false;
        }
        if (WalPageHeader.pageLsn(window, at) != page) {
            return badHeader(
                    "unexpected page address " + Lsn.format(WalPageHeader.pageLsn(window, at)),
                    page);
        }
        // WAL-10
        int timeline = WalPageHeader.timeline(window, at);
        if (timeline != timelines.timelineAt(page)) {
            return badHeader("unexpected timeline " + Integer.toUnsignedString(timeline), page);
        }
        goodPage = page;
        return true;
    }

    private boolean identifies(long page, int at, int have) {
        if (have < WalPageHeader.LONG_SIZE) {
            return fail(
                    EndOfWal.Reason.SHORT_SEGMENT,
                    "WAL segment " + fileName() + " ends within its first page header");
        }
        long system = WalPageHeader.systemIdentifier(window, at);
        if (systemIdentifier != 0 && system != systemIdentifier) {
            return badHeader(
                    "system identifier "
                            + Long.toUnsignedString(system)
                            + " instead of "
                            + Long.toUnsignedString(systemIdentifier),
                    page);
        }
        if (WalPageHeader.segmentSize(window, at) != segmentSize) {
            return badHeader(
                    "segment size "
                            + Integer.toUnsignedString(WalPageHeader.segmentSize(window, at)),
                    page);
        }
        if (WalPageHeader.pageSize(window, at) != WalPageHeader.PAGE_SIZE) {
            return badHeader(
                    "page size " + Integer.toUnsignedString(WalPageHeader.pageSize(window, at)),
                    page);
        }
        return true;
    }

    private boolean badHeader(String what, long page) {
        return fail(
                EndOfWal.Reason.BAD_PAGE_HEADER,
                what
                        + " in WAL segment "
                        + fileName()
                        + ", offset "
                        + WalSegmentName.offsetIn(page, segmentSize));
    }

    private String fileName() {
        return WalSegmentName.fileName(fileTimeline, fileSegment, segmentSize);
    }

    private boolean fail(EndOfWal.Reason reason, String detail) {
        failure = reason;
        failureDetail = detail;
        return false;
    }
}
