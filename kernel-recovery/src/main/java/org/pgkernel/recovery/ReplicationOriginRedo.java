package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * Replay progress of logical subscriptions. Not covered yet: the state would have to be kept in
 * {@code pg_logical/replorigin_checkpoint}. (PostgreSQL: replorigin_redo, origin.c.)
 */
final class ReplicationOriginRedo implements ResourceManager {
    static final int SET = 0x00;
    static final int DROP = 0x10;

    @Override
    public int id() {
        return RmgrIds.REPLICATION_ORIGIN;
    }

    @Override
    public String name() {
        return "ReplicationOrigin";
    }

    @Override
    public String identify(int info) {
        return switch (info) {
            case SET -> "SET";
            case DROP -> "DROP";
            default -> null;
        };
    }

    @Override
    public boolean covers(int info) {
        return false;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        throw new DamagedDataException(
                "ReplicationOrigin records are not covered: lsn=" + Lsn.format(record.lsn()));
    }
}
