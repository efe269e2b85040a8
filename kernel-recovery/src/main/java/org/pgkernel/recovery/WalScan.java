package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.wal.EndOfWal;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * Reads the local WAL once before anything is written: finds its end, and refuses it when a record
 * is of a type that redo cannot apply. A record that is not understood is never skipped.
 */
public final class WalScan {
    /**
     * What the scan found. @param records number of records; @param end why and where the WAL
     * ends; @param lastRecord start of the last one
     */
    public record Result(long records, EndOfWal end, long lastRecord, long endOfLastRecord) {}

    private WalScan() {}

    /**
     * @param reader positioned at the first record, see {@link WalReader#begin}
     * @throws RefusedException naming resource manager, type and LSN of the first record that is
     *     not covered
     */
    public static Result scan(WalReader reader, RecoveryModules modules) {
        long records = 0;
        long last = Lsn.INVALID;
        long end = Lsn.INVALID;
        WalRecord record;
        while ((record = reader.next()) != null) {
            ResourceManager manager = modules.manager(record.rmid());
            if (manager == null || !manager.covers(record)) {
                throw new RefusedException(
                        "redo of "
                                + modules.identify(record.rmid(), record.info())
                                + (manager != null && manager.covers(record.info())
                                        ? " records that carry what this one does"
                                        : " records")
                                + " is not covered, and the WAL holds one: lsn="
                                + Lsn.format(record.lsn()));
            }
            records++;
            last = record.lsn();
            end = record.endLsn();
        }
        return new Result(records, reader.end(), last, end);
    }
}
