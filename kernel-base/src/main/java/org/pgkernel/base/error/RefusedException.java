package org.pgkernel.base.error;

/**
 * The request cannot be served as it stands: a wrong directory, another version, an option out of
 * range, a record type not covered. Nothing was written.
 */
public final class RefusedException extends KernelException {
    public RefusedException(String message) {
        super(message, null);
    }

    public RefusedException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public boolean mayRetry() {
        return false;
    }
}
