package org.pgkernel.xact;

import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/** New pages and truncation of pg_xact. (PostgreSQL: clog_redo, clog.c.) */
final class CommitLogResourceManager extends SlruResourceManager {
    static final int ZEROPAGE = 0x00;
    static final int TRUNCATE = 0x10;

    private final CommitLog log;

    CommitLogResourceManager(CommitLog log) {
        super(RmgrIds.CLOG, "ZEROPAGE", "TRUNCATE");
        this.log = log;
    }

    /** ZEROPAGE: page 4. TRUNCATE: page 4, oldest xid 4, its database 4. */
    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case ZEROPAGE -> log.zeroPageNow(page(record, 4, log.slru()));
            case TRUNCATE -> log.truncate(page(record, 12, log.slru()));
            default -> throw unknown(record);
        }
    }
}
