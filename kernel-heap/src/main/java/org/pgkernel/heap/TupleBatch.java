package org.pgkernel.heap;

import org.agrona.ExpandableArrayBuffer;

/** Tuples on their way to pages, one after another in memory that is kept. One thread. */
final class TupleBatch {
    private static final int MOST_TUPLES = 1000;
    private static final int ENOUGH_BYTES = 64 * 1024;

    final ExpandableArrayBuffer tuples = new ExpandableArrayBuffer(ENOUGH_BYTES);
    final int[] starts = new int[MOST_TUPLES];
    final int[] lengths = new int[MOST_TUPLES];

    /** Line pointers, once they are on a page. */
    final int[] offsets = new int[MOST_TUPLES];

    int count;
    private int end;

    void clear() {
        count = 0;
        end = 0;
    }

    boolean hasRoom() {
        return count < MOST_TUPLES && end < ENOUGH_BYTES;
    }

    /**
     * @return where to put the next tuple, of so many bytes
     */
    int add(int length) {
        int at = end;
        starts[count] = at;
        lengths[count++] = length;
        end = at + length;
        return at;
    }
}
