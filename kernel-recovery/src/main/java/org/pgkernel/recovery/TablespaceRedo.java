package org.pgkernel.recovery;

import org.pgkernel.wal.WalRecord;

/**
 * Creation and removal of tablespaces. Not covered yet: both deal in symbolic links to places
 * outside the data directory, which a copy of a cluster must not touch unasked. (PostgreSQL:
 * tblspc_redo, tablespace.c.)
 */
final class TablespaceRedo extends AbstractResourceManager {
    static final int CREATE = 0x00;
    static final int DROP = 0x10;

    TablespaceRedo() {
        super(RmgrIds.TABLESPACE, "CREATE", "DROP");
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
