package org.pgkernel.xact;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/** Words for records that are not what their format demands. */
final class Damage {
    private Damage() {}

    static DamagedDataException of(String manager, WalRecord record, String type, String why) {
        return new DamagedDataException(
                "a "
                        + manager
                        + "/"
                        + type
                        + " record is damaged: "
                        + why
                        + ". lsn="
                        + Lsn.format(record.lsn()));
    }

    /** Demands that the main data is at least {@code needed} bytes long. */
    static void requireLength(String manager, WalRecord record, String type, int needed) {
        if (record.dataLength() < needed) {
            throw of(
                    manager,
                    record,
                    type,
                    "it has " + record.dataLength() + " bytes instead of " + needed);
        }
    }

    /** The page number that a record begins with, checked. */
    static int page(String manager, WalRecord record, String type, int maxPage) {
        int page = record.data().getInt(0);
        if (page < 0 || page > maxPage) {
            throw of(manager, record, type, "there is no page " + page);
        }
        return page;
    }
}
