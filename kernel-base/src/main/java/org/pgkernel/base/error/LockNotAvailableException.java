package org.pgkernel.base.error;

/**
 * Somebody else holds a lock, and the caller did not want to wait for it, has waited as long as it
 * may, or was interrupted. Nothing has changed. (PostgreSQL: ERRCODE_LOCK_NOT_AVAILABLE.)
 */
public final class LockNotAvailableException extends KernelException {
    public LockNotAvailableException(String message) {
        super(message, null);
    }

    @Override
    public boolean mayRetry() {
        return true;
    }
}
