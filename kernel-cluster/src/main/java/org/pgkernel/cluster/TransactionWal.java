package org.pgkernel.cluster;

import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.xact.XactWal;

/** The log as transactions see it. */
record TransactionWal(WalInserter inserter) implements XactWal {
    @Override
    public long insert(WalRecordBuilder record) {
        return inserter.insert(record);
    }

    @Override
    public void flush(long lsn) {
        inserter.flush(lsn);
    }

    @Override
    public void flushSoon(long lsn) {
        inserter.flushLater(lsn);
    }
}
