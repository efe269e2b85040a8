package org.pgkernel.benchmarks;

/** Waits for a thread's end. */
final class Joining {
    private Joining() {}

    static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
