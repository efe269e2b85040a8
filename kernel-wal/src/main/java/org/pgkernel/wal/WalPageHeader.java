package org.pgkernel.wal;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The header of a WAL page, little-endian. The first page of a segment has the long form.
 *
 * <pre>
 *   0 xlp_magic    2  0xD110
 *   2 xlp_info     2  flags below
 *   4 xlp_tli      4  timeline of the first record on the page
 *   8 xlp_pageaddr 8  LSN of this page
 *  16 xlp_rem_len  4  bytes still to come of a record begun on an earlier page
 *  20 (padding)    4
 *  24 ---- end of the short form ----
 *  24 xlp_sysid    8  system identifier of pg_control
 *  32 xlp_seg_size 4
 *  36 xlp_xlog_blcksz 4  8192
 *  40 ---- end of the long form ----
 * </pre>
 *
 * (PostgreSQL: XLogPageHeaderData, XLogLongPageHeaderData, xlog_internal.h.)
 */
public final class WalPageHeader {
    /** Bytes of a WAL page. (PostgreSQL: XLOG_BLCKSZ.) */
    public static final int PAGE_SIZE = 8192;

    /** Version mark of PostgreSQL 15's WAL. (PostgreSQL: XLOG_PAGE_MAGIC.) */
    public static final int MAGIC = 0xD110;

    public static final int SHORT_SIZE = 24;
    public static final int LONG_SIZE = 40;

    public static final int XLP_FIRST_IS_CONTRECORD = 0x0001;
    public static final int XLP_LONG_HEADER = 0x0002;
    public static final int XLP_BKP_REMOVABLE = 0x0004;
    public static final int XLP_FIRST_IS_OVERWRITE_CONTRECORD = 0x0008;
    public static final int XLP_ALL_FLAGS = 0x000F;

    private static final int XLP_MAGIC = 0;
    private static final int XLP_INFO = 2;
    private static final int XLP_TLI = 4;
    private static final int XLP_PAGEADDR = 8;
    private static final int XLP_REM_LEN = 16;
    private static final int XLP_SYSID = 24;
    private static final int XLP_SEG_SIZE = 32;
    private static final int XLP_XLOG_BLCKSZ = 36;

    private WalPageHeader() {}

    public static int magic(DirectBuffer page, int offset) {
        return page.getShort(offset + XLP_MAGIC) & 0xFFFF;
    }

    /** The flags, {@code XLP_…}. */
    public static int info(DirectBuffer page, int offset) {
        return page.getShort(offset + XLP_INFO) & 0xFFFF;
    }

    public static int timeline(DirectBuffer page, int offset) {
        return page.getInt(offset + XLP_TLI);
    }

    public static long pageLsn(DirectBuffer page, int offset) {
        return page.getLong(offset + XLP_PAGEADDR);
    }

    /** Bytes of a continued record from here on, unsigned. */
    public static int remainingLength(DirectBuffer page, int offset) {
        return page.getInt(offset + XLP_REM_LEN);
    }

    /** Long form only. */
    public static long systemIdentifier(DirectBuffer page, int offset) {
        return page.getLong(offset + XLP_SYSID);
    }

    /** Long form only. */
    public static int segmentSize(DirectBuffer page, int offset) {
        return page.getInt(offset + XLP_SEG_SIZE);
    }

    /** Long form only. */
    public static int pageSize(DirectBuffer page, int offset) {
        return page.getInt(offset + XLP_XLOG_BLCKSZ);
    }

    /** 24 or 40, as the header's own flag says. (PostgreSQL: XLogPageHeaderSize.) */
    public static int size(int info) {
        return (info & XLP_LONG_HEADER) != 0 ? LONG_SIZE : SHORT_SIZE;
    }

    /** 24 or 40, as the page's place in its segment demands. */
    public static int sizeAt(long pageLsn, int segmentSize) {
        return (pageLsn & segmentSize - 1) == 0 ? LONG_SIZE : SHORT_SIZE;
    }

    /** Writes a header without continuation, in the form that the page's place demands. */
    public static void init(
            MutableDirectBuffer page,
            int offset,
            long pageLsn,
            int timeline,
            int segmentSize,
            long systemIdentifier) {
        boolean first = sizeAt(pageLsn, segmentSize) == LONG_SIZE;
        page.setMemory(offset, first ? LONG_SIZE : SHORT_SIZE, (byte) 0);
        page.putShort(offset + XLP_MAGIC, (short) MAGIC);
        page.putShort(
                offset + XLP_INFO, (short) (XLP_BKP_REMOVABLE | (first ? XLP_LONG_HEADER : 0)));
        page.putInt(offset + XLP_TLI, timeline);
        page.putLong(offset + XLP_PAGEADDR, pageLsn);
        if (first) {
            page.putLong(offset + XLP_SYSID, systemIdentifier);
            page.putInt(offset + XLP_SEG_SIZE, segmentSize);
            page.putInt(offset + XLP_XLOG_BLCKSZ, PAGE_SIZE);
        }
    }

    /** Writes the header that the page's place demands, unless the page has one of that kind. */
    static void repair(
            MutableDirectBuffer page,
            int offset,
            long pageLsn,
            int timeline,
            int segmentSize,
            long systemIdentifier) {
        boolean isLong = (info(page, offset) & XLP_LONG_HEADER) != 0;
        if (magic(page, offset) != MAGIC
                || pageLsn(page, offset) != pageLsn
                || isLong != (sizeAt(pageLsn, segmentSize) == LONG_SIZE)) {
            init(page, offset, pageLsn, timeline, segmentSize, systemIdentifier);
        }
    }

    /** Sets further flags. */
    public static void addInfo(MutableDirectBuffer page, int offset, int flags) {
        page.putShort(offset + XLP_INFO, (short) (info(page, offset) | flags));
    }

    /** Marks the page as beginning with the last {@code remaining} bytes of a record. */
    public static void setContinuation(MutableDirectBuffer page, int offset, int remaining) {
        addInfo(page, offset, XLP_FIRST_IS_CONTRECORD);
        page.putInt(offset + XLP_REM_LEN, remaining);
    }
}
