package org.pgkernel.cluster;

/**
 * Several calls that are one statement: they share a snapshot, and none sees what the others
 * change. Close it before the next statement begins.
 */
public final class Statement implements AutoCloseable {
    private final BackendTransaction transaction;

    Statement(BackendTransaction transaction) {
        this.transaction = transaction;
    }

    @Override
    public void close() {
        transaction.closeStatement();
    }
}
