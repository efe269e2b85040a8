package org.pgkernel.base;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * What a buffer holds: relation, fork, block. Twenty bytes, little-endian, as PostgreSQL 15 lays it
 * out:
 *
 * <pre>
 *  0        4        8        12       16       20
 *  +--------+--------+--------+--------+--------+
 *  | spcOid | dbOid  | relNum | fork   | block  |
 *  +--------+--------+--------+--------+--------+
 * </pre>
 *
 * (PostgreSQL: BufferTag, buf_internals.h.)
 */
public final class BufferTag {
    public static final int LENGTH = 20;
    public static final int SPC_OFFSET = 0;
    public static final int DB_OFFSET = 4;
    public static final int REL_OFFSET = 8;
    public static final int FORK_OFFSET = 12;
    public static final int BLOCK_OFFSET = 16;

    private BufferTag() {}

    public static void put(
            MutableDirectBuffer to, int offset, int spc, int db, int rel, int fork, int block) {
        to.putInt(offset + SPC_OFFSET, spc);
        to.putInt(offset + DB_OFFSET, db);
        to.putInt(offset + REL_OFFSET, rel);
        to.putInt(offset + FORK_OFFSET, fork);
        to.putInt(offset + BLOCK_OFFSET, block);
    }

    public static boolean matches(
            DirectBuffer in, int offset, int spc, int db, int rel, int fork, int block) {
        return in.getInt(offset + REL_OFFSET) == rel
                && in.getInt(offset + BLOCK_OFFSET) == block
                && in.getInt(offset + DB_OFFSET) == db
                && in.getInt(offset + SPC_OFFSET) == spc
                && in.getInt(offset + FORK_OFFSET) == fork;
    }

    /**
     * Spreads a tag over 32 bits (murmur3 finaliser over the folded fields; every bit of every
     * field counts).
     */
    public static int hash(int spc, int db, int rel, int fork, int block) {
        long h = (long) rel * 0x9E3779B97F4A7C15L + block * 0xC2B2AE3D27D4EB4FL;
        h ^=
                (long) db * 0x165667B19E3779F9L
                        + (long) spc * 0x27D4EB2F165667C5L
                        + fork * 0x85EBCA77C2B2AE63L;
        h ^= h >>> 33;
        h *= 0xFF51AFD7ED558CCDL;
        h ^= h >>> 33;
        h *= 0xC4CEB9FE1A85EC53L;
        h ^= h >>> 33;
        return (int) h;
    }
}
