package org.pgkernel.base.error;

/**
 * Every buffer of the pool is pinned; the call may succeed once somebody unpins one. (PostgreSQL:
 * "no unpinned buffers available".)
 */
public final class NoFreeBufferException extends KernelException {
    public NoFreeBufferException(String message) {
        super(message, null);
    }

    public NoFreeBufferException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public boolean mayRetry() {
        return true;
    }
}
