package org.pgkernel.base;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * The body of a checkpoint: the main data of an XLOG checkpoint record, and the copy of it in the
 * control file. Every accessor takes the buffer and where the body begins in it.
 *
 * <pre>
 *   0 redo            8  where redo begins
 *   8 ThisTimeLineID  4
 *  12 PrevTimeLineID  4  the same unless this record begins a timeline
 *  16 fullPageWrites  1  (7 unused)
 *  24 nextXid         8  epoch in the upper half
 *  32 nextOid         4
 *  36 nextMulti       4
 *  40 nextMultiOffset 4
 *  44 oldestXid       4
 *  48 oldestXidDB     4
 *  52 oldestMulti     4
 *  56 oldestMultiDB   4  (4 unused)
 *  64 time            8  seconds since 1970
 *  72 oldestCommitTsXid 4
 *  76 newestCommitTsXid 4
 *  80 oldestActiveXid   4  (4 unused)
 *  88
 * </pre>
 *
 * (PostgreSQL: CheckPoint, pg_control.h.)
 */
public final class CheckPointRecord {
    public static final int SIZE = 88;

    public static final int REDO = 0;
    public static final int THIS_TIMELINE_ID = 8;
    public static final int PREV_TIMELINE_ID = 12;
    public static final int FULL_PAGE_WRITES = 16;
    public static final int NEXT_XID = 24;
    public static final int NEXT_OID = 32;
    public static final int NEXT_MULTI = 36;
    public static final int NEXT_MULTI_OFFSET = 40;
    public static final int OLDEST_XID = 44;
    public static final int OLDEST_XID_DB = 48;
    public static final int OLDEST_MULTI = 52;
    public static final int OLDEST_MULTI_DB = 56;
    public static final int TIME = 64;
    public static final int OLDEST_COMMIT_TS_XID = 72;
    public static final int NEWEST_COMMIT_TS_XID = 76;
    public static final int OLDEST_ACTIVE_XID = 80;

    private CheckPointRecord() {}

    /** Sets all bytes, the unused ones too, to zero; do so before filling a new record. */
    public static void clear(MutableDirectBuffer to, int offset) {
        to.setMemory(offset, SIZE, (byte) 0);
    }

    /** Where redo begins, an LSN. */
    public static long redo(DirectBuffer in, int offset) {
        return in.getLong(offset + REDO);
    }

    public static void setRedo(MutableDirectBuffer to, int offset, long redo) {
        to.putLong(offset + REDO, redo);
    }

    public static int thisTimeLineId(DirectBuffer in, int offset) {
        return in.getInt(offset + THIS_TIMELINE_ID);
    }

    public static void setThisTimeLineId(MutableDirectBuffer to, int offset, int thisTimeLineId) {
        to.putInt(offset + THIS_TIMELINE_ID, thisTimeLineId);
    }

    public static int prevTimeLineId(DirectBuffer in, int offset) {
        return in.getInt(offset + PREV_TIMELINE_ID);
    }

    public static void setPrevTimeLineId(MutableDirectBuffer to, int offset, int prevTimeLineId) {
        to.putInt(offset + PREV_TIMELINE_ID, prevTimeLineId);
    }

    public static boolean fullPageWrites(DirectBuffer in, int offset) {
        return in.getByte(offset + FULL_PAGE_WRITES) != 0;
    }

    public static void setFullPageWrites(
            MutableDirectBuffer to, int offset, boolean fullPageWrites) {
        to.putByte(offset + FULL_PAGE_WRITES, (byte) (fullPageWrites ? 1 : 0));
    }

    /** The next full transaction id, epoch in the upper half. */
    public static long nextXid(DirectBuffer in, int offset) {
        return in.getLong(offset + NEXT_XID);
    }

    public static void setNextXid(MutableDirectBuffer to, int offset, long nextXid) {
        to.putLong(offset + NEXT_XID, nextXid);
    }

    public static int nextOid(DirectBuffer in, int offset) {
        return in.getInt(offset + NEXT_OID);
    }

    public static void setNextOid(MutableDirectBuffer to, int offset, int nextOid) {
        to.putInt(offset + NEXT_OID, nextOid);
    }

    public static int nextMulti(DirectBuffer in, int offset) {
        return in.getInt(offset + NEXT_MULTI);
    }

    public static void setNextMulti(MutableDirectBuffer to, int offset, int nextMulti) {
        to.putInt(offset + NEXT_MULTI, nextMulti);
    }

    public static int nextMultiOffset(DirectBuffer in, int offset) {
        return in.getInt(offset + NEXT_MULTI_OFFSET);
    }

    public static void setNextMultiOffset(MutableDirectBuffer to, int offset, int nextMultiOffset) {
        to.putInt(offset + NEXT_MULTI_OFFSET, nextMultiOffset);
    }

    public static int oldestXid(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_XID);
    }

    public static void setOldestXid(MutableDirectBuffer to, int offset, int oldestXid) {
        to.putInt(offset + OLDEST_XID, oldestXid);
    }

    public static int oldestXidDb(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_XID_DB);
    }

    public static void setOldestXidDb(MutableDirectBuffer to, int offset, int oldestXidDb) {
        to.putInt(offset + OLDEST_XID_DB, oldestXidDb);
    }

    public static int oldestMulti(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_MULTI);
    }

    public static void setOldestMulti(MutableDirectBuffer to, int offset, int oldestMulti) {
        to.putInt(offset + OLDEST_MULTI, oldestMulti);
    }

    public static int oldestMultiDb(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_MULTI_DB);
    }

    public static void setOldestMultiDb(MutableDirectBuffer to, int offset, int oldestMultiDb) {
        to.putInt(offset + OLDEST_MULTI_DB, oldestMultiDb);
    }

    /** Seconds since 1970. */
    public static long time(DirectBuffer in, int offset) {
        return in.getLong(offset + TIME);
    }

    public static void setTime(MutableDirectBuffer to, int offset, long time) {
        to.putLong(offset + TIME, time);
    }

    public static int oldestCommitTsXid(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_COMMIT_TS_XID);
    }

    public static void setOldestCommitTsXid(
            MutableDirectBuffer to, int offset, int oldestCommitTsXid) {
        to.putInt(offset + OLDEST_COMMIT_TS_XID, oldestCommitTsXid);
    }

    public static int newestCommitTsXid(DirectBuffer in, int offset) {
        return in.getInt(offset + NEWEST_COMMIT_TS_XID);
    }

    public static void setNewestCommitTsXid(
            MutableDirectBuffer to, int offset, int newestCommitTsXid) {
        to.putInt(offset + NEWEST_COMMIT_TS_XID, newestCommitTsXid);
    }

    /** 0 in a shutdown checkpoint. */
    public static int oldestActiveXid(DirectBuffer in, int offset) {
        return in.getInt(offset + OLDEST_ACTIVE_XID);
    }

    public static void setOldestActiveXid(MutableDirectBuffer to, int offset, int oldestActiveXid) {
        to.putInt(offset + OLDEST_ACTIVE_XID, oldestActiveXid);
    }
}
