package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.TransactionId;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;

/**
 * Logs that bits of the visibility map were set. The record is Heap2's, since it tells of the heap
 * page as much as of the map's:
 *
 * <pre>
 *   VISIBLE   main 0 cutoff_xid 4 | 4 flags 1;  block 0 is the map's page, 1 the heap's
 * </pre>
 *
 * (PostgreSQL: xl_heap_visible, log_heap_visible.)
 */
final class VisibleRecord {
    static final int INFO = 0x40;
    private static final int CUTOFF_XID = 0;
    private static final int FLAGS = 4;
    private static final int SIZE = 5;

    private final UnsafeBuffer data = new UnsafeBuffer(new byte[SIZE]);

    /**
     * The heap page's flag is a hint to it: the page needs an image only where hints are logged.
     *
     * @param cutoffXid newest xid that a standby's snapshot must see as ended, {@link
     *     TransactionId#INVALID} for none
     * @return the LSN that the map's page is to carry, and the heap's where hints are logged
     */
    long insert(
            RecordInsert wal,
            SmgrRelation relation,
            int mapBlock,
            UnsafeBuffer mapPage,
            int heapBlock,
            UnsafeBuffer heapPage,
            boolean hintsAreLogged,
            int cutoffXid,
            int bits) {
        data.putInt(CUTOFF_XID, cutoffXid);
        data.putByte(FLAGS, (byte) bits);
        int spc = relation.spcOid();
        int db = relation.dbOid();
        int rel = relation.relNumber();
        int heapFlags = RecordInsert.STANDARD | (hintsAreLogged ? 0 : RecordInsert.NO_IMAGE);
        return wal.begin(RmgrIds.HEAP2, INFO, TransactionId.INVALID)
                .data(data, 0, SIZE)
                .page(0, spc, db, rel, ForkNumber.VISIBILITY_MAP, mapBlock, mapPage, 0)
                .page(1, spc, db, rel, ForkNumber.MAIN, heapBlock, heapPage, heapFlags)
                .insert();
    }
}
