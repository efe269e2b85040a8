package org.pgkernel.wal;

/**
 * Why there is no further record.
 *
 * @param reason the kind of end
 * @param lsn where the next record would have begun
 * @param detail one sentence for people
 */
public record EndOfWal(Reason reason, long lsn, String detail) {
    /** Kinds of end; only the reader decides. */
    public enum Reason {
        /** The segment file is not there. */
        MISSING_SEGMENT,
        /** The segment is shorter than a page of it that is needed. */
        SHORT_SEGMENT,
        /** Zeros where a record header should be. */
        ZERO_LENGTH,
        /** A length below the header's or above what can be. */
        BAD_LENGTH,
        /** A page header of another use of the file, timeline, system or version. */
        BAD_PAGE_HEADER,
        /** A continuation flag or remaining length that does not fit. */
        BAD_CONTINUATION,
        BAD_PREV_LINK,
        BAD_RESOURCE_MANAGER,
        BAD_CRC,
        /** CRC right, but block headers or lengths contradict each other. */
        BAD_RECORD_CONTENT,
        /** The reader was told not to go past this position. */
        STOP_POSITION
    }
}
