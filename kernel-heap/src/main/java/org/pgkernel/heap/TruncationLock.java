package org.pgkernel.heap;

/**
 * The lock against everybody that a relation is cut under, and the time that is spent on it; one
 * relation's, of one backend.
 */
public interface TruncationLock {
    /** ACCESS EXCLUSIVE, without waiting. @return false when it is not to be had now */
    boolean tryLock();

    void unlock();

    /** True if somebody waits for the relation while this is held. */
    boolean hasWaiters();

    /** A clock that does not go back; only differences matter. */
    long nanoTime();

    /**
     * Returns after this time, or earlier.
     *
     * <p>Throws when the vacuum is to end instead.
     */
    void sleep(long nanos);
}
