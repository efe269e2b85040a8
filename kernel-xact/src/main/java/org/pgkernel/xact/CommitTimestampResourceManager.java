package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.wal.WalRecord;

/** New pages and truncation of pg_commit_ts. (PostgreSQL: commit_ts_redo, commit_ts.c.) */
final class CommitTimestampResourceManager implements ResourceManager {
    static final int ZEROPAGE = 0x00;
    static final int TRUNCATE = 0x10;

    private final CommitTimestampLog log;
    private final XactCounters counters;

    CommitTimestampResourceManager(CommitTimestampLog log, XactCounters counters) {
        this.log = log;
        this.counters = counters;
    }

    @Override
    public int id() {
        return 18;
    }

    @Override
    public String name() {
        return "CommitTs";
    }

    @Override
    public String identify(int info) {
        return switch (info & 0xF0) {
            case ZEROPAGE -> "ZEROPAGE";
            case TRUNCATE -> "TRUNCATE";
            default -> null;
        };
    }

    @Override
    public boolean covers(int info) {
        return identify(info) != null;
    }

    /** ZEROPAGE: page 4. TRUNCATE: page 4, oldest xid 4. */
    @Override
    public void redo(WalRecord record, RedoContext context) {
        String type = identify(record.info());
        if (type == null) {
            throw Damage.of(name(), record, "?", "its type is not known");
        }
        boolean truncate = record.type() == TRUNCATE;
        Damage.requireLength(name(), record, type, truncate ? 8 : 4);
        int page = Damage.page(name(), record, type, log.slru().maxPage());
        if (truncate) {
            int oldest = record.data().getInt(4);
            if (counters.oldestCommitTsXid() != TransactionId.INVALID
                    && TransactionId.precedes(counters.oldestCommitTsXid(), oldest)) {
                counters.commitTsXids(oldest, counters.newestCommitTsXid());
            }
            log.truncate(page);
        } else {
            log.zeroPageNow(page);
        }
    }
}
