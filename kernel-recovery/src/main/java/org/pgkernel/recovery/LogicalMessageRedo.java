package org.pgkernel.recovery;

import org.pgkernel.wal.WalRecord;

/**
 * Messages of logical decoding: they concern decoders only, replay does nothing. (PostgreSQL:
 * logicalmsg_redo, message.c.)
 */
final class LogicalMessageRedo extends AbstractResourceManager {
    static final int MESSAGE = 0x00;

    LogicalMessageRedo() {
        super(RmgrIds.LOGICAL_MESSAGE, "MESSAGE");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {}
}
