package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;

import java.nio.ByteBuffer;
import org.agrona.BufferUtil;
import org.agrona.ExpandableDirectByteBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;

/**
 * Appends records to segment files, single-threaded: enough for the end of recovery.
 *
 * <p>Pages are built in a buffer that never reaches over a segment's end and go to the file whole.
 * A full segment is synced before the first byte of the next one is written. Behind the last record
 * there are always zeros: the rest of its page, or, when that is full, the page after it, so that
 * nothing older can be taken for the log's continuation. (PostgreSQL: CopyXLogRecordToWAL,
 * AdvanceXLInsertBuffer, XLogWrite, xlog.c.)
 */
public final class WalWriter implements AutoCloseable {
    private static final int MAX_BUFFER = 1 << 20;

    private final WalSegmentOutput output;
    private final int timeline;
    private final int segmentSize;
    private final long systemIdentifier;
    private final long missingContinuation;

    /** Pages under construction, and one page of zeros at the end. */
    private final ByteBuffer bufferBytes;

    private final UnsafeBuffer buffer;
    private final int capacity;
    private final ExpandableDirectByteBuffer encoded = new ExpandableDirectByteBuffer(PAGE_SIZE);

    /** LSN of the buffer's first byte, a page's. */
    private long bufferLsn;

    /** First page that the file does not have as the buffer has it. */
    private long dirtyFrom;

    /**
     * Where the next byte goes, a multiple of 8. At a page's start, that page has not been begun.
     */
    private long insert;

    /** All before it is durable. */
    private long flushed;

    private long lastRecord;

    /** Why nothing more is written; null while all is well. */
    private KernelStoppedException stopped;

    private boolean closed;

    /**
     * @param startLsn where the first record goes; the page before it is read from the segment so
     *     that the tail is kept, the rest of the page is zeroed
     * @param prevLsn start of the record before, for xl_prev
     * @param missingContinuation 0, or the page start at which an OVERWRITE_CONTRECORD record must
     *     go (then startLsn is there)
     * @throws RefusedException when no record can begin at {@code startLsn}
     */
    public WalWriter(
            Disk disk,
            String directory,
            int timeline,
            int segmentSize,
            long systemIdentifier,
            long startLsn,
            long prevLsn,
            long missingContinuation) {
        output = new WalSegmentOutput(disk, directory, timeline, segmentSize, systemIdentifier);
        this.timeline = timeline;
        this.segmentSize = segmentSize;
        this.systemIdentifier = systemIdentifier;
        this.missingContinuation = missingContinuation;
        checkStart(directory, segmentSize, startLsn, missingContinuation);
        int offset = (int) startLsn & PAGE_SIZE - 1;
        long page = startLsn - offset;
        capacity = Math.min(segmentSize, MAX_BUFFER);
        bufferBytes = ByteBuffer.allocateDirect(capacity + PAGE_SIZE);
        buffer = new UnsafeBuffer(bufferBytes);
        bufferLsn = page;
        dirtyFrom = page;
        insert = startLsn;
        flushed = startLsn;
        lastRecord = prevLsn;
        if (offset != 0) {
            loadTail(page, offset);
        }
    }

    /** Refuses a place where no record can begin. */
    static void checkStart(
            String directory, int segmentSize, long startLsn, long missingContinuation) {
        if (Integer.bitCount(segmentSize) != 1 || segmentSize < PAGE_SIZE) {
            throw new RefusedException(
                    "WAL segments cannot have " + segmentSize + " bytes file=" + directory);
        }
        int offset = (int) startLsn & PAGE_SIZE - 1;
        long page = startLsn - offset;
        if ((offset & 7) != 0 || offset != 0 && offset < WalPageHeader.sizeAt(page, segmentSize)) {
            throw new RefusedException("no WAL record can begin here lsn=" + Lsn.format(startLsn));
        }
        if (missingContinuation != 0 && (startLsn != missingContinuation || offset != 0)) {
            throw new RefusedException(
                    "WAL cannot be written over a missing continuation at "
                            + Lsn.format(missingContinuation)
                            + " from another place lsn="
                            + Lsn.format(startLsn));
        }
    }

    /** Inserts the record. @return its end LSN (the position after it, as pages carry it) */
    public long append(WalRecordBuilder record) {
        checkUsable();
        int type = record.info() & 0xF0;
        boolean isXlog = record.rmid() == WalRecordFormat.RM_XLOG_ID;
        assert insert != missingContinuation
                        || missingContinuation == 0
                        || isXlog && type == WalRecordFormat.XLOG_OVERWRITE_CONTRECORD
                : "the first record over a missing continuation must say so";
        long start = nextRecordLsn();
        assert (start & 7) == 0 : "WAL-6: a record at " + Lsn.format(start);
        int length = record.encode(encoded, 0, lastRecord);
        int done = 0;
        do {
            if ((insert & PAGE_SIZE - 1) == 0) {
                beginPage(done == 0 ? 0 : length - done);
            }
            int part = Math.min(length - done, PAGE_SIZE - ((int) insert & PAGE_SIZE - 1));
            buffer.putBytes((int) (insert - bufferLsn), encoded, done, part);
            insert += part;
            done += part;
        } while (done < length);
        insert = WalRecordFormat.align(insert);
        lastRecord = start;
        if (isXlog && type == WalRecordFormat.XLOG_SWITCH) {
            fillSegment();
        }
        return insert;
    }

