package org.pgkernel.xact;

import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.wal.WalRecord;

/**
 * Records for sessions that read during recovery. There are none, so nothing is to be done.
 * (PostgreSQL: standby_redo with STANDBY_DISABLED.)
 */
final class StandbyResourceManager implements ResourceManager {
    static final int LOCK = 0x00;
    static final int RUNNING_XACTS = 0x10;
    static final int INVALIDATIONS = 0x20;

    @Override
    public int id() {
        return 8;
    }

    @Override
    public String name() {
        return "Standby";
    }

    @Override
    public String identify(int info) {
        return switch (info & 0xF0) {
            case LOCK -> "LOCK";
            case RUNNING_XACTS -> "RUNNING_XACTS";
            case INVALIDATIONS -> "INVALIDATIONS";
            default -> null;
        };
    }

    @Override
    public boolean covers(int info) {
        return identify(info) != null;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {}
}
