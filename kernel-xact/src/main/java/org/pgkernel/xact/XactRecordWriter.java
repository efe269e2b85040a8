package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.wal.WalRecordFormat;

/**
 * Lays out the records of commits, aborts and assignments, as {@link XactRecord} shows them; one
 * session's. What never occurs here is left out: dropped statistics, invalidations (there is no
 * catalog cache elsewhere to tell), prepared transactions, origins. (PostgreSQL:
 * XactLogCommitRecord, XactLogAbortRecord, xact.c.)
 */
final class XactRecordWriter {
    private final WalRecordBuilder builder = new WalRecordBuilder();
    private final ExpandableArrayBuffer data = new ExpandableArrayBuffer(512);

    /**
     * @param xid of the record's header: the transaction that ends
     * @param flags of xinfo that do not announce a part
     * @param subxids {@code subcount} from {@code subOffset} on, the transaction's own not among
     *     them
     * @param level of the drops
     * @return valid until the next one is built
     */
    WalRecordBuilder end(
            boolean commit,
            int xid,
            long time,
            int flags,
            DirectBuffer subxids,
            int subOffset,
            int subcount,
            PendingDrops drops,
            int level) {
        int relations = drops.count(level, commit);
        int xinfo =
                flags
                        | (subcount > 0 ? XactRecord.HAS_SUBXACTS : 0)
                        | (relations > 0 ? XactRecord.HAS_RELFILENODES : 0);
        int info = commit ? TransactionResourceManager.COMMIT : TransactionResourceManager.ABORT;
        data.putLong(0, time);
        int at = 8;
        if (xinfo != 0) {
            info |= XactRecord.HAS_INFO;
            data.putInt(at, xinfo);
            at += 4;
        }
        if (subcount > 0) {
            data.putInt(at, subcount);
            data.putBytes(at + 4, subxids, subOffset, subcount * 4);
            at += 4 + subcount * 4;
        }
        if (relations > 0) {
            info |= WalRecordFormat.XLR_SPECIAL_REL_UPDATE;
            data.putInt(at, relations);
            at = drops.encode(level, commit, data, at + 4);
        }
        return builder.begin(RmgrIds.TRANSACTION, info, xid).data(data, 0, at);
    }

    /**
     * Tells a standby whose subtransactions these are. (PostgreSQL: xl_xact_assignment.)
     *
     * @param xid of the record's header: the current one, 0 if it has none yet
     */
    WalRecordBuilder assignment(int xid, int topXid, int[] subxids, int count) {
        data.putInt(0, topXid);
        data.putInt(4, count);
        for (int i = 0; i < count; i++) {
            data.putInt(8 + i * 4, subxids[i]);
        }
        return builder.begin(RmgrIds.TRANSACTION, TransactionResourceManager.ASSIGNMENT, xid)
                .data(data, 0, 8 + count * 4);
    }
}
