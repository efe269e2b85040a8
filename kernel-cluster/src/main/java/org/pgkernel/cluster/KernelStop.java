package org.pgkernel.cluster;

import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * Whether the kernel still runs. The first failure that stops it, wherever it shows, ends the
 * workers, and every later call gets the same sentence. Thread-safe.
 */
final class KernelStop {
    /** Set once. */
    private volatile Throwable cause;

    boolean isStopped() {
        return cause != null;
    }

    /** True for a failure after which nothing more may be written. An error of ours is one, too. */
    static boolean isFatal(Throwable failure) {
        return failure instanceof KernelStoppedException || !(failure instanceof KernelException);
    }

    synchronized void stop(Throwable failure) {
        if (cause == null) {
            cause = failure;
        }
    }

    /**
     * @throws KernelStoppedException if the kernel has stopped
     */
    void check() {
        Throwable why = cause;
        if (why != null) {
            throw new KernelStoppedException(
                    "the kernel has stopped; the cluster has to be opened again, which recovers it: "
                            + why.getMessage(),
                    why);
        }
    }
}
