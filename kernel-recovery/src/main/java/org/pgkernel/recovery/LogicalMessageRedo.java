package org.pgkernel.recovery;

import org.pgkernel.wal.WalRecord;

/**
 * Messages of logical decoding: they concern decoders only, replay does nothing. (PostgreSQL:
 * logicalmsg_redo, message.c.)
 */
final class LogicalMessageRedo implements ResourceManager {
    static final int MESSAGE = 0x00;

    @Override
    public int id() {
        return RmgrIds.LOGICAL_MESSAGE;
    }

    @Override
    public String name() {
        return "LogicalMessage";
    }

    @Override
    public String identify(int info) {
        return (info & 0xF0) == MESSAGE ? "MESSAGE" : null;
    }

    @Override
    public boolean covers(int info) {
        return (info & 0xF0) == MESSAGE;
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {}
}
