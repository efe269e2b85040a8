package org.pgkernel.cluster;

/** What a transaction sees of others. */
public enum Isolation {
    /** Each statement sees what had committed when it began. */
    READ_COMMITTED,
    /**
     * All statements see what had committed when the first one began; who wants to change a row
     * that another has changed since gets an error. Allows write skew, as PostgreSQL's does.
     */
    REPEATABLE_READ
}
