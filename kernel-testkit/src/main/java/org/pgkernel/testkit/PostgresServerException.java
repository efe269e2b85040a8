package org.pgkernel.testkit;

/**
 * A real PostgreSQL could not be unpacked, started, stopped or used; the message carries the end of
 * its log when there is one.
 */
public final class PostgresServerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public PostgresServerException(String message) {
        super(message);
    }

    public PostgresServerException(String message, Throwable cause) {
        super(message, cause);
    }
}
