package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * New pages, new multixacts and truncation of pg_multixact. (PostgreSQL: multixact_redo,
 * multixact.c.)
 */
final class MultiXactResourceManager extends SlruResourceManager {
    static final int ZERO_OFF_PAGE = 0x00;
    static final int ZERO_MEM_PAGE = 0x10;
    static final int CREATE_ID = 0x20;
    static final int TRUNCATE_ID = 0x30;

    private static final int CREATE_HEADER = 12;
    private static final int MEMBER_SIZE = 8;
    private static final int TRUNCATE_SIZE = 20;

    private final MultiXactLog log;
    private final XactCounters counters;

    MultiXactResourceManager(MultiXactLog log, XactCounters counters) {
        super(RmgrIds.MULTIXACT, "ZERO_OFF_PAGE", "ZERO_MEM_PAGE", "CREATE_ID", "TRUNCATE_ID");
        this.log = log;
        this.counters = counters;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case ZERO_OFF_PAGE -> log.zeroOffsetsPageNow(page(record, 4, log.offsets()));
            case ZERO_MEM_PAGE -> log.zeroMembersPageNow(page(record, 4, log.members()));
            case CREATE_ID -> create(record);
            case TRUNCATE_ID -> truncate(record);
            default -> throw unknown(record);
        }
    }

    /** multixact 4, offset of its first member 4, count 4, then each member: xid 4, lock mode 4. */
    private void create(WalRecord record) {
        requireLength(record, CREATE_HEADER);
        DirectBuffer data = record.data();
        int multi = data.getInt(0);
        int offset = data.getInt(4);
        int count = data.getInt(8);
        if (count < 0 || count > (record.dataLength() - CREATE_HEADER) / MEMBER_SIZE) {
            throw damaged(record, "its members run past its end");
        }
        int latest = record.xid();
        for (int i = 0; i < count; i++) {
            int at = CREATE_HEADER + i * MEMBER_SIZE;
            int mode = data.getInt(at + 4);
            if (mode < 0 || mode > MultiXactLog.MAX_STATUS) {
                throw damaged(record, "there is no lock mode " + mode);
            }
            int xid = data.getInt(at);
            if (TransactionId.precedes(latest, xid)) {
                latest = xid;
            }
        }
        log.record(multi, offset, data, CREATE_HEADER, count);
        counters.advanceNextMulti(multi + 1, offset + count);
        counters.advancePastXid(latest);
    }

    /**
     * database of the oldest multixact 4, offsets to remove from 4 and to 4, members to remove from
     * 4 and to 4.
     */
    private void truncate(WalRecord record) {
        requireLength(record, TRUNCATE_SIZE);
        DirectBuffer data = record.data();
        int newOldest = data.getInt(8);
        if (newOldest == 0) {
            throw damaged(record, "its oldest multixact is not valid");
        }
        counters.oldestMulti(newOldest, data.getInt(0));
        log.truncate(newOldest, data.getInt(12), data.getInt(16));
    }
}
