package org.pgkernel.heap;

/**
 * Layout of the Heap and Heap2 resource managers' records: the main data ("main") and what belongs
 * to block reference 0 ("block"). Sizes are those of the fields without padding at the end.
 *
 * <pre>
 *   INSERT        main   0 offnum 2 | 2 flags 1
 *                 block  tuple header part (below), bitmap and data
 *   DELETE        main   0 xmax 4 | 4 offnum 2 | 6 infobits 1 | 7 flags 1
 *   UPDATE, HOT_UPDATE
 *                 main   0 old_xmax 4 | 4 old_offnum 2 | 6 old_infobits 1 | 7 flags 1 | 8 new_xmax 4 | 12 new_offnum 2
 *                 block  [prefix length 2] [suffix length 2] tuple header part, bitmap, data without prefix and suffix
 *   CONFIRM       main   0 offnum 2
 *   LOCK          main   0 locking_xid 4 | 4 offnum 2 | 6 infobits 1 | 7 flags 1
 *   INPLACE       main   0 offnum 2
 *                 block  the tuple's new data
 *   PRUNE         main   0 latestRemovedXid 4 | 4 nredirected 2 | 6 ndead 2
 *                 block  line pointers, 2 bytes each: pairs from-to, dead ones, unused ones
 *   VACUUM        main   0 nunused 2
 *                 block  line pointers
 *   FREEZE_PAGE   main   0 cutoff_xid 4 | 4 ntuples 2
 *                 block  plans of 12 bytes: 0 xmax 4 | 4 offset 2 | 6 infomask2 2 | 8 infomask 2 | 10 frzflags 1
 *   VISIBLE       main   0 cutoff_xid 4 | 4 flags 1;  block 0 is the map's page, 1 the heap's
 *   MULTI_INSERT  main   0 flags 1 | 2 ntuples 2 | 4 line pointers 2 each, unless +INIT
 *                 block  tuples, each on a 2-byte boundary: 0 datalen 2 | 2 infomask2 2 | 4 infomask 2 | 6 hoff 1 | bitmap, data
 *   LOCK_UPDATED  main   0 xmax 4 | 4 offnum 2 | 6 infobits 1 | 7 flags 1
 *
 *   tuple header part    0 infomask2 2 | 2 infomask 2 | 4 hoff 1
 * </pre>
 *
 * (PostgreSQL: heapam_xlog.h.)
 */
final class HeapRecords {
    static final int HEAP2_RMID = 9;
    static final int HEAP_RMID = 10;

    static final int INSERT = 0x00;
    static final int DELETE = 0x10;
    static final int UPDATE = 0x20;
    static final int TRUNCATE = 0x30;
    static final int HOT_UPDATE = 0x40;
    static final int CONFIRM = 0x50;
    static final int LOCK = 0x60;
    static final int INPLACE = 0x70;

    static final int REWRITE = 0x00;
    static final int PRUNE = 0x10;
    static final int VACUUM = 0x20;
    static final int FREEZE_PAGE = 0x30;
    static final int VISIBLE = 0x40;
    static final int MULTI_INSERT = 0x50;
    static final int LOCK_UPDATED = 0x60;
    static final int NEW_CID = 0x70;

    static final int OPERATION_MASK = 0x70;

    /** The page holds nothing else: redo formats it first. */
    static final int INIT_PAGE = 0x80;

    static final int INSERT_OFFNUM = 0;
    static final int INSERT_FLAGS = 2;
    static final int INSERT_SIZE = 3;

    /** Of INSERT and MULTI_INSERT. */
    static final int INSERT_ALL_VISIBLE_CLEARED = 1;

    /** The last record of one multi-insert; logical decoding's. */
    static final int INSERT_LAST_IN_MULTI = 1 << 1;

    static final int INSERT_ALL_FROZEN_SET = 1 << 5;

    static final int DELETE_XMAX = 0;
    static final int DELETE_OFFNUM = 4;
    static final int DELETE_INFOBITS = 6;
    static final int DELETE_FLAGS = 7;
    static final int DELETE_SIZE = 8;

    static final int DELETE_ALL_VISIBLE_CLEARED = 1;
    static final int DELETE_IS_SUPER = 1 << 3;
    static final int DELETE_IS_PARTITION_MOVE = 1 << 4;

    static final int UPDATE_OLD_XMAX = 0;
    static final int UPDATE_OLD_OFFNUM = 4;
    static final int UPDATE_OLD_INFOBITS = 6;
    static final int UPDATE_FLAGS = 7;
    static final int UPDATE_NEW_XMAX = 8;
    static final int UPDATE_NEW_OFFNUM = 12;
    static final int UPDATE_SIZE = 14;

    static final int UPDATE_OLD_ALL_VISIBLE_CLEARED = 1;
    static final int UPDATE_NEW_ALL_VISIBLE_CLEARED = 1 << 1;
    static final int UPDATE_PREFIX_FROM_OLD = 1 << 5;
    static final int UPDATE_SUFFIX_FROM_OLD = 1 << 6;

    static final int CONFIRM_OFFNUM = 0;
    static final int CONFIRM_SIZE = 2;

    static final int INPLACE_OFFNUM = 0;
    static final int INPLACE_SIZE = 2;

    /** Of LOCK and LOCK_UPDATED. */
    static final int LOCK_XMAX = 0;

    static final int LOCK_OFFNUM = 4;
    static final int LOCK_INFOBITS = 6;
    static final int LOCK_FLAGS = 7;
    static final int LOCK_SIZE = 8;
    static final int LOCK_ALL_FROZEN_CLEARED = 1;

    static final int PRUNE_NREDIRECTED = 4;
    static final int PRUNE_NDEAD = 6;
    static final int PRUNE_SIZE = 8;

    static final int VACUUM_NUNUSED = 0;
    static final int VACUUM_SIZE = 2;

    static final int FREEZE_NTUPLES = 4;
    static final int FREEZE_SIZE = 6;
    static final int FREEZE_PLAN_XMAX = 0;
    static final int FREEZE_PLAN_OFFSET = 4;
    static final int FREEZE_PLAN_INFOMASK2 = 6;
    static final int FREEZE_PLAN_INFOMASK = 8;
    static final int FREEZE_PLAN_FLAGS = 10;
    static final int FREEZE_PLAN_SIZE = 12;
    static final int FREEZE_XVAC = 0x02;
    static final int INVALID_XVAC = 0x04;

    static final int VISIBLE_FLAGS = 4;
    static final int VISIBLE_SIZE = 5;

    static final int MULTI_INSERT_FLAGS = 0;
    static final int MULTI_INSERT_NTUPLES = 2;
    static final int MULTI_INSERT_OFFSETS = 4;
    static final int MULTI_INSERT_SIZE = 4;
    static final int MULTI_TUPLE_DATALEN = 0;
    static final int MULTI_TUPLE_INFOMASK2 = 2;
    static final int MULTI_TUPLE_INFOMASK = 4;
    static final int MULTI_TUPLE_HOFF = 6;
    static final int MULTI_TUPLE_SIZE = 7;

    static final int HEADER_INFOMASK2 = 0;
    static final int HEADER_INFOMASK = 2;
    static final int HEADER_HOFF = 4;
    static final int HEADER_SIZE = 5;

    /** Bits of the infobits fields. */
    static final int XMAX_IS_MULTI = 0x01;

    static final int XMAX_LOCK_ONLY = 0x02;
    static final int XMAX_EXCL_LOCK = 0x04;
    static final int XMAX_KEYSHR_LOCK = 0x08;
    static final int KEYS_UPDATED = 0x10;

    private HeapRecords() {}
}
