package org.pgkernel.base.error;

/**
 * Transactions wait for each other in a circle, and this one was chosen to give way. It waits no
 * longer and keeps the locks that it had; once it is rolled back, or back to a savepoint before the
 * lock that the others want, it may be tried again. (PostgreSQL: ERRCODE_T_R_DEADLOCK_DETECTED.)
 */
public final class DeadlockException extends KernelException {
    /**
     * @param message who waits for whom and for what, the whole circle
     */
    public DeadlockException(String message) {
        super(message, null);
    }

    @Override
    public boolean mayRetry() {
        return true;
    }
}
