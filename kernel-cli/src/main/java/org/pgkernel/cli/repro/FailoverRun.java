package org.pgkernel.cli.repro;

import java.nio.file.Path;
import org.pgkernel.bufmgr.DropStatistics;
import org.pgkernel.cli.UserException;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.ClusterOptions;
import org.pgkernel.cluster.Standby;
import org.pgkernel.testkit.ClusterComparison;

/**
 * One run of a cell on our standby: replay to the pause LSN, then resume → promoted timed; then the
 * pages are compared with the judge's.
 */
final class FailoverRun {
    private final Dataset dataset;
    private final Path directory;

    FailoverRun(Dataset dataset, Path directory) {
        this.dataset = dataset;
        this.directory = directory;
    }

    Measurement run(Cell cell, int repetition) {
        Primary.standbyDirectory(dataset, directory);
        ClusterOptions options =
                ClusterOptions.defaults()
                        .withSharedBuffers(cell.sharedBuffers().buffers())
                        .withDropStrategy(cell.strategy());
        double seconds;
        double dropSeconds;
        double checkpointSeconds;
        long fullScans;
        long lookups;
        try (Standby standby = Cluster.openStandby(directory, options)) {
            if (!standby.replayTo(dataset.pauseLsn())) {
                throw new UserException("the primary's WAL ended before the pause LSN");
            }
            DropStatistics drops = standby.dropStatistics();
            long scansBefore = drops.fullScans;
            long lookupsBefore = drops.lookups;
            long nanosBefore = drops.nanos;
            // Garbage of the load's replay is not part of the failover.
            System.gc();
            long began = System.nanoTime();
            standby.resume();
            try (Cluster promoted = standby.promote()) {
                seconds = (System.nanoTime() - began) / 1e9;
                dropSeconds = (drops.nanos - nanosBefore) / 1e9;
                fullScans = drops.fullScans - scansBefore;
                lookups = drops.lookups - lookupsBefore;
                checkpointSeconds = promoted.checkpoint() / 1e9;
            }
        }
        ClusterComparison.Result result = ClusterComparison.compare(dataset.judge(), directory);
        if (!result.equal()) {
            System.err.println(result.describe());
        }
        return new Measurement(
                cell,
                repetition,
                seconds,
                dropSeconds,
                checkpointSeconds,
                fullScans,
                lookups,
                result.pages(),
                result.differenceCount());
    }
}
