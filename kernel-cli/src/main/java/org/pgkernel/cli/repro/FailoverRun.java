package org.pgkernel.cli.repro;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.pgkernel.bufmgr.DropDecision;
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
        List<DropDecision> decisions;
        try (Standby standby = Cluster.openStandby(directory, options)) {
            if (!standby.replayTo(dataset.pauseLsn())) {
                throw new UserException("the primary's WAL ended before the pause LSN");
            }
            DropStatistics drops = standby.dropStatistics();
            List<DropDecision> before = drops.decisions();
            long nanosBefore = drops.nanos;
            // Garbage of the load's replay is not part of the failover.
            System.gc();
            long began = System.nanoTime();
            standby.resume();
            try (Cluster promoted = standby.promote()) {
                seconds = (System.nanoTime() - began) / 1e9;
                dropSeconds = (drops.nanos - nanosBefore) / 1e9;
                decisions = since(before, drops.decisions());
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
                decisions,
                result.pages(),
                result.differenceCount());
    }

    /** What was decided after the pause: totals only grow. */
    static List<DropDecision> since(List<DropDecision> before, List<DropDecision> after) {
        List<DropDecision> measured = new ArrayList<>();
        for (DropDecision now : after) {
            DropDecision then =
                    before.stream()
                            .filter(
                                    d ->
                                            d.kind() == now.kind()
                                                    && d.path() == now.path()
                                                    && d.reason() == now.reason()
                                                    && d.stop() == now.stop())
                            .findFirst()
                            .orElse(null);
            DropDecision grown = then == null ? now : minus(now, then);
            if (grown.calls() > 0) {
                measured.add(grown);
            }
        }
        return measured;
    }

    private static DropDecision minus(DropDecision now, DropDecision then) {
        return new DropDecision(
                now.kind(),
                now.path(),
                now.reason(),
                now.stop(),
                now.calls() - then.calls(),
                now.probes() - then.probes(),
                now.bytesScanned() - then.bytesScanned(),
                now.buffersDropped() - then.buffersDropped(),
                now.nanos() - then.nanos());
    }
}
