package org.pgkernel.it;

import java.nio.file.Path;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;

/** Crash recovery by the kernel: opened, replayed, shut down. */
record KernelRecovery(int sharedBuffers, DropStrategy strategy, boolean fullPageWrites) {
    static KernelRecovery of(CrashedCluster cluster, int sharedBuffers, DropStrategy strategy) {
        return new KernelRecovery(sharedBuffers, strategy, cluster.settings().fullPageWrites());
    }

    ClusterOptions options() {
        return ClusterOptions.defaults()
                .withSharedBuffers(sharedBuffers)
                .withDropStrategy(strategy)
                .withFullPageWrites(fullPageWrites);
    }

    Cluster.Report recover(Path dataDirectory) {
        try (Cluster cluster = Cluster.openForCrashRecovery(dataDirectory, options())) {
            return cluster.report();
        }
    }
}
