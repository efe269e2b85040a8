package org.pgkernel.fsm;

import org.agrona.DirectBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.recovery.AbstractResourceManager;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.wal.WalRecord;

/** Redo of relation files coming into being and being cut. (PostgreSQL: smgr_redo, storage.c.) */
final class StorageRedo extends AbstractResourceManager {
    private final FreeSpaceMap freeSpaceMap = new FreeSpaceMap();
    private final VisibilityMap visibilityMap = new VisibilityMap();
    private final ForkNumber[] forks = new ForkNumber[ForkNumber.COUNT];
    private final int[] blocks = new int[ForkNumber.COUNT];

    StorageRedo() {
        super(StorageRecords.RMID, null, "CREATE", "TRUNCATE");
    }

    @Override
    public void redo(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case StorageRecords.CREATE -> create(record, context);
            case StorageRecords.TRUNCATE -> truncate(record, context);
            default -> throw unknown(record);
        }
    }

    private void create(WalRecord record, RedoContext context) {
        requireLength(record, StorageRecords.CREATE_SIZE);
        DirectBuffer data = record.data();
        int fork = data.getInt(StorageRecords.CREATE_FORK);
        if (fork < 0 || fork >= ForkNumber.COUNT) {
            throw damaged(record, "there is no fork " + fork);
        }
        SmgrRelation relation =
                context.relation(
                        data.getInt(StorageRecords.CREATE_SPC),
                        data.getInt(StorageRecords.CREATE_DB),
                        data.getInt(StorageRecords.CREATE_REL));
        relation.create(ForkNumber.of(fork), true);
    }

    /**
     * Cuts the forks that the flags name.
     *
     * <p>The minimum recovery point goes first: once a file is shorter there is no way back before
     * this record. All forks' buffers go in one call, before any file shrinks, so that none is
     * written past the new end. (FSM-6)
     */
    private void truncate(WalRecord record, RedoContext context) {
        requireLength(record, StorageRecords.TRUNCATE_SIZE);
        DirectBuffer data = record.data();
        int heapBlocks = data.getInt(StorageRecords.TRUNCATE_BLOCKS);
        int spc = data.getInt(StorageRecords.TRUNCATE_SPC);
        int db = data.getInt(StorageRecords.TRUNCATE_DB);
        int rel = data.getInt(StorageRecords.TRUNCATE_REL);
        int flags = data.getInt(StorageRecords.TRUNCATE_FLAGS);
        BufferPool pool = context.pool();
        SmgrRelation relation = context.relation(spc, db, rel);

        relation.create(ForkNumber.MAIN, true);
        context.flushTo(record.endLsn());

        int count = 0;
        boolean vacuumMap = false;
        if ((flags & StorageRecords.TRUNCATE_HEAP) != 0) {
            count = add(count, ForkNumber.MAIN, heapBlocks);
            context.forgetMissingPages(spc, db, rel, ForkNumber.MAIN, heapBlocks);
        }
        if ((flags & StorageRecords.TRUNCATE_FSM) != 0 && relation.exists(ForkNumber.FSM)) {
            int mapBlocks = freeSpaceMap.prepareTruncate(pool, null, relation, heapBlocks);
            if (mapBlocks != BlockNumber.INVALID) {
                count = add(count, ForkNumber.FSM, mapBlocks);
                vacuumMap = true;
            }
        }
        if ((flags & StorageRecords.TRUNCATE_VM) != 0
                && relation.exists(ForkNumber.VISIBILITY_MAP)) {
            int mapBlocks = visibilityMap.prepareTruncate(pool, null, relation, heapBlocks);
            if (mapBlocks != BlockNumber.INVALID) {
                count = add(count, ForkNumber.VISIBILITY_MAP, mapBlocks);
            }
        }
        if (count > 0) {
            pool.dropRelationForks(relation, forks, blocks, count);
            for (int i = 0; i < count; i++) {
                relation.truncate(forks[i], blocks[i]);
            }
        }
        if (vacuumMap) {
            freeSpaceMap.vacuumRange(pool, relation, heapBlocks, BlockNumber.INVALID);
        }
    }

    private int add(int count, ForkNumber fork, int firstBlock) {
        forks[count] = fork;
        blocks[count] = firstBlock;
        return count + 1;
    }
}
