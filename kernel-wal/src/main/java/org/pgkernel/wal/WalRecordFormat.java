package org.pgkernel.wal;

/**
 * The bytes of a WAL record, little-endian. Records begin on multiples of 8; nothing inside is
 * aligned.
 *
 * <pre>
 *   0 xl_tot_len 4   length, header included
 *   4 xl_xid     4
 *   8 xl_prev    8   LSN of the record before
 *  16 xl_info    1   upper half belongs to the resource manager
 *  17 xl_rmid    1
 *  18 (zero)     2
 *  20 xl_crc     4   CRC-32C of bytes 24.., then 0..19
 *  24 fragment headers, each begun by an id byte:
 *       0..32  block: id 1, fork_flags 1, data_length 2
 *                [image: length 2, hole_offset 2, bimg_info 1, [hole_length 2 when compressed with a hole]]
 *                [spc 4, db 4, rel 4 unless BKPBLOCK_SAME_REL]  block 4
 *       253    replication origin 2
 *       252    top-level xid 4
 *       255    main data, length 1      254  main data, length 4   (always last)
 *     then, in the order of the headers, each block's image and data, and the main data
 * </pre>
 *
 * (PostgreSQL: xlogrecord.h.)
 */
public final class WalRecordFormat {
    public static final int HEADER_SIZE = 24;
    public static final int XL_TOT_LEN = 0;
    public static final int XL_XID = 4;
    public static final int XL_PREV = 8;
    public static final int XL_INFO = 16;
    public static final int XL_RMID = 17;
    public static final int XL_CRC = 20;

    /**
     * The largest length that PostgreSQL can hold in memory, hence read. (PostgreSQL:
     * MaxAllocSize.)
     */
    public static final int MAX_LENGTH = 0x3FFFFFFF;

    public static final int XLR_SPECIAL_REL_UPDATE = 0x01;
    public static final int XLR_CHECK_CONSISTENCY = 0x02;

    public static final int XLR_MAX_BLOCK_ID = 32;
    public static final int XLR_BLOCK_ID_TOPLEVEL_XID = 252;
    public static final int XLR_BLOCK_ID_ORIGIN = 253;
    public static final int XLR_BLOCK_ID_DATA_LONG = 254;
    public static final int XLR_BLOCK_ID_DATA_SHORT = 255;

    public static final int BKPBLOCK_FORK_MASK = 0x0F;
    public static final int BKPBLOCK_HAS_IMAGE = 0x10;
    public static final int BKPBLOCK_HAS_DATA = 0x20;
    public static final int BKPBLOCK_WILL_INIT = 0x40;
    public static final int BKPBLOCK_SAME_REL = 0x80;

    public static final int BKPIMAGE_HAS_HOLE = 0x01;
    public static final int BKPIMAGE_APPLY = 0x02;
    public static final int BKPIMAGE_COMPRESS_PGLZ = 0x04;
    public static final int BKPIMAGE_COMPRESS_LZ4 = 0x08;
    public static final int BKPIMAGE_COMPRESS_ZSTD = 0x10;
    public static final int BKPIMAGE_COMPRESSED =
            BKPIMAGE_COMPRESS_PGLZ | BKPIMAGE_COMPRESS_LZ4 | BKPIMAGE_COMPRESS_ZSTD;

    /** Resource manager of the WAL's own records. (PostgreSQL: RM_XLOG_ID.) */
    static final int RM_XLOG_ID = 0;

    /** The highest built-in resource manager, RM_LOGICALMSG_ID. */
    static final int RM_MAX_BUILTIN_ID = 21;

    /** Extensions' resource managers begin here. */
    static final int RM_MIN_CUSTOM_ID = 128;

    /** The rest of the segment is unused. */
    static final int XLOG_SWITCH = 0x40;

    /**
     * Stands where the continuation of a lost record should have been; 8 bytes LSN of that record,
     * 8 bytes time.
     */
    static final int XLOG_OVERWRITE_CONTRECORD = 0xD0;

    private WalRecordFormat() {}

    static boolean rmidIsValid(int rmid) {
        return rmid <= RM_MAX_BUILTIN_ID || rmid >= RM_MIN_CUSTOM_ID;
    }

    /** Records begin on multiples of 8. (PostgreSQL: MAXALIGN64.) */
    static long align(long position) {
        return position + 7 & ~7L;
    }
}
