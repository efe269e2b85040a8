package org.pgkernel.bufmgr;

import org.agrona.collections.Int2IntCounterMap;

/**
 * How often one backend has pinned each buffer. A backend seldom has more than a few pages pinned:
 * they stand in a small array that is looked through; what does not fit goes into a map. Of one
 * backend, so no locks. (PostgreSQL: PrivateRefCountArray, PrivateRefCountHash.)
 */
final class PrivatePins {
    /** One cache line of buffer numbers and one of counts. */
    static final int SLOTS = 8;

    private static final int NONE = -1;
    private static final float LOAD_FACTOR = 0.5f;

    private final int[] buffers = new int[SLOTS];

    /** Of the buffer in the same slot; 0 in an empty one. */
    private final int[] counts = new int[SLOTS];

    private Int2IntCounterMap overflow = new Int2IntCounterMap(0);
    private int distinct;

    PrivatePins() {
        java.util.Arrays.fill(buffers, NONE);
    }

    /** Makes room: {@link #add} of so many more buffers allocates nothing. */
    void reserve(int count) {
        // Some of the slots may be empty: then there is more room than is counted on here.
        if (distinct + count > SLOTS && overflow.size() + count > overflow.resizeThreshold()) {
            Int2IntCounterMap wider =
                    new Int2IntCounterMap(2 * (overflow.size() + count), LOAD_FACTOR, 0);
            overflow.forEach(wider::put);
            overflow = wider;
        }
    }

    /** Buffers pinned at least once. */
    int distinct() {
        return distinct;
    }

    /** Pins of the buffer, 0 if it has none. */
    int count(int buffer) {
        int slot = slot(buffer);
        return slot >= 0 ? counts[slot] : overflow.isEmpty() ? 0 : overflow.get(buffer);
    }

    /**
     * @return pins of the buffer, this one included
     */
    int add(int buffer) {
        int slot = slot(buffer);
        if (slot >= 0) {
            return ++counts[slot];
        }
        if (!overflow.isEmpty() && overflow.get(buffer) != 0) {
            return overflow.incrementAndGet(buffer);
        }
        distinct++;
        slot = slot(NONE);
        if (slot < 0) {
            return overflow.incrementAndGet(buffer);
        }
        buffers[slot] = buffer;
        counts[slot] = 1;
        return 1;
    }

    /** Takes a pin away; the buffer has one. @return what is left */
    int remove(int buffer) {
        int slot = slot(buffer);
        int left = slot >= 0 ? --counts[slot] : overflow.decrementAndGet(buffer);
        assert left >= 0 : "BUF-14: private pin count below 0";
        if (left == 0) {
            distinct--;
            if (slot >= 0) {
                buffers[slot] = NONE;
            }
        }
        return left;
    }

    /** The pinned buffer in the array whose tag this is, or -1; those in the map are not asked. */
    int find(BufferDescriptors descriptors, int spc, int db, int rel, int fork, int block) {
        for (int i = 0; i < SLOTS; i++) {
            int buffer = buffers[i];
            if (buffer != NONE && descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
                return buffer;
            }
        }
        return NONE;
    }

    /** True if every pinned buffer is in the array. */
    boolean fitsArray() {
        return overflow.isEmpty();
    }

    private int slot(int buffer) {
        for (int i = 0; i < SLOTS; i++) {
            if (buffers[i] == buffer) {
                return i;
            }
        }
        return -1;
    }
}
