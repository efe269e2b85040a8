package org.pgkernel.xact;

import org.pgkernel.wal.WalRecordBuilder;

/**
 * What transactions ask of the write-ahead log. All methods may be called by many threads at once;
 * none may take a lock of this module. A failure that leaves open what became of a record must be a
 * {@link org.pgkernel.base.error.KernelStoppedException}.
 */
public interface XactWal {
    /**
     * Inserts a record, which the caller may reuse afterwards.
     *
     * @return its end (PostgreSQL: XLogInsert)
     */
    long insert(WalRecordBuilder record);

    /** Returns once everything before the position is durable. (PostgreSQL: XLogFlush) */
    void flush(long lsn);

    /** Tells that it should become durable soon. (PostgreSQL: XLogSetAsyncXactLSN) */
    void flushSoon(long lsn);
}
