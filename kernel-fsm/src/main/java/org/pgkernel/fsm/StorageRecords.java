package org.pgkernel.fsm;

/**
 * Layout of the Storage resource manager's records.
 *
 * <pre>
 *   CREATE    0 spc 4 | 4 db 4 | 8 rel 4 | 12 fork 4
 *   TRUNCATE  0 blocks 4 | 4 spc 4 | 8 db 4 | 12 rel 4 | 16 flags 4
 * </pre>
 *
 * (PostgreSQL: xl_smgr_create, xl_smgr_truncate, storage_xlog.h.)
 */
final class StorageRecords {
    static final int RMID = 2;

    static final int CREATE = 0x10;
    static final int TRUNCATE = 0x20;

    static final int CREATE_SPC = 0;
    static final int CREATE_DB = 4;
    static final int CREATE_REL = 8;
    static final int CREATE_FORK = 12;
    static final int CREATE_SIZE = 16;

    static final int TRUNCATE_BLOCKS = 0;
    static final int TRUNCATE_SPC = 4;
    static final int TRUNCATE_DB = 8;
    static final int TRUNCATE_REL = 12;
    static final int TRUNCATE_FLAGS = 16;
    static final int TRUNCATE_SIZE = 20;

    static final int TRUNCATE_HEAP = 0x0001;
    static final int TRUNCATE_VM = 0x0002;
    static final int TRUNCATE_FSM = 0x0004;

    private StorageRecords() {}
}
