package org.pgkernel.recovery;

/**
 * Something that must be on disk before a checkpoint is complete. Called in {@link Order}'s order.
 * (PostgreSQL: CheckPointGuts.)
 */
public interface CheckpointParticipant {
    /** When a participant's turn comes. */
    enum Order {
        RELATION_MAP,
        REPLICATION,
        SLRU,
        BUFFERS,
        SYNC,
        TWO_PHASE
    }

    Order order();

    String name();

    /** Writes and syncs. @param redoLsn the checkpoint's redo point */
    void checkpoint(long redoLsn);
}
