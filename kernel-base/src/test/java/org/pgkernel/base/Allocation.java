package org.pgkernel.base;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** Measures what a piece of code allocates once the compiler is done with it. */
public final class Allocation {
    private static final long PATIENCE_NANOS = 15_000_000_000L;

    private Allocation() {}

    /**
     * Runs {@code round} again and again until a run stays below {@code limit} bytes, or patience
     * ends: interpreted code allocates what compiled code does not, and a busy machine compiles
     * late.
     *
     * @return bytes of the best run
     */
    public static long ofWarm(Runnable round, long limit) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long end = System.nanoTime() + PATIENCE_NANOS;
        long best = Long.MAX_VALUE;
        do {
            long before = threads.getCurrentThreadAllocatedBytes();
            round.run();
            best = Math.min(best, threads.getCurrentThreadAllocatedBytes() - before);
        } while (best >= limit && System.nanoTime() < end);
        return best;
    }
}
