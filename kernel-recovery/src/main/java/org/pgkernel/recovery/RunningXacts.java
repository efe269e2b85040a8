package org.pgkernel.recovery;

import org.agrona.ExpandableArrayBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.wal.WalRecordBuilder;

/**
 * What a RUNNING_XACTS record tells a hot standby: who ran at one moment. Filled by {@link
 * RecoveredCounters#running}; one thread. (PostgreSQL: RunningTransactionsData, xl_running_xacts,
 * standbydefs.h.)
 *
 * <pre>
 *  0 xcnt | 4 subxcnt | 8 overflow 1 | 12 nextXid | 16 oldestRunningXid | 20 latestCompletedXid | 24 xids 4 each, subxids after them
 * </pre>
 */
public final class RunningXacts {
    static final int TYPE = 0x10;
    private static final int HEADER = 24;

    private final ExpandableArrayBuffer body = new ExpandableArrayBuffer(HEADER);
    private int count;
    private int subCount;

    /** Forgets everybody. */
    public void clear() {
        count = 0;
        subCount = 0;
        body.setMemory(0, HEADER, (byte) 0);
    }

    /** A transaction that runs; all of them before the first subtransaction. */
    public void add(int xid) {
        assert subCount == 0;
        body.putInt(HEADER + 4 * count++, xid);
    }

    /** A subtransaction of one that runs. */
    public void addSubtransaction(int xid) {
        body.putInt(HEADER + 4 * (count + subCount++), xid);
    }

    /** Not all subtransactions are known: none is told. */
    public void overflowed() {
        body.putByte(8, (byte) 1);
        subCount = 0;
    }

    public void counters(int nextXid, int oldestRunningXid, int latestCompletedXid) {
        body.putInt(12, nextXid);
        body.putInt(16, oldestRunningXid);
        body.putInt(20, latestCompletedXid);
    }

    WalRecordBuilder build(WalRecordBuilder builder) {
        body.putInt(0, count);
        body.putInt(4, subCount);
        return builder.begin(RmgrIds.STANDBY, TYPE, TransactionId.INVALID)
                .data(body, 0, HEADER + 4 * (count + subCount));
    }
}
