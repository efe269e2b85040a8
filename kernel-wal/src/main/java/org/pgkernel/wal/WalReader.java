package org.pgkernel.wal;

import org.pgkernel.base.disk.Disk;

/**
 * Reads records in order from the segment files of a directory. Strict and total: any bytes give records or a typed end; never an
 * escaping exception, a hang, or an allocation that follows from an unverified length. Not thread-safe.
 */
public final class WalReader implements AutoCloseable {
    /**
     * @param directory pg_wal, absolute
     * @param timelines which timeline each position is on
     * @param systemIdentifier expected in long page headers; 0 accepts any
     */
    public WalReader(Disk disk, String directory, TimelineHistory timelines, int segmentSize, long systemIdentifier) {}

    /** Goes to {@code lsn}, which must be the start of a record; the first read does not check the prev-link. */
    public void begin(long lsn) {}

    /** Records that begin at or after {@code lsn} are not returned; 0 for no limit. */
    public void stopAt(long lsn) {}

    /** The next record, or null: then {@link #end} tells why. After null one may call again (a standby waits for more). */
    public WalRecord next() {
        throw new AssertionError("stub");
    }

    /** Why {@link #next} returned null. */
    public EndOfWal end() {
        throw new AssertionError("stub");
    }

    /** End of the last good record: new WAL continues here. */
    public long endOfLastRecord() {
        throw new AssertionError("stub");
    }

    /** Start of the last good record. */
    public long lastRecord() {
        throw new AssertionError("stub");
    }

    /** Start of a record whose continuation never came, 0 for none. (PostgreSQL: abortedRecPtr.) */
    public long abortedRecord() {
        throw new AssertionError("stub");
    }

    /** Where the missing continuation should have begun. (PostgreSQL: missingContrecPtr.) */
    public long missingContinuation() {
        throw new AssertionError("stub");
    }

    @Override
    public void close() {}
}
