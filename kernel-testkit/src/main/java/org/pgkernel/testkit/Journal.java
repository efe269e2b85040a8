package org.pgkernel.testkit;

/**
 * Numbers the changes of names and lengths on one disk in the order they were made. Guarded by the
 * disk's lock.
 */
final class Journal {
    private long last;
    private long synced;

    /** The number of a new change. */
    long next() {
        return ++last;
    }

    /** A change has become durable; a journal holds all before it, then. */
    void synced(long order) {
        synced = Math.max(synced, order);
    }

    long last() {
        return last;
    }

    /** The last change known to be durable. */
    long synced() {
        return synced;
    }
}
