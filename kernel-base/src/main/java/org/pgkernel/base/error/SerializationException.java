package org.pgkernel.base.error;

/**
 * At REPEATABLE READ a row that the transaction's snapshot sees has been changed by another
 * transaction that committed since: to go on would lose that change. The transaction may be tried
 * again from its beginning, with a new snapshot. (PostgreSQL: ERRCODE_T_R_SERIALIZATION_FAILURE.)
 */
public final class SerializationException extends KernelException {
    public SerializationException(String message) {
        super(message, null);
    }

    @Override
    public boolean mayRetry() {
        return true;
    }
}
