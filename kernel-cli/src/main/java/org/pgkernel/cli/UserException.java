package org.pgkernel.cli;

/** Something outside the kernel that the user must mend; the message is one sentence. */
public final class UserException extends RuntimeException {
    public UserException(String message) {
        super(message);
    }

    public UserException(String message, Throwable cause) {
        super(message, cause);
    }
}
