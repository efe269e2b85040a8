package org.pgkernel.base.error;

/**
 * The kernel met a failure after which going on could lose data (a failed sync, a failure inside a
 * critical section) and refuses all work until it is opened anew.
 */
public final class KernelStoppedException extends KernelException {
    public KernelStoppedException(String message) {
        super(message, null);
    }

    public KernelStoppedException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public boolean mayRetry() {
        return false;
    }
}
