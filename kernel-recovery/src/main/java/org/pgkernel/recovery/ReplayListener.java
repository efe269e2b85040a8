package org.pgkernel.recovery;

/**
 * Told of replay's progress every few thousand records and when it stops; called by the replaying
 * thread.
 */
public interface ReplayListener {
    ReplayListener NONE = (lsn, bytes, records) -> {};

    /**
     * @param lsn end of the last record applied
     * @param bytes WAL replayed since the start, page headers included
     * @param records applied since the start
     */
    void progress(long lsn, long bytes, long records);
}
