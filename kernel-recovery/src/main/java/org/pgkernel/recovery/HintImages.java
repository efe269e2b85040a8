package org.pgkernel.recovery;

import org.agrona.DirectBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.HintImageLog;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.wal.WalInserter;

/**
 * A primary's images of pages that only hints have changed. (PostgreSQL: XLogSaveBufferForHint.)
 */
final class HintImages implements HintImageLog {
    private final WalInserter wal;
    private final CheckpointDelay delay;
    private final PrimaryOptions.UnloggedFilter relations;
    private final ThreadLocal<RecordInsert> records;

    HintImages(
            WalInserter wal,
            CheckpointDelay delay,
            ImageCompression compression,
            PrimaryOptions.UnloggedFilter relations) {
        this.wal = wal;
        this.delay = delay;
        this.relations = relations;
        records = ThreadLocal.withInitial(() -> new RecordInsert(wal, compression));
    }

    @Override
    public void delayCheckpoint() {
        delay.delayStart();
    }

    @Override
    public void allowCheckpoint() {
        delay.allowStart();
    }

    @Override
    public long redoPointer() {
        return wal.redoLsn();
    }

    /**
     * An image of an unlogged relation's page would be redone into a file that recovery makes anew.
     */
    @Override
    public long logImage(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            boolean standard) {
        boolean imagesAreOff = wal.imageLsn() < 0;
        if (imagesAreOff || fork != ForkNumber.INIT && relations.isUnlogged(spc, db, rel)) {
            return 0;
        }
        int flags = RecordInsert.FORCE_IMAGE | (standard ? RecordInsert.STANDARD : 0);
        return records.get()
                .begin(RmgrIds.XLOG, XlogRedo.FPI_FOR_HINT, TransactionId.INVALID)
                .page(0, spc, db, rel, fork, block, page, flags)
                .insert();
    }
}
