package org.pgkernel.cluster;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RecoveredCounters;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * Numbers for tables and for their files. The log says how far they may go, for many at a time; a
 * crash skips what was left of them. They wrap past 2^32 and begin again at the first one that is
 * nobody's by definition: who takes one looks whether it is free. Thread-safe. (PostgreSQL:
 * GetNewObjectId, varsup.c; XLogPutNextOid.)
 */
final class OidCounter {
    /** (PostgreSQL: VAR_OID_PREFETCH.) */
    static final int PREFETCH = 8192;

    private static final int NEXTOID = 0x30;

    private final RecoveredCounters counters;
    private final WalInserter wal;
    private final WalRecordBuilder record = new WalRecordBuilder();
    private final UnsafeBuffer body = new UnsafeBuffer(new byte[4]);

    // Under this monitor.
    private int next;
    private int logged;

    OidCounter(RecoveredCounters counters, WalInserter wal) {
        this.counters = counters;
        this.wal = wal;
        next = counters.nextOid();
    }

    synchronized int next() {
        if (Integer.compareUnsigned(next, ClusterCreation.FIRST_NORMAL_OID) < 0) {
            // Wrapped, or the first after PostgreSQL's bootstrap.
            next = ClusterCreation.FIRST_NORMAL_OID;
            logged = 0;
        }
        if (logged == 0) {
            log(next + PREFETCH);
            logged = PREFETCH;
        }
        logged--;
        return next++;
    }

    /**
     * Checkpoints read the counter: it is moved before the record is inserted, so that a checkpoint
     * whose redo point lies behind the record knows of it. Nothing waits for the record to be
     * durable: whatever uses the number is logged after it.
     */
    private void log(int limit) {
        counters.nextOid(limit);
        body.putInt(0, limit);
        wal.insert(record.begin(RmgrIds.XLOG, NEXTOID, TransactionId.INVALID).data(body, 0, 4));
    }

    /** Nobody takes a number any more: the last checkpoint gives back what is left. */
    synchronized void shutdown() {
        counters.nextOid(next);
    }
}
