package org.pgkernel.fsm;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.recovery.CheckpointDelay;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.RecordInsert;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalRecordFormat;

/**
 * Cuts a relation and its maps on a primary, in this order: the tails of the maps are cleared, and
 * logged where hints are; the TRUNCATE record is inserted and made durable; the buffers of all
 * forks past their ends are thrown away; the files are cut, the heap first; the upper levels of the
 * free space map are brought in line.
 *
 * <p>FSM-10 (C02): pages that are thrown away may be newer than their files, so from the record on
 * there is no way back: whatever fails stops the kernel, and redo finishes the work. FSM-11 (C03):
 * no checkpoint completes before the files are cut, else redo would begin behind the record and
 * find the older pages; and one whose redo point comes after the record does not write before the
 * cuts have asked for their syncs, which it then performs.
 *
 * <p>One thread's. (PostgreSQL: RelationTruncate, storage.c, as of 15.10.)
 */
public final class RelationTruncation {
    private final FreeSpaceMap freeSpaceMap = new FreeSpaceMap();
    private final VisibilityMap visibilityMap = new VisibilityMap();
    private final WalInserter wal;
    private final RecordInsert record;
    private final CheckpointDelay checkpoints;
    private final UnsafeBuffer data = new UnsafeBuffer(new byte[StorageRecords.TRUNCATE_SIZE]);
    private final ForkNumber[] forks = new ForkNumber[ForkNumber.COUNT];
    private final int[] blocks = new int[ForkNumber.COUNT];
    private int count;

    public RelationTruncation(WalInserter wal, CheckpointDelay checkpoints) {
        this.wal = wal;
        record = new RecordInsert(wal);
        this.checkpoints = checkpoints;
    }

    /**
     * Cuts the relation. The caller holds a lock on it against everybody, has no pin on a page that
     * goes, and forgets what he remembers of them.
     *
     * @param heapBlocks that stay, unsigned, not more than there are
     * @param logged the relation survives a crash
     * @throws KernelStoppedException when the work cannot be finished
     */
    public void truncate(
            PageBuffers buffers, SmgrRelation relation, int heapBlocks, boolean logged) {
        RecordInsert images = logged ? record : null;
        count = 0;
        add(relation, ForkNumber.MAIN, heapBlocks);
        int fsm = freeSpaceMap.prepareTruncate(buffers, images, relation, heapBlocks);
        add(relation, ForkNumber.FSM, fsm);
        add(
                relation,
                ForkNumber.VISIBILITY_MAP,
                visibilityMap.prepareTruncate(buffers, images, relation, heapBlocks));
        checkpoints.delayStart();
        checkpoints.delayCompletion();
        try {
            cut(buffers.pool(), relation, heapBlocks, logged);
        } finally {
            checkpoints.allowCompletion();
            checkpoints.allowStart();
        }
        SharedFreeSpace.invalidate(relation);
        if (fsm != BlockNumber.INVALID) {
            freeSpaceMap.vacuumRange(buffers, relation, heapBlocks, BlockNumber.INVALID);
        }
    }

    /** The size is asked now: what fails here fails before anything is thrown away. */
    private void add(SmgrRelation relation, ForkNumber fork, int firstBlock) {
        if (firstBlock != BlockNumber.INVALID) {
            int size = relation.nblocks(fork);
            if (Integer.compareUnsigned(firstBlock, size) > 0) {
                throw new RefusedException(
                        "a fork of "
                                + BlockNumber.toString(size)
                                + " blocks cannot be cut to more rel="
                                + relation
                                + " fork="
                                + fork
                                + " block="
                                + BlockNumber.toString(firstBlock));
            }
            forks[count] = fork;
            blocks[count++] = firstBlock;
        }
    }

    private void cut(BufferPool pool, SmgrRelation relation, int heapBlocks, boolean logged) {
        try {
            if (logged) {
                wal.flush(log(relation, heapBlocks));
            }
            pool.dropRelationForks(relation, forks, blocks, count);
            for (int i = 0; i < count; i++) {
                relation.truncate(forks[i], blocks[i]);
            }
        } catch (RuntimeException | Error e) {
            throw wal.stop(
                    "truncation failed half-way rel="
                            + relation
                            + " fork="
                            + ForkNumber.MAIN
                            + " block="
                            + BlockNumber.toString(heapBlocks),
                    e);
        }
    }

    private long log(SmgrRelation relation, int heapBlocks) {
        data.putInt(StorageRecords.TRUNCATE_BLOCKS, heapBlocks);
        data.putInt(StorageRecords.TRUNCATE_SPC, relation.spcOid());
        data.putInt(StorageRecords.TRUNCATE_DB, relation.dbOid());
        data.putInt(StorageRecords.TRUNCATE_REL, relation.relNumber());
        data.putInt(
                StorageRecords.TRUNCATE_FLAGS,
                StorageRecords.TRUNCATE_HEAP
                        | StorageRecords.TRUNCATE_VM
                        | StorageRecords.TRUNCATE_FSM);
        int info = StorageRecords.TRUNCATE | WalRecordFormat.XLR_SPECIAL_REL_UPDATE;
        return record.begin(StorageRecords.RMID, info, TransactionId.INVALID)
                .data(data, 0, StorageRecords.TRUNCATE_SIZE)
                .insert();
    }
}
