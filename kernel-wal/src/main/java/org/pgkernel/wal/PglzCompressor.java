package org.pgkernel.wal;

import java.util.Arrays;

/**
 * PostgreSQL's own LZ compression, encoding side; the format is told in {@link Pglz}.
 *
 * <p>Not only readable by PostgreSQL but equal to what it writes, byte for byte: both take the same
 * choice at every place. The last 4096 places are kept in lists by a hash of their next four bytes,
 * newest first. At each place the list is walked and the longest match wins, the newest of equals;
 * the walk stops once the match is good enough, and what is enough falls by a tenth with each entry
 * looked at (128 bytes at first). A match is taken at once: none that begins one byte later is
 * tried. Data that does not shrink by a quarter, or shows no match in the first 1024 bytes of
 * output, is given up. (PostgreSQL: pglz_compress with PGLZ_strategy_default, pg_lzcompress.c.)
 *
 * <p>Owns its history, 100 KiB: one thread. Allocates nothing but in the constructor.
 */
public final class PglzCompressor {
    /** Shorter data is not tried. (PostgreSQL: PGLZ_strategy_default.) */
    public static final int MIN_INPUT = 32;

    private static final int GIVE_UP_AFTER = 1024;
    private static final int GOOD_MATCH = 128;
    private static final int LONGEST_MATCH = 273;
    private static final int HISTORY = 4096;
    private static final int MAX_DISTANCE = 0x0FFE;

    /** Entry 0 means none; it is written to as a neighbour but never read. */
    private final int[] newest = new int[8192];

    private final int[] older = new int[HISTORY + 1];
    private final int[] newer = new int[HISTORY + 1];
    private final int[] hashOf = new int[HISTORY + 1];
    private final int[] placeOf = new int[HISTORY + 1];

    private byte[] source;
    private int end;
    private int mask;
    private int nextEntry;
    private boolean recycling;
    private int matchLength;
    private int matchDistance;

    private byte[] target;
    private int out;
    private int controlAt;
    private int control;
    private int items;

    /** Bytes that {@code to} must have for a source of {@code length}. */
    public static int maxOutput(int length) {
        return length + 4;
    }

    /**
     * Compresses {@code length} bytes of {@code from} to the beginning of {@code to}, which must
     * have {@link #maxOutput} bytes.
     *
     * @return the compressed length, or -1 when it is not worth it; {@code to} then holds garbage
     */
    public int compress(byte[] from, int offset, int length, byte[] to) {
        if (length < MIN_INPUT) {
            return -1;
        }
        int limit = length > Integer.MAX_VALUE / 100 ? length / 100 * 75 : length * 75 / 100;
        begin(from, offset, length, to);
        boolean matched = false;
        for (int at = offset; at < end; ) {
            if (out >= limit || !matched && out >= GIVE_UP_AFTER) {
                return -1;
            }
            nextItem();
            if (findMatch(at)) {
                matched = true;
                control |= 1 << items - 1;
                putMatch();
                for (int last = at + matchLength; at < last; at++) {
                    remember(at);
                }
            } else {
                to[out++] = from[at];
                remember(at++);
            }
        }
        to[controlAt] = (byte) control;
        return out < limit ? out : -1;
    }

    private void begin(byte[] from, int offset, int length, byte[] to) {
        source = from;
        end = offset + length;
        int lists = Math.clamp(Integer.highestOneBit(Math.max(length, 1)) * 8L, 512, 8192);
        mask = lists - 1;
        Arrays.fill(newest, 0, lists, 0);
        nextEntry = 1;
        recycling = false;
        target = to;
        out = 0;
        controlAt = 0;
        control = 0;
        items = 8;
    }

    /** A control byte goes before each eight items. */
    private void nextItem() {
        if (items == 8) {
            if (out > 0) {
                target[controlAt] = (byte) control;
            }
            controlAt = out++;
            control = 0;
            items = 0;
        }
        items++;
    }

    private void putMatch() {
        int high = matchDistance >> 4 & 0xF0;
        if (matchLength > 17) {
            target[out++] = (byte) (high | 0x0F);
            target[out++] = (byte) matchDistance;
            target[out++] = (byte) (matchLength - 18);
        } else {
            target[out++] = (byte) (high | matchLength - 3);
            target[out++] = (byte) matchDistance;
        }
    }

    private boolean findMatch(int at) {
        int enough = GOOD_MATCH;
        int longest = Math.min(LONGEST_MATCH, end - at);
        matchLength = 0;
        for (int entry = newest[hash(at)]; entry != 0; entry = older[entry]) {
            int place = placeOf[entry];
            if (at - place > MAX_DISTANCE) {
                break;
            }
            int length = 0;
            while (length < longest && source[at + length] == source[place + length]) {
                length++;
            }
            if (length > matchLength) {
                matchLength = length;
                matchDistance = at - place;
            }
            if (matchLength >= enough) {
                break;
            }
            enough -= enough * 10 / 100;
        }
        return matchLength > 2;
    }

    /** Of the next four bytes, as signed numbers; of one near the end. */
    private int hash(int at) {
        byte[] s = source;
        int value = end - at < 4 ? s[at] : s[at] << 6 ^ s[at + 1] << 4 ^ s[at + 2] << 2 ^ s[at + 3];
        return value & mask;
    }

    private void remember(int at) {
        int entry = nextEntry;
        if (recycling) {
            if (newer[entry] == 0) {
                newest[hashOf[entry]] = older[entry];
            } else {
                older[newer[entry]] = older[entry];
            }
            newer[older[entry]] = newer[entry];
        }
        int hash = hash(at);
        int former = newest[hash];
        older[entry] = former;
        newer[entry] = 0;
        newer[former] = entry;
        hashOf[entry] = hash;
        placeOf[entry] = at;
        newest[hash] = entry;
        if (++nextEntry > HISTORY) {
            nextEntry = 1;
            recycling = true;
        }
    }
}
