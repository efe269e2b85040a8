package org.pgkernel.wal;

import org.pgkernel.base.disk.Disk;

/** Appends records to segment files, single-threaded: enough for the end of recovery. */
public final class WalWriter implements AutoCloseable {
    /**
     * @param startLsn where the first record goes; the page before it is read from the segment so that the tail is kept, the rest of the
     *     page is zeroed
     * @param prevLsn start of the record before, for xl_prev
     * @param missingContinuation 0, or the page start at which an OVERWRITE_CONTRECORD record must go (then startLsn is there)
     */
    public WalWriter(Disk disk, String directory, int timeline, int segmentSize, long systemIdentifier, long startLsn, long prevLsn, long missingContinuation) {}

    /** Inserts the record. @return its end LSN (the position after it, as pages carry it) */
    public long append(WalRecordBuilder record) {
        throw new AssertionError("stub");
    }

    /** Start of the last record appended. */
    public long lastRecord() {
        throw new AssertionError("stub");
    }

    /** Where the next record will begin. A record is never begun in a page header: this is past it. */
    public long nextRecordLsn() {
        throw new AssertionError("stub");
    }

    /** Writes and syncs everything appended. A failure is fatal (KernelStoppedException). */
    public void flush() {}

    /** Copies the segment of {@code switchPoint} from the old timeline's file up to it, zeroes after; durable on return. (PostgreSQL: XLogFileCopy, XLogInitNewTimeline.) */
    public static void copySegmentForNewTimeline(Disk disk, String directory, int oldTimeline, int newTimeline, long switchPoint, int segmentSize) {
        throw new AssertionError("stub");
    }

    @Override
    public void close() {}
}
