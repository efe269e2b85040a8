package org.pgkernel.recovery;

import java.util.List;

/**
 * Provides the resource managers that belong to recovery itself: XLOG, Database, Tablespace,
 * RelMap, ReplicationOrigin, LogicalMessage.
 */
public final class CoreRecoveryModuleProvider implements RecoveryModuleProvider {
    @Override
    public String name() {
        return "kernel-recovery";
    }

    @Override
    public RecoveryModule create(RecoveryEnvironment environment) {
        List<ResourceManager> managers =
                List.of(
                        new XlogRedo(),
                        new DatabaseRedo(),
                        new TablespaceRedo(),
                        new RelMapRedo(),
                        new ReplicationOriginRedo(),
                        new LogicalMessageRedo());
        return () -> managers;
    }
}
