package org.pgkernel.index;

import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/** B-tree redo: tells the record types apart. (PostgreSQL: btree_redo, nbtxlog.c.) */
final class BtreeResourceManager extends IndexResourceManager {
    static final int INSERT_LEAF = 0x00;
    static final int INSERT_UPPER = 0x10;
    static final int INSERT_META = 0x20;
    static final int SPLIT_L = 0x30;
    static final int SPLIT_R = 0x40;
    static final int INSERT_POST = 0x50;
    static final int DEDUP = 0x60;
    static final int DELETE = 0x70;
    static final int UNLINK_PAGE = 0x80;
    static final int UNLINK_PAGE_META = 0x90;
    static final int NEWROOT = 0xA0;
    static final int MARK_PAGE_HALFDEAD = 0xB0;
    static final int VACUUM = 0xC0;
    static final int REUSE_PAGE = 0xD0;
    static final int META_CLEANUP = 0xE0;

    private final BtreeInsertRedo insert = new BtreeInsertRedo();
    private final BtreeSplitRedo split = new BtreeSplitRedo();
    private final BtreeDeleteRedo delete = new BtreeDeleteRedo();
    private final BtreePageRedo pages = new BtreePageRedo();

    BtreeResourceManager() {
        super(
                RmgrIds.BTREE,
                "INSERT_LEAF",
                "INSERT_UPPER",
                "INSERT_META",
                "SPLIT_L",
                "SPLIT_R",
                "INSERT_POST",
                "DEDUP",
                "DELETE",
                "UNLINK_PAGE",
                "UNLINK_PAGE_META",
                "NEWROOT",
                "MARK_PAGE_HALFDEAD",
                "VACUUM",
                "REUSE_PAGE",
                "META_CLEANUP");
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        switch (record.type()) {
            case INSERT_LEAF -> insert.redo(record, context, true, false, false);
            case INSERT_UPPER -> insert.redo(record, context, false, false, false);
            case INSERT_META -> insert.redo(record, context, false, true, false);
            case INSERT_POST -> insert.redo(record, context, true, false, true);
            case SPLIT_L -> split.redo(record, context, true);
            case SPLIT_R -> split.redo(record, context, false);
            case DEDUP -> split.redoDedup(record, context);
            case DELETE -> delete.redoDelete(record, context);
            case VACUUM -> delete.redoVacuum(record, context);
            case UNLINK_PAGE -> pages.redoUnlink(record, context, false);
            case UNLINK_PAGE_META -> pages.redoUnlink(record, context, true);
            case NEWROOT -> pages.redoNewRoot(record, context);
            case MARK_PAGE_HALFDEAD -> pages.redoMarkHalfDead(record, context);
            case META_CLEANUP -> BtreeParts.restoreMeta(record, context, 0);
            // Serves queries that run during recovery; there are none.
            case REUSE_PAGE -> {}
            default -> throw new DamagedDataException("there is no such record type");
        }
    }
}