    /** Start of the last record appended. */
    public long lastRecord() {
        return lastRecord;
    }

    /**
     * Where the next record will begin. A record is never begun in a page header: this is past it.
     * (PostgreSQL: XLogBytePosToRecPtr.)
     */
    public long nextRecordLsn() {
        return (insert & PAGE_SIZE - 1) == 0
                ? insert + WalPageHeader.sizeAt(insert, segmentSize)
                : insert;
    }

    /** All before it is durable. */
    public long flushedLsn() {
        return flushed;
    }

    /** Writes and syncs everything appended. A failure is fatal (KernelStoppedException). */
    public void flush() {
        checkUsable();
        if (flushed == insert) {
            return;
        }
        try {
            writeOut();
            if ((insert & PAGE_SIZE - 1) == 0) {
                output.zeroPage(buffer.addressOffset() + capacity, insert);
            }
            output.sync();
        } catch (DiskException | KernelStoppedException e) {
            throw stop(e);
        }
        flushed = insert;
    }

    /**
     * Copies the segment of {@code switchPoint} from the old timeline's file up to it, zeroes
     * after; durable on return. (PostgreSQL: XLogFileCopy, XLogInitNewTimeline.)
     */
    public static void copySegmentForNewTimeline(
            Disk disk,
            String directory,
            int oldTimeline,
            int newTimeline,
            long switchPoint,
            int segmentSize) {
        WalSegmentFile.beginTimeline(
                disk, directory, oldTimeline, newTimeline, switchPoint, segmentSize);
    }

    /** Closes the file. What was appended since the last {@link #flush} is lost. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            output.close();
            BufferUtil.free(bufferBytes);
        }
    }

    /**
     * WAL-7. Takes over the part of the page before the first record; gives the page the header
     * that its place demands when it has none.
     */
    private void loadTail(long page, int offset) {
        output.readExisting(buffer.addressOffset(), page);
        buffer.setMemory(offset, PAGE_SIZE - offset, (byte) 0);
        WalPageHeader.repair(buffer, 0, page, timeline, segmentSize, systemIdentifier);
    }

    /**
     * @param remaining bytes of a record begun on an earlier page, 0 for none
     */
    private void beginPage(int remaining) {
        boolean isFirst = WalSegmentName.offsetIn(insert, segmentSize) == 0;
        if (insert - bufferLsn == capacity || isFirst) {
            try {
                writeOut();
            } catch (DiskException | KernelStoppedException e) {
                throw stop(e);
            }
            bufferLsn = insert;
            dirtyFrom = insert;
        }
        int at = (int) (insert - bufferLsn);
        buffer.setMemory(at, PAGE_SIZE, (byte) 0);
        WalPageHeader.init(buffer, at, insert, timeline, segmentSize, systemIdentifier);
        if (remaining != 0) {
            WalPageHeader.setContinuation(buffer, at, remaining);
        }
        if (insert == missingContinuation && missingContinuation != 0) {
            WalPageHeader.addInfo(buffer, at, WalPageHeader.XLP_FIRST_IS_OVERWRITE_CONTRECORD);
        }
        insert += WalPageHeader.sizeAt(insert, segmentSize);
    }

    /**
     * Writes every page that has changed; the last one, if not full, stays in the buffer and will
     * be written again.
     */
    private void writeOut() {
        long end = insert + PAGE_SIZE - 1 & -PAGE_SIZE;
        if (end == dirtyFrom) {
            return;
        }
        output.write(
                buffer.addressOffset() + (dirtyFrom - bufferLsn),
                (int) (end - dirtyFrom),
                dirtyFrom);
        dirtyFrom = insert & -PAGE_SIZE;
    }

    /** After an XLOG_SWITCH the rest of the segment is zeros, without page headers. */
    private void fillSegment() {
        long segmentEnd = insert + segmentSize - 1 & -(long) segmentSize;
        try {
            writeOut();
            output.zeroRestOfSegment(insert + PAGE_SIZE - 1 & -PAGE_SIZE, segmentEnd);
        } catch (DiskException | KernelStoppedException e) {
            throw stop(e);
        }
        insert = segmentEnd;
        bufferLsn = segmentEnd;
        dirtyFrom = segmentEnd;
    }

    private void checkUsable() {
        assert !closed : "writer is closed";
        if (stopped != null) {
            throw new KernelStoppedException(
                    "WAL cannot be written any more: " + stopped.getMessage(), stopped);
        }
    }

    /** WAL-12. What the file holds now is unknown: a failed write or sync is never tried again. */
    private KernelStoppedException stop(KernelException cause) {
        stopped =
                new KernelStoppedException(
                        "WAL could not be written: "
                                + cause.getMessage()
                                + " lsn="
                                + Lsn.format(insert),
                        cause);
        return stopped;
    }
}
