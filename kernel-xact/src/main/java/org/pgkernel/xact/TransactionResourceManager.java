package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * Commits and aborts: sets the status of the transaction and its subtransactions and removes the
 * files of the relations that the record lists. Records of prepared transactions are not covered.
 * (PostgreSQL: xact_redo, xact.c.)
 */
final class TransactionResourceManager extends AbstractResourceManager {
    static final int OPCODE_MASK = 0x70;
    static final int COMMIT = 0x00;
    static final int PREPARE = 0x10;
    static final int ABORT = 0x20;
    static final int COMMIT_PREPARED = 0x30;
    static final int ABORT_PREPARED = 0x40;
    static final int ASSIGNMENT = 0x50;
    static final int INVALIDATIONS = 0x60;

    /** An origin that is none: it only keeps changes from being sent back. (DoNotReplicateId) */
    private static final int DO_NOT_REPLICATE = 0xFFFF;

    private final CommitLog commitLog;
    private final CommitTimestampLog commitTimestamps;
    private final XactCounters counters;
    private final XactRecord parsed = new XactRecord();
    private int[] locators = new int[3 * 16];

    TransactionResourceManager(
            CommitLog commitLog, CommitTimestampLog commitTimestamps, XactCounters counters) {
        super(
                RmgrIds.TRANSACTION,
                "COMMIT",
                "PREPARE",
                "ABORT",
                "COMMIT_PREPARED",
                "ABORT_PREPARED",
                "ASSIGNMENT",
                "INVALIDATION");
        this.commitLog = commitLog;
        this.commitTimestamps = commitTimestamps;
        this.counters = counters;
    }

    /** The uppermost bit is a flag, not part of the type. */
    @Override
    public String identify(int info) {
        return super.identify(info & OPCODE_MASK);
    }

    @Override
    public boolean covers(int info) {
        return switch (info & OPCODE_MASK) {
            case COMMIT, ABORT, ASSIGNMENT, INVALIDATIONS -> true;
            default -> false;
        };
    }

    /**
     * Not those that move a replication origin on, whose progress would be lost. (PostgreSQL:
     * replorigin_advance in xact_redo_commit.)
     */
    @Override
    public boolean covers(WalRecord record) {
        int opcode = record.info() & OPCODE_MASK;
        boolean ends = opcode == COMMIT || opcode == ABORT;
        boolean hasOrigin =
                ends
                        && (record.info() & XactRecord.HAS_INFO) != 0
                        && record.dataLength() >= 12
                        && (record.data().getInt(8) & XactRecord.HAS_ORIGIN) != 0;
        return covers(record.info()) && (!hasOrigin || record.origin() == DO_NOT_REPLICATE);
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.info() & OPCODE_MASK) {
            case COMMIT -> redoCommit(record, context);
            case ABORT -> redoAbort(record, context);
            // Both serve sessions that read during recovery; there are none.
            case ASSIGNMENT, INVALIDATIONS -> {}
            default -> throw unknown(record);
        }
    }

    private void redoCommit(WalRecord record, RedoContext context) {
        parse(record, true);
        int xid = record.xid();
        DirectBuffer data = record.data();
        advance(xid, data);
        long time = parsed.has(XactRecord.HAS_ORIGIN) ? parsed.originTime : parsed.time;
        commitTimestamps.setTree(
                xid, data, parsed.subxactsOffset, parsed.subxacts, time, record.origin(), counters);
        commitLog.setTreeStatus(
                xid, data, parsed.subxactsOffset, parsed.subxacts, CommitLog.COMMITTED);
        dropFiles(record, context);
        if (parsed.has(XactRecord.FORCE_SYNC_COMMIT)) {
            context.flushTo(record.endLsn());
        }
    }

    /** The record may be a subtransaction's with its children. (PostgreSQL: xact_redo_abort.) */
    private void redoAbort(WalRecord record, RedoContext context) {
        parse(record, false);
        int xid = record.xid();
        DirectBuffer data = record.data();
        advance(xid, data);
        commitLog.setTreeStatus(
                xid, data, parsed.subxactsOffset, parsed.subxacts, CommitLog.ABORTED);
        dropFiles(record, context);
    }

    private void parse(WalRecord record, boolean isCommit) {
        if (!TransactionId.isNormal(record.xid())) {
            throw damaged(record, "it has no transaction id");
        }
        String problem = parsed.parse(record.info(), record.data(), record.dataLength(), isCommit);
        if (problem != null) {
            throw damaged(record, problem);
        }
    }

    /** Moves the next xid past every xid of the record. (PostgreSQL: TransactionIdLatest.) */
    private void advance(int xid, DirectBuffer data) {
        int latest = xid;
        for (int i = parsed.subxacts - 1; i >= 0; i--) {
            int subxid = data.getInt(parsed.subxactsOffset + i * 4);
            if (TransactionId.precedes(latest, subxid)) {
                latest = subxid;
            }
        }
        counters.advancePastXid(latest);
    }

    /**
     * There is no way back once a file is gone, so the minimum recovery point covers the record
     * first. Dropped statistics have no effect but that flush: statistics are thrown away after a
     * crash. (PostgreSQL: xact_redo_commit.)
     */
    private void dropFiles(WalRecord record, RedoContext context) {
        if (parsed.relations > 0) {
            int count = parsed.relations;
            if (locators.length < count * 3) {
                locators = new int[Math.max(count * 3, locators.length * 2)];
            }
            DirectBuffer data = record.data();
            for (int i = 0; i < count * 3; i++) {
                locators[i] = data.getInt(parsed.relationsOffset + i * 4);
            }
            context.flushTo(record.endLsn());
            context.dropRelations(locators, count);
        }
        if (parsed.stats > 0) {
            context.flushTo(record.endLsn());
        }
    }
}
