package org.pgkernel.xact;

import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.wal.WalRecord;

/** New pages and truncation of pg_xact. (PostgreSQL: clog_redo, clog.c.) */
final class CommitLogResourceManager implements ResourceManager {
    static final int ZEROPAGE = 0x00;
    static final int TRUNCATE = 0x10;

    private final CommitLog log;

    CommitLogResourceManager(CommitLog log) {
        this.log = log;
    }

    @Override
    public int id() {
        return 3;
    }

    @Override
    public String name() {
        return "CLOG";
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

    /** ZEROPAGE: page 4. TRUNCATE: page 4, oldest xid 4, its database 4. */
    @Override
    public void redo(WalRecord record, RedoContext context) {
        String type = identify(record.info());
        if (type == null) {
            throw Damage.of(name(), record, "?", "its type is not known");
        }
        boolean truncate = record.type() == TRUNCATE;
        Damage.requireLength(name(), record, type, truncate ? 12 : 4);
        int page = Damage.page(name(), record, type, log.slru().maxPage());
        if (truncate) {
            log.truncate(page);
        } else {
            log.zeroPageNow(page);
        }
    }
}
