package org.pgkernel.testkit;

/** Random numbers that depend on a key only, not on what was drawn before. */
final class Chance {
    private long state;

    Chance(long seed, long key) {
        state = mix(seed, key);
    }

    /** A number for a pair of numbers; equal pairs give equal numbers. */
    static long mix(long a, long b) {
        long z = a * 0x9E3779B97F4A7C15L + b + 0x632BE59BD9B4E019L;
        z = (z ^ z >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }

    long nextLong() {
        state += 0x9E3779B97F4A7C15L;
        return mix(state, 0);
    }

    /** From 0 to {@code bound - 1}. */
    int next(int bound) {
        return (int) Long.remainderUnsigned(nextLong(), bound);
    }
}
