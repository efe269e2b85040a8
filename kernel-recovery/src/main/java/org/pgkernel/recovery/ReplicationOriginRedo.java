package org.pgkernel.recovery;

import org.pgkernel.wal.WalRecord;

/**
 * Replay progress of logical subscriptions. Not covered yet: the state would have to be kept in
 * {@code pg_logical/replorigin_checkpoint}. (PostgreSQL: replorigin_redo, origin.c.)
 */
final class ReplicationOriginRedo extends AbstractResourceManager {
    static final int SET = 0x00;
    static final int DROP = 0x10;

    ReplicationOriginRedo() {
        super(RmgrIds.REPLICATION_ORIGIN, "SET", "DROP");
    }

    /** Whole, unlike the others'. (PostgreSQL: replorigin_identify.) */
    @Override
    public String identify(int info) {
        return (info & 0x0F) == 0 ? super.identify(info) : null;
    }

    @Override
    public boolean covers(int info) {
        return false;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        throw new AssertionError(name() + " records are refused before redo begins");
    }
}
