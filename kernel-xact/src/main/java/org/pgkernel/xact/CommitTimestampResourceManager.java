package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/** New pages and truncation of pg_commit_ts. (PostgreSQL: commit_ts_redo, commit_ts.c.) */
final class CommitTimestampResourceManager extends SlruResourceManager {
    static final int ZEROPAGE = 0x00;
    static final int TRUNCATE = 0x10;

    private final CommitTimestampLog log;
    private final XactCounters counters;

    CommitTimestampResourceManager(CommitTimestampLog log, XactCounters counters) {
        super(RmgrIds.COMMIT_TS, "ZEROPAGE", "TRUNCATE");
        this.log = log;
        this.counters = counters;
    }

    /** ZEROPAGE: page 4. TRUNCATE: page 4, oldest xid 4. */
    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case ZEROPAGE -> log.zeroPageNow(page(record, 4, log.slru()));
            case TRUNCATE -> truncate(page(record, 8, log.slru()), record.data().getInt(4));
            default -> throw unknown(record);
        }
    }

    private void truncate(int page, int oldest) {
        if (counters.oldestCommitTsXid() != TransactionId.INVALID
                && TransactionId.precedes(counters.oldestCommitTsXid(), oldest)) {
            counters.commitTsXids(oldest, counters.newestCommitTsXid());
        }
        log.truncate(page);
    }
}
