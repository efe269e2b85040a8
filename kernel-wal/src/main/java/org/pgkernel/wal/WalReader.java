package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;
import static org.pgkernel.wal.WalPageHeader.SHORT_SIZE;
import static org.pgkernel.wal.WalRecordFormat.HEADER_SIZE;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.wal.EndOfWal.Reason;

/**
 * Reads records in order from the segment files of a directory. Strict and total: any bytes give
 * records or a typed end; never an escaping exception, a hang, or an allocation that follows from
 * an unverified length. Not thread-safe.
 *
 * <p>A record within one page is decoded where it lies in the window of {@link WalPages}; one that
 * crosses pages is assembled in a second buffer, which grows only as continuations arrive whose
 * page header agrees with the record's length. Only a disk that fails makes {@link #next} throw
 * (DiskException). (PostgreSQL: XLogDecodeNextRecord, xlogreader.c.)
 */
public final class WalReader implements AutoCloseable {
    /** What the assembly buffer begins with, and returns to after a longer record. */
    private static final int ASSEMBLY_SIZE = 1 << 18;

    private final WalPages pages;
    private final int segmentSize;
    private final WalRecord record = new WalRecord();
    private final CRC32C crc = new CRC32C();

    private ByteBuffer assemblyBytes = ByteBuffer.allocateDirect(ASSEMBLY_SIZE);
    private UnsafeBuffer assembly = new UnsafeBuffer(assemblyBytes);

    private long stop;

    /** Where the next record begins, or the page start before it. */
    private long next;

    /** A record was read since {@link #begin}, so that prev-links must fit. */
    private boolean sequential;

    private long lastRecord;
    private int lastFileTimeline;
    private long abortedRecord;
    private long missingContinuation;
    private EndOfWal end;
    private boolean closed;

    // What readAt and readAcross hand back besides their outcome.
    private long skippedRecord;
    private long overwritingPage;

    /**
     * @param directory pg_wal, absolute
     * @param timelines which timeline each position is on
     * @param segmentSize a power of two, at least 8192
     * @param systemIdentifier expected in long page headers; 0 accepts any
     */
    public WalReader(
            Disk disk,
            String directory,
            TimelineHistory timelines,
            int segmentSize,
            long systemIdentifier) {
        if (Integer.bitCount(segmentSize) != 1 || segmentSize < PAGE_SIZE) {
            throw new RefusedException(
                    "WAL segments cannot have " + segmentSize + " bytes file=" + directory);
        }
        this.segmentSize = segmentSize;
        pages = new WalPages(disk, directory, timelines, segmentSize, systemIdentifier);
    }

    /**
     * Goes to {@code lsn}, which must be the start of a record; the first read does not check the
     * prev-link.
     */
    public void begin(long lsn) {
        next = lsn;
        sequential = false;
        lastRecord = 0;
        abortedRecord = 0;
        missingContinuation = 0;
        end = null;
    }

    /** Records that begin at or after {@code lsn} are not returned; 0 for no limit. */
    public void stopAt(long lsn) {
        stop = lsn;
    }

    /**
     * The next record, or null: then {@link #end} tells why. After null one may call again (a
     * standby waits for more).
     */
    public WalRecord next() {
        assert !closed : "reader is closed";
        abortedRecord = 0;
        missingContinuation = 0;
        end = null;
        shrinkAssembly();
        boolean good = false;
        try {
            good = read();
        } finally {
            if (!good) {
                // WAL-4
                pages.invalidate();
            }
        }
        return good ? record : null;
    }

    /** Why {@link #next} returned null. */
    public EndOfWal end() {
        return end;
    }

    /** End of the last good record: new WAL continues here. */
    public long endOfLastRecord() {
        return next;
    }

    /** Start of the last good record. */
    public long lastRecord() {
        return lastRecord;
    }

    /**
     * Timeline in the name of the segment file that holds the end of the last good record.
     * (PostgreSQL: endOfLogTLI.)
     */
    public int fileTimeline() {
        return lastFileTimeline;
    }

