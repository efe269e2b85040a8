package org.pgkernel.recovery;

import java.util.List;

/** One kernel module's part in recovery, made anew for every cluster that is opened. */
public interface RecoveryModule {
    List<ResourceManager> resourceManagers();

    /**
     * Called once after the control file was read and the counters set from the checkpoint, before
     * the first record.
     */
    default void beforeRedo(RedoContext context) {}

    /**
     * Called once after the last record, before new WAL is written: brings SLRUs to their exact end
     * and the like. (PostgreSQL: TrimCLOG, TrimMultiXact, StartupSUBTRANS.)
     */
    default void afterRedo(RedoContext context) {}

    /**
     * Called once when recovery is over: the end-of-recovery checkpoint or record is written,
     * ordinary checkpoints follow. (PostgreSQL: CompleteCommitTsInitialization, and
     * SharedRecoveryState becoming RECOVERY_STATE_DONE.)
     */
    default void afterRecovery(RedoContext context) {}

    /** The counters that checkpoints record, or null: exactly one module supplies them. */
    default RecoveredCounters counters() {
        return null;
    }

    default List<CheckpointParticipant> checkpointParticipants() {
        return List.of();
    }

    /** Releases files and memory; writes nothing. */
    default void close() {}
}
