package org.pgkernel.index;

import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * Demands on a record, before anything is read from it. The messages lack the place, which the
 * resource manager adds.
 */
final class RecordCheck {
    private RecordCheck() {}

    static void mainData(WalRecord record, int needed) {
        if (record.dataLength() < needed) {
            throw new DamagedDataException(
                    "the record has "
                            + record.dataLength()
                            + " bytes of main data instead of "
                            + needed);
        }
    }

    static void block(WalRecord record, int id) {
        if (id > record.maxBlockId() || !record.hasBlock(id)) {
            throw new DamagedDataException("the record lacks block reference " + id);
        }
    }

    /** Two references to pages that redo locks together: one page twice would wait for itself. */
    static void distinct(WalRecord record, int one, int other) {
        if (record.hasBlock(one)
                && record.hasBlock(other)
                && record.blockNumber(one) == record.blockNumber(other)
                && record.blockRel(one) == record.blockRel(other)
                && record.blockFork(one) == record.blockFork(other)
                && record.blockDb(one) == record.blockDb(other)
                && record.blockSpc(one) == record.blockSpc(other)) {
            throw new DamagedDataException(
                    "block references " + one + " and " + other + " name the same page");
        }
    }

    static void blockData(WalRecord record, int id, int needed) {
        int length = record.hasBlockData(id) ? record.blockDataLength(id) : 0;
        if (length < needed) {
            throw new DamagedDataException(
                    "block reference "
                            + id
                            + " of the record has "
                            + length
                            + " bytes of data instead of "
                            + needed);
        }
    }
}
