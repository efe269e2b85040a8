package org.pgkernel.bufmgr;

import org.agrona.UnsafeApi;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Two bytes a buffer that tell, but for collisions, which relation its page is of; 0 for a buffer
 * without a page. Scanned instead of the tags, of which 20 bytes a buffer would have to be read.
 *
 * <p>Written by who changes the tag, with the buffer pinned or its header locked; read without any
 * lock. So a scan that began after the last page of a relation was mapped meets all its buffers,
 * and must look at the tag of each, under the header lock.
 *
 * <p>The scan goes by blocks of 1 KiB: first a loop without branches that the compiler turns into
 * vector instructions finds out whether a block holds the fingerprint at all, at the speed of
 * memory; only then it is looked for. Four fingerprints are compared at a time in a {@code long}:
 * {@code (x - 1) & ~x & 0x8000} of each lane {@code x}, which is 0 where they are equal, tells
 * whether there is a 0 (with a false alarm now and then in a lane above one).
 */
final class Fingerprints {
    private static final int BLOCK_BYTES = 1024;
    static final int BLOCK_BUFFERS = BLOCK_BYTES / 2;
    private static final int PART_BYTES = 128;
    private static final int PART_BUFFERS = PART_BYTES / 2;
    private static final long ONES = 0x0001000100010001L;
    private static final long HIGH_BITS = 0x8000800080008000L;

    private final UnsafeBuffer array;
    private final int mask;

    Fingerprints(NativeArrays memory, int nbuffers, int bits) {
        long blocks = (nbuffers + BLOCK_BUFFERS - 1) / BLOCK_BUFFERS;
        array = memory.reserve(blocks * BLOCK_BYTES);
        mask = (1 << bits) - 1;
    }

    /** From 1 to 65,535. */
    int of(int spc, int db, int rel) {
        return of(ForkTable.relationHash(spc, db, rel));
    }

    private int of(int hash) {
        int fingerprint = (hash >>> 16 ^ hash) & mask;
        return fingerprint == 0 ? 1 : fingerprint;
    }

    void set(int buffer, int spc, int db, int rel) {
        array.putShort(buffer << 1, (short) of(spc, db, rel));
    }

    /** The same by {@link ForkTable#relationHash}. */
    void set(int buffer, int relationHash) {
        array.putShort(buffer << 1, (short) of(relationHash));
    }

    void clear(int buffer) {
        array.putShort(buffer << 1, (short) 0);
    }

    int get(int buffer) {
        return array.getShort(buffer << 1) & 0xFFFF;
    }

    /**
     * The first buffer from {@code from} on with the fingerprint; {@code end} if there is none
     * below it.
     */
    int next(int from, int end, int fingerprint) {
        long pattern = fingerprint * ONES;
        int buffer = from;
        while (buffer < end) {
            if ((buffer & BLOCK_BUFFERS - 1) == 0 && !blockMayHold(buffer << 1, pattern)) {
                buffer += BLOCK_BUFFERS;
                continue;
            }
            int blockEnd = Math.min(end, (buffer | BLOCK_BUFFERS - 1) + 1);
            while (buffer < blockEnd) {
                if ((buffer & PART_BUFFERS - 1) == 0 && !partMayHold(buffer << 1, pattern)) {
                    buffer += PART_BUFFERS;
                } else if ((buffer & 3) == 0 && !mayHold(array.getLong(buffer << 1), pattern)) {
                    buffer += 4;
                } else if (get(buffer) == fingerprint) {
                    return buffer;
                } else {
                    buffer++;
                }
            }
        }
        return end;
    }

    /**
     * The same for any of a set: {@code members} has the bit of each, {@code few} the first {@code
     * count}, if they are few.
     */
    int nextOfSet(int from, int end, long[] members, int[] few, int count) {
        int buffer = from;
        while (buffer < end) {
            if ((buffer & BLOCK_BUFFERS - 1) == 0
                    && !blockMayHoldAny(buffer << 1, members, few, count)) {
                buffer += BLOCK_BUFFERS;
                continue;
            }
            int blockEnd = Math.min(end, (buffer | BLOCK_BUFFERS - 1) + 1);
            for (; buffer < blockEnd; buffer++) {
                int fingerprint = get(buffer);
                if ((members[fingerprint >>> 6] >>> fingerprint & 1) != 0) {
                    return buffer;
                }
            }
        }
        return end;
    }

    private boolean blockMayHoldAny(int offset, long[] members, int[] few, int count) {
        if (count > DropCosts.FINGERPRINTS_COMPARED) {
            return blockHoldsMember(offset, members);
        }
        for (int i = 0; i < count; i++) { // the block stays in the nearest cache
            if (blockMayHold(offset, few[i] * ONES)) {
                return true;
            }
        }
        return false;
    }

    /** A part of a block, so that what is in a block is found without a branch a word. */
    private boolean partMayHold(int offset, long pattern) {
        array.boundsCheck(offset, PART_BYTES);
        return mayHold(array.addressOffset() + offset, PART_BYTES, pattern) != 0;
    }

    private static boolean mayHold(long fingerprints, long pattern) {
        long x = fingerprints ^ pattern;
        return ((x - ONES) & ~x & HIGH_BITS) != 0;
    }

    private boolean blockMayHold(int offset, long pattern) {
        array.boundsCheck(offset, BLOCK_BYTES);
        return mayHold(array.addressOffset() + offset, BLOCK_BYTES, pattern) != 0;
    }

    /**
     * Raw addresses, as a bounds check for each word would keep the compiler from making vectors of
     * them.
     */
    private static long mayHold(long address, int bytes, long pattern) {
        long found = 0;
        for (int i = 0; i < bytes; i += 8) {
            long x = UnsafeApi.getLong(address + i) ^ pattern;
            found |= (x - ONES) & ~x;
        }
        return found & HIGH_BITS;
    }

    private boolean blockHoldsMember(int offset, long[] members) {
        array.boundsCheck(offset, BLOCK_BYTES);
        long address = array.addressOffset() + offset;
        long found = 0;
        for (int i = 0; i < BLOCK_BYTES; i += 8) {
            long x = UnsafeApi.getLong(address + i);
            found |=
                    members[(int) (x >>> 6) & 1023] >>> x
                            | members[(int) (x >>> 22) & 1023] >>> (x >>> 16)
                            | members[(int) (x >>> 38) & 1023] >>> (x >>> 32)
                            | members[(int) (x >>> 54)] >>> (x >>> 48);
        }
        return (found & 1) != 0;
    }
}
