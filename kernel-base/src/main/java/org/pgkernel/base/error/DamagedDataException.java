package org.pgkernel.base.error;

/**
 * Bytes read from disk are not what their format demands: a page, a WAL record, a control file.
 * Nothing was changed because of them.
 */
public final class DamagedDataException extends KernelException {
    public DamagedDataException(String message) {
        super(message, null);
    }

    public DamagedDataException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public boolean mayRetry() {
        return false;
    }
}