    /** Start of a record whose continuation never came, 0 for none. (PostgreSQL: abortedRecPtr.) */
    public long abortedRecord() {
        return abortedRecord;
    }

    /** Where the missing continuation should have begun. (PostgreSQL: missingContrecPtr.) */
    public long missingContinuation() {
        return missingContinuation;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            pages.close();
            BufferUtil.free(assemblyBytes);
        }
    }

    /** Bytes that the assembly buffer has now; a test looks. */
    int assemblyCapacity() {
        return assembly.capacity();
    }

    private enum Outcome {
        RECORD,
        END,
        /**
         * The record goes on where another one was written over it: to be read again from {@link
         * #overwritingPage}.
         */
        OVERWRITTEN
    }

    private boolean read() {
        skippedRecord = 0;
        long position = next;
        Outcome outcome = readAt(position);
        // Each turn goes at least a page forward, so it ends where the log does.
        while (outcome == Outcome.OVERWRITTEN) {
            outcome = readAt(overwritingPage);
        }
        return outcome == Outcome.RECORD;
    }

    private Outcome readAt(long from) {
        long position = from;
        if (isStop(position)) {
            return stopped(position);
        }
        long page = position & -PAGE_SIZE;
        int offset = (int) position & PAGE_SIZE - 1;
        int at = pages.load(page, Math.min(Math.max(offset, SHORT_SIZE) + HEADER_SIZE, PAGE_SIZE));
        if (at < 0) {
            return pageEnd(position);
        }
        int info = WalPageHeader.info(pages.window(), at);
        int headerSize = WalPageHeader.size(info);
        if (offset == 0) {
            position += headerSize;
            offset = headerSize;
            if (isStop(position)) {
                return stopped(position);
            }
            at = pages.load(page, offset + HEADER_SIZE);
            if (at < 0) {
                return pageEnd(position);
            }
        }
        if (offset < headerSize || (offset & 7) != 0) {
            return ended(Reason.BAD_LENGTH, position, "no record can begin here");
        }
        if (offset == headerSize && (info & WalPageHeader.XLP_FIRST_IS_CONTRECORD) != 0) {
            return ended(
                    Reason.BAD_CONTINUATION,
                    position,
                    "the page begins with the rest of another record");
        }
        if (!pages.ownsUpTo(position + 1)) {
            return wrongFile(position);
        }
        int length = pages.window().getInt(at + offset);
        if (!lengthIsPossible(length, position)) {
            return Outcome.END;
        }
        if (length > PAGE_SIZE - offset) {
            return readAcross(position, page, at, offset, length);
        }
        return readWithin(position, page, at, offset, length);
    }

    /** The whole record lies on one page. */
    private Outcome readWithin(long position, long page, int firstAt, int offset, int length) {
        UnsafeBuffer window = pages.window();
        if (!headerIsGood(window, firstAt + offset, position)) {
            return Outcome.END;
        }
        int reads = pages.reads();
        int at = pages.load(page, offset + length);
        if (at < 0) {
            return pageEnd(position);
        }
        int start = at + offset;
        // A second read of the page may have brought other bytes than the first.
        if (reads != pages.reads()
                && (!headerIsGood(window, start, position) || window.getInt(start) != length)) {
            return end != null
                    ? Outcome.END
                    : ended(Reason.BAD_LENGTH, position, "the record changes while it is read");
        }
        return accept(window, pages.windowBytes(), start, length, position, position + length);
    }

    /** The record goes on on the next page. Whatever fails now, its continuation is missing. */
    private Outcome readAcross(long position, long firstPage, int firstAt, int offset, int length) {
        if (offset <= PAGE_SIZE - HEADER_SIZE
                && !headerIsGood(pages.window(), firstAt + offset, position)) {
            return Outcome.END;
        }
        int got = PAGE_SIZE - offset;
        int at = pages.load(firstPage, PAGE_SIZE);
        if (at < 0) {
            return pageEnd(position);
        }
        assembly.putBytes(0, pages.window(), at + offset, got);
        long page = firstPage;
        int last;
        int headerSize;
        do {
            page += PAGE_SIZE;
            int left = length - got;
            at = pages.load(page, Math.min(left, PAGE_SIZE - SHORT_SIZE) + SHORT_SIZE);
            if (at < 0) {
                return aborted(position, page, pageEnd(position));
            }
            int info = WalPageHeader.info(pages.window(), at);
            if ((info & WalPageHeader.XLP_FIRST_IS_OVERWRITE_CONTRECORD) != 0) {
                skippedRecord = position;
                overwritingPage = page;
                return Outcome.OVERWRITTEN;
            }
            if ((info & WalPageHeader.XLP_FIRST_IS_CONTRECORD) == 0) {
                return aborted(
                        position,
                        page,
                        ended(
                                Reason.BAD_CONTINUATION,
                                position,
                                "there is no continuation flag at " + Lsn.format(page)));
            }
            int remaining = WalPageHeader.remainingLength(pages.window(), at);
            if (remaining != left) {
                return aborted(
                        position,
                        page,
                        ended(
                                Reason.BAD_CONTINUATION,
                                position,
                                "the continuation at "
                                        + Lsn.format(page)
                                        + " has "
                                        + Integer.toUnsignedString(remaining)
                                        + " bytes instead of "
                                        + left));
            }
            headerSize = WalPageHeader.size(info);
            last = Math.min(left, PAGE_SIZE - headerSize);
            at = pages.load(page, headerSize + last);
            if (at < 0) {
                return aborted(position, page, pageEnd(position));
            }
            reserveAssembly(got, got + last);
            assembly.putBytes(got, pages.window(), at + headerSize, last);
            got += last;
            // Also when it was seen before: the first page may have been read anew since.
            if (page == firstPage + PAGE_SIZE && !headerIsGood(assembly, 0, position)) {
                return aborted(position, page, Outcome.END);
            }
        } while (got < length);
        if (assembly.getInt(0) != length) {
            return aborted(
                    position,
                    page,
                    ended(Reason.BAD_LENGTH, position, "the record changes while it is read"));
        }
        Outcome outcome =
                accept(assembly, assemblyBytes, 0, length, position, page + headerSize + last);
        return outcome == Outcome.RECORD ? outcome : aborted(position, page, outcome);
    }

    /**
     * All bytes are there and the header fits: the CRC decides, and the record is taken apart
     * (WAL-3).
     */
    private Outcome accept(
            UnsafeBuffer from,
            ByteBuffer bytes,
            int start,
            int length,
            long position,
            long rawEnd) {
        if (!pages.ownsUpTo(rawEnd)) {
            return wrongFile(position);
        }
        if (checksum(bytes, start, length) != from.getInt(start + WalRecordFormat.XL_CRC)) {
            return ended(Reason.BAD_CRC, position, "the record's checksum is wrong");
        }
        long after = WalRecordFormat.align(rawEnd);
        boolean isXlog =
                from.getByte(start + WalRecordFormat.XL_RMID) == WalRecordFormat.RM_XLOG_ID;
        int type = from.getByte(start + WalRecordFormat.XL_INFO) & 0xF0;
        if (isXlog && type == WalRecordFormat.XLOG_SWITCH) {
            after = after + segmentSize - 1 & -(long) segmentSize;
        }
        String wrong = record.decode(from, start, length, position, after);
        if (wrong != null) {
            return ended(Reason.BAD_RECORD_CONTENT, position, "in the record, " + wrong);
        }
        boolean isOverwrite = isXlog && type == WalRecordFormat.XLOG_OVERWRITE_CONTRECORD;
        if ((isOverwrite && sequential || skippedRecord != 0) && !namesSkippedRecord(isOverwrite)) {
            return ended(
                    Reason.BAD_CONTINUATION,
                    position,
                    "the record that was written over another names not "
                            + Lsn.format(skippedRecord));
        }
        next = after;
        lastRecord = position;
        lastFileTimeline = pages.fileTimeline();
        sequential = true;
        return Outcome.RECORD;
    }

    /**
     * A record over which another was written counts as skipped only when that one names its start,
     * past the page header (WAL-11).
     */
    private boolean namesSkippedRecord(boolean isOverwrite) {
        return isOverwrite && record.dataLength() >= 8 && record.data().getLong(0) == skippedRecord;
    }

    private int checksum(ByteBuffer bytes, int start, int length) {
        crc.reset();
        bytes.limit(start + length).position(start + HEADER_SIZE);
        crc.update(bytes);
        bytes.limit(start + WalRecordFormat.XL_CRC).position(start);
        crc.update(bytes);
        bytes.clear();
        return (int) crc.getValue();
    }

    private boolean lengthIsPossible(int length, long position) {
        if (length == 0) {
            ended(Reason.ZERO_LENGTH, position, "there are zeros instead of a record");
            return false;
        }
        // A negative one is above 2 GiB.
        if (length < HEADER_SIZE || length > WalRecordFormat.MAX_LENGTH) {
            ended(
                    Reason.BAD_LENGTH,
                    position,
                    "no record has a length of " + Integer.toUnsignedString(length) + " bytes");
            return false;
        }
        return true;
    }

    /** (PostgreSQL: ValidXLogRecordHeader.) */
    private boolean headerIsGood(UnsafeBuffer from, int at, long position) {
        int rmid = from.getByte(at + WalRecordFormat.XL_RMID) & 0xFF;
        if (!WalRecordFormat.rmidIsValid(rmid)) {
            ended(Reason.BAD_RESOURCE_MANAGER, position, "there is no resource manager " + rmid);
            return false;
        }
        long prev = from.getLong(at + WalRecordFormat.XL_PREV);
        if (sequential ? prev != lastRecord : !Lsn.before(prev, position)) {
            ended(
                    Reason.BAD_PREV_LINK,
                    position,
                    "the record says that " + Lsn.format(prev) + " is before it");
            return false;
        }
        return true;
    }

    private void reserveAssembly(int used, int needed) {
        if (needed <= assembly.capacity()) {
            return;
        }
        // WAL-2: twice what has arrived, never what the record merely claims.
        int capacity =
                (int)
                        Math.min(
                                WalRecordFormat.MAX_LENGTH,
                                Math.max(needed, 2L * assembly.capacity()));
        ByteBuffer larger = ByteBuffer.allocateDirect(capacity);
        UnsafeBuffer view = new UnsafeBuffer(larger);
        view.putBytes(0, assembly, 0, used);
        BufferUtil.free(assemblyBytes);
        assemblyBytes = larger;
        assembly = view;
    }

    private void shrinkAssembly() {
        if (assembly.capacity() > 16 * ASSEMBLY_SIZE) {
            BufferUtil.free(assemblyBytes);
            assemblyBytes = ByteBuffer.allocateDirect(ASSEMBLY_SIZE);
            assembly = new UnsafeBuffer(assemblyBytes);
        }
    }

    /** WAL-5. */
    private boolean isStop(long position) {
        return stop != 0 && Lsn.atOrAfter(position, stop);
    }

    private Outcome stopped(long position) {
        return ended(
                Reason.STOP_POSITION,
                position,
                "the position at which to stop, " + Lsn.format(stop) + ", is reached");
    }

    private Outcome pageEnd(long position) {
        return ended(pages.failure(), position, pages.failureDetail());
    }

    private Outcome wrongFile(long position) {
        return ended(
                Reason.MISSING_SEGMENT,
                position,
                "the timeline changes here, and the newer one's segment is not there");
    }

    private Outcome ended(Reason reason, long position, String detail) {
        end = new EndOfWal(reason, position, detail + " lsn=" + Lsn.format(position));
        return Outcome.END;
    }

    private Outcome aborted(long position, long page, Outcome outcome) {
        abortedRecord = position;
        missingContinuation = page;
        return outcome;
    }
}
