package org.pgkernel.index;

import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.wal.WalRecord;

/**
 * An access method whose records are known by name but not applied: recovery refuses WAL that has
 * them, before it begins.
 */
final class UncoveredResourceManager extends IndexResourceManager {
    private UncoveredResourceManager(int id, String... types) {
        super(id, types);
    }

    /** (PostgreSQL: hash_identify.) */
    static UncoveredResourceManager hash() {
        return new UncoveredResourceManager(
                RmgrIds.HASH,
                "INIT_META_PAGE",
                "INIT_BITMAP_PAGE",
                "INSERT",
                "ADD_OVFL_PAGE",
                "SPLIT_ALLOCATE_PAGE",
                "SPLIT_PAGE",
                "SPLIT_COMPLETE",
                "MOVE_PAGE_CONTENTS",
                "SQUEEZE_PAGE",
                "DELETE",
                "SPLIT_CLEANUP",
                "UPDATE_META_PAGE",
                "VACUUM_ONE_PAGE");
    }

    /** (PostgreSQL: gin_identify.) */
    static UncoveredResourceManager gin() {
        return new UncoveredResourceManager(
                RmgrIds.GIN,
                null,
                "CREATE_PTREE",
                "INSERT",
                "SPLIT",
                "VACUUM_PAGE",
                "DELETE_PAGE",
                "UPDATE_META_PAGE",
                "INSERT_LISTPAGE",
                "DELETE_LISTPAGE",
                "VACUUM_DATA_LEAF_PAGE");
    }

    /** (PostgreSQL: gist_identify.) */
    static UncoveredResourceManager gist() {
        return new UncoveredResourceManager(
                RmgrIds.GIST,
                "PAGE_UPDATE",
                "DELETE",
                "PAGE_REUSE",
                "PAGE_SPLIT",
                null,
                null,
                "PAGE_DELETE",
                "ASSIGN_LSN");
    }

    /** (PostgreSQL: spg_identify.) */
    static UncoveredResourceManager spgist() {
        return new UncoveredResourceManager(
                RmgrIds.SPGIST,
                null,
                "ADD_LEAF",
                "MOVE_LEAFS",
                "ADD_NODE",
                "SPLIT_TUPLE",
                "PICKSPLIT",
                "VACUUM_LEAF",
                "VACUUM_ROOT",
                "VACUUM_REDIRECT");
    }

    /** (PostgreSQL: brin_identify.) */
    static UncoveredResourceManager brin() {
        return new UncoveredResourceManager(
                RmgrIds.BRIN,
                "CREATE_INDEX",
                "INSERT",
                "UPDATE",
                "SAMEPAGE_UPDATE",
                "REVMAP_EXTEND",
                "DESUMMARIZE",
                null,
                null,
                null,
                "INSERT+INIT",
                "UPDATE+INIT");
    }

    @Override
    public boolean covers(int info) {
        return false;
    }

    @Override
    void apply(WalRecord record, RedoContext context) {
        throw new AssertionError(name() + " records are refused before redo begins");
    }
}
