package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.wal.WalRecord;

/**
 * New pages, new multixacts and truncation of pg_multixact. (PostgreSQL: multixact_redo,
 * multixact.c.)
 */
final class MultiXactResourceManager implements ResourceManager {
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
        this.log = log;
        this.counters = counters;
    }

    @Override
    public int id() {
        return 6;
    }

    @Override
    public String name() {
        return "MultiXact";
    }

    @Override
    public String identify(int info) {
        return switch (info & 0xF0) {
            case ZERO_OFF_PAGE -> "ZERO_OFF_PAGE";
            case ZERO_MEM_PAGE -> "ZERO_MEM_PAGE";
            case CREATE_ID -> "CREATE_ID";
            case TRUNCATE_ID -> "TRUNCATE_ID";
            default -> null;
        };
    }

    @Override
    public boolean covers(int info) {
        return identify(info) != null;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        String type = identify(record.info());
        switch (record.type()) {
            case ZERO_OFF_PAGE -> {
                Damage.requireLength(name(), record, type, 4);
                log.zeroOffsetsPageNow(Damage.page(name(), record, type, log.offsets().maxPage()));
            }
            case ZERO_MEM_PAGE -> {
                Damage.requireLength(name(), record, type, 4);
                log.zeroMembersPageNow(Damage.page(name(), record, type, log.members().maxPage()));
            }
            case CREATE_ID -> create(record, type);
            case TRUNCATE_ID -> truncate(record, type);
            default -> throw Damage.of(name(), record, "?", "its type is not known");
        }
    }

    /** multixact 4, offset of its first member 4, count 4, then each member: xid 4, lock mode 4. */
    private void create(WalRecord record, String type) {
        Damage.requireLength(name(), record, type, CREATE_HEADER);
        DirectBuffer data = record.data();
        int multi = data.getInt(0);
        int offset = data.getInt(4);
        int count = data.getInt(8);
        if (count < 0 || count > (record.dataLength() - CREATE_HEADER) / MEMBER_SIZE) {
            throw Damage.of(name(), record, type, "its members run past its end");
        }
        int latest = record.xid();
        for (int i = 0; i < count; i++) {
            int at = CREATE_HEADER + i * MEMBER_SIZE;
            int mode = data.getInt(at + 4);
            if (mode < 0 || mode > MultiXactLog.MAX_STATUS) {
                throw Damage.of(name(), record, type, "there is no lock mode " + mode);
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
    private void truncate(WalRecord record, String type) {
        Damage.requireLength(name(), record, type, TRUNCATE_SIZE);
        DirectBuffer data = record.data();
        int newOldest = data.getInt(8);
        if (newOldest == 0) {
            throw Damage.of(name(), record, type, "its oldest multixact is not valid");
        }
        counters.oldestMulti(newOldest, data.getInt(0));
        log.truncate(newOldest, data.getInt(12), data.getInt(16));
    }
}
