package org.pgkernel.recovery;

import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.wal.WalRecord;

/**
 * Creation and removal of tablespaces. Not covered yet: both deal in symbolic links to places
 * outside the data directory, which a copy of a cluster must not touch unasked. (PostgreSQL:
 * tblspc_redo, tablespace.c.)
 */
final class TablespaceRedo implements ResourceManager {
    static final int CREATE = 0x00;
    static final int DROP = 0x10;

    @Override
    public int id() {
        return RmgrIds.TABLESPACE;
    }

    @Override
    public String name() {
        return "Tablespace";
    }

    @Override
    public String identify(int info) {
        return switch (info & 0xF0) {
            case CREATE -> "CREATE";
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
                "Tablespace records are not covered: lsn=" + Lsn.format(record.lsn()));
    }
}
