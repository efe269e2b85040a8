package org.pgkernel.bufmgr;

/**
 * What must be durable before a page may be written: WAL on a primary, the minimum recovery point
 * in recovery.
 */
@FunctionalInterface
public interface DurabilityGate {
    /**
     * Returns when a page with this LSN may go to disk. (PostgreSQL: XLogFlush,
     * UpdateMinRecoveryPoint.)
     */
    void beforeWrite(long pageLsn);

    /**
     * True if {@link #beforeWrite} would have to make something durable first. A hint, which costs
     * next to nothing: a ring of a bulk read takes another buffer then. (PostgreSQL:
     * XLogNeedsFlush.)
     */
    default boolean wouldFlush(long pageLsn) {
        return false;
    }
}
