package org.pgkernel.xact;

import org.agrona.DirectBuffer;

/**
 * A commit or abort record taken apart. Reused: {@link #parse} overwrites the fields, which are
 * numbers and offsets into the record's main data; nothing is copied. Everything is little-endian
 * and need not be aligned.
 *
 * <pre>
 *   xact_time 8
 *   xinfo 4                                     if info has 0x80; says what follows, in this order
 *   dbinfo: database 4, tablespace 4            0x001
 *   subxacts: count 4, xid 4 each               0x002
 *   relfilenodes: count 4, spc db rel 12 each   0x004
 *   dropped stats: count 4, 12 each             0x100
 *   invals: count 4, 16 each                    0x008   commit only
 *   twophase: xid 4                             0x010
 *   gid: zero-terminated text                   0x080   with twophase
 *   origin: lsn 8, time 8                       0x020
 * </pre>
 *
 * (PostgreSQL: ParseCommitRecord, ParseAbortRecord, xactdesc.c.)
 */
final class XactRecord {
    static final int HAS_INFO = 0x80;

    static final int HAS_DBINFO = 1;
    static final int HAS_SUBXACTS = 1 << 1;
    static final int HAS_RELFILENODES = 1 << 2;
    static final int HAS_INVALS = 1 << 3;
    static final int HAS_TWOPHASE = 1 << 4;
    static final int HAS_ORIGIN = 1 << 5;
    static final int HAS_AE_LOCKS = 1 << 6;
    static final int HAS_GID = 1 << 7;
    static final int HAS_DROPPED_STATS = 1 << 8;
    static final int APPLY_FEEDBACK = 1 << 29;
    static final int UPDATE_RELCACHE_FILE = 1 << 30;
    static final int FORCE_SYNC_COMMIT = 1 << 31;

    static final int RELFILENODE_SIZE = 12;
    static final int STATS_ITEM_SIZE = 12;
    static final int INVALIDATION_SIZE = 16;

    long time;
    int xinfo;
    int database;
    int tablespace;
    int subxacts;
    int subxactsOffset;
    int relations;
    int relationsOffset;
    int stats;
    int statsOffset;
    int invalidations;
    int invalidationsOffset;
    int twophaseXid;
    int gidOffset;
    int gidLength;
    long originLsn;
    long originTime;

    private int at;

    boolean has(int flag) {
        return (xinfo & flag) != 0;
    }

    /**
     * Takes a record apart.
     *
     * @param isCommit invalidations are only in commits
     * @return what is wrong with it, or null
     */
    String parse(int info, DirectBuffer data, int length, boolean isCommit) {
        clear();
        if (length < 8) {
            return "it ends before its time";
        }
        time = data.getLong(0);
        at = 8;
        if ((info & HAS_INFO) != 0) {
            if (length - at < 4) {
                return "it ends before its flags";
            }
            xinfo = data.getInt(at);
            at += 4;
        }
        if (has(HAS_DBINFO)) {
            if (length - at < 8) {
                return "it ends in its database";
            }
            database = data.getInt(at);
            tablespace = data.getInt(at + 4);
            at += 8;
        }
        if (has(HAS_SUBXACTS)) {
            subxacts = array(data, length, 4);
            subxactsOffset = at - subxacts * 4;
            if (subxacts < 0) {
                return "its subtransactions run past its end";
            }
        }
        if (has(HAS_RELFILENODES)) {
            relations = array(data, length, RELFILENODE_SIZE);
            relationsOffset = at - relations * RELFILENODE_SIZE;
            if (relations < 0) {
                return "its relations run past its end";
            }
        }
        if (has(HAS_DROPPED_STATS)) {
            stats = array(data, length, STATS_ITEM_SIZE);
            statsOffset = at - stats * STATS_ITEM_SIZE;
            if (stats < 0) {
                return "its dropped statistics run past its end";
            }
        }
        if (has(HAS_INVALS) && isCommit) {
            invalidations = array(data, length, INVALIDATION_SIZE);
            invalidationsOffset = at - invalidations * INVALIDATION_SIZE;
            if (invalidations < 0) {
                return "its invalidations run past its end";
            }
        }
        return parseTail(data, length);
    }

    private String parseTail(DirectBuffer data, int length) {
        if (has(HAS_TWOPHASE)) {
            if (length - at < 4) {
                return "it ends in its prepared transaction";
            }
            twophaseXid = data.getInt(at);
            at += 4;
            if (has(HAS_GID)) {
                gidOffset = at;
                while (at < length && data.getByte(at) != 0) {
                    at++;
                }
                if (at == length) {
                    return "its global transaction id has no end";
                }
                gidLength = at - gidOffset;
                at++;
            }
        }
        if (has(HAS_ORIGIN)) {
            if (length - at < 16) {
                return "it ends in its origin";
            }
            originLsn = data.getLong(at);
            originTime = data.getLong(at + 8);
            at += 16;
        }
        return null;
    }

    /** Reads a count and steps over that many items. @return the count, -1 when they do not fit */
    private int array(DirectBuffer data, int length, int itemSize) {
        if (length - at < 4) {
            return -1;
        }
        int count = data.getInt(at);
        at += 4;
        if (count < 0 || (long) count * itemSize > length - at) {
            return -1;
        }
        at += count * itemSize;
        return count;
    }

    private void clear() {
        xinfo = 0;
        database = 0;
        tablespace = 0;
        subxacts = 0;
        relations = 0;
        stats = 0;
        invalidations = 0;
        twophaseXid = 0;
        gidLength = 0;
        originLsn = 0;
        originTime = 0;
    }
}
