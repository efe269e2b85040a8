package org.pgkernel.xact;

import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * Records for sessions that read during recovery. There are none, so nothing is to be done.
 * (PostgreSQL: standby_redo with STANDBY_DISABLED.)
 */
final class StandbyResourceManager extends AbstractResourceManager {
    StandbyResourceManager() {
        super(RmgrIds.STANDBY, "LOCK", "RUNNING_XACTS", "INVALIDATIONS");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {}
}
