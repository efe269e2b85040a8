package org.pgkernel.recovery;

/**
 * Applies records in order. An engine may use threads of its own, but {@link #replay} returns only
 * when every record it took is applied wholly; all engines leave the same pages.
 */
public interface RedoEngine {
    /** Why {@link #replay} returned. */
    enum Outcome {
        /** The next record begins at or after the stop position. */
        STOPPED,
        /** There is no further valid record; the reader says why. */
        END_OF_WAL
    }

    /**
     * Replays up to, and not including, the first record that begins at or after {@code stopLsn}.
     * May be called again to go on.
     *
     * @param stopLsn 0 for no limit
     * @throws org.pgkernel.base.error.DamagedDataException when a record cannot be applied: all
     *     before it are, nothing of it or after it is
     */
    Outcome replay(long stopLsn);

    /** Records applied since the start. */
    long records();
}
