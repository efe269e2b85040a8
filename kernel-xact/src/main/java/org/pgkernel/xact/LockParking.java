package org.pgkernel.xact;

import java.util.concurrent.locks.LockSupport;

/** How sessions wait for locks: a clock and a place to sleep, so that a test may have its own. */
public interface LockParking {
    /** The system's clock and threads. */
    LockParking THREADS =
            new LockParking() {
                @Override
                public long nanoTime() {
                    return System.nanoTime();
                }

                @Override
                public void park(Object lock, long nanos) {
                    LockSupport.parkNanos(lock, nanos);
                }

                @Override
                public void unpark(Thread thread) {
                    LockSupport.unpark(thread);
                }
            };

    /** A clock that does not go back; only differences matter. */
    long nanoTime();

    /**
     * Returns once somebody called {@link #unpark} for the calling thread, even before this call,
     * once it is interrupted, once the time is over, or for no reason. The caller looks again.
     *
     * @param lock what is waited for, to be shown
     */
    void park(Object lock, long nanos);

    /** Called while locks of the lock table are held: must not wait. */
    void unpark(Thread thread);
}
