package org.pgkernel.heap;

import java.util.Arrays;

/**
 * Dead line pointers that a vacuum has found and not yet made free, in the order of the file. One
 * thread's. (PostgreSQL: VacDeadItems.)
 */
public final class DeadTuples {
    private final int most;
    private long[] tids = new long[1024];
    private int count;

    DeadTuples(int most) {
        this.most = most;
    }

    /** Later than all before. */
    void add(long tid) {
        assert count == 0 || tids[count - 1] < tid : "out of order";
        if (count == tids.length) {
            tids = Arrays.copyOf(tids, (int) Math.min(most, 2L * count));
        }
        tids[count++] = tid;
    }

    int room() {
        return most - count;
    }

    void clear() {
        count = 0;
    }

    public int count() {
        return count;
    }

    /** As {@link TupleId} has it; ascending. */
    public long tid(int i) {
        return tids[i];
    }

    /** True if the line pointer is one of them. (PostgreSQL: vac_tid_reaped.) */
    public boolean contains(long tid) {
        return Arrays.binarySearch(tids, 0, count, tid) >= 0;
    }
}
