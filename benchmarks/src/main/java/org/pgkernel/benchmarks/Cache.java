package org.pgkernel.benchmarks;

import java.util.Arrays;

/** Something large to walk over, so that nothing else stays in the processor's caches. */
final class Cache {
    /** Four times the last-level cache that we know of. */
    private static final int LONGS = 128 << 20 >> 3;

    private static final int LINE = 8;

    private static final long[] ARRAY = new long[LONGS];

    static {
        Arrays.fill(ARRAY, 1);
    }

    private Cache() {}

    static long flush() {
        long sum = 0;
        for (int i = 0; i < LONGS; i += LINE) {
            sum += ARRAY[i];
        }
        return sum;
    }
}
