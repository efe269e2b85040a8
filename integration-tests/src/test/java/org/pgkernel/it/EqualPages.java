package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Path;
import java.util.List;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.PostgresInspection;
import org.pgkernel.testkit.PostgresServer;

/**
 * The oracle: what PostgreSQL makes of a crashed directory by crash recovery, and what the kernel
 * makes of it, are the same bytes.
 */
final class EqualPages {
    private static final int EXPLAINED = 4;

    private EqualPages() {}

    /**
     * Recovers {@code left} by PostgreSQL and {@code right}, its twin, by the kernel, and compares.
     */
    static ClusterComparison.Result check(
            CrashedCluster cluster, Path left, Path right, KernelRecovery kernel) throws Exception {
        long redo = ControlFile.read(new PosixDisk(), right.toString()).checkPointRedo();
        String log =
                PostgresServer.recover(
                        cluster.settings().binaries(), left, cluster.settings().asMap());
        assertTrue(log.contains("redo done"), () -> "PostgreSQL had nothing to redo:\n" + log);
        kernel.recover(right);
        // FSM pages under checksums are the one exception: they change without WAL.
        ClusterComparison.Result result =
                ClusterComparison.compare(left, right, cluster.settings().checksums());
        if (!result.equal()) {
            fail(explain(result, left, right, redo));
        }
        assertTrue(result.pages() > 2000, () -> "too little compared: " + result.describe());
        assertEquals(List.of(), controlFileDifferences(left, right), "pg_control");
        return result;
    }

    static List<ControlFile.Difference> controlFileDifferences(Path left, Path right) {
        PosixDisk disk = new PosixDisk();
        return ControlFile.read(disk, left.toString())
                .describeDifferences(ControlFile.read(disk, right.toString()), true);
    }

    /** PostgreSQL starts on the directory without redo, and finds nothing to complain about. */
    static PostgresInspection.Report inspect(CrashedCluster cluster, Path directory) {
        PostgresInspection.Report report =
                PostgresInspection.inspect(
                        cluster.settings().binaries(), directory, cluster.settings().asMap());
        assertEquals(List.of(), report.complaints(), "complaints");
        return report;
    }

    private static String explain(
            ClusterComparison.Result result, Path left, Path right, long redo) {
        StringBuilder text =
                new StringBuilder(result.describe())
                        .append("\nleft: PostgreSQL, right: the kernel\n");
        for (ClusterComparison.Difference difference :
                result.differences().subList(0, Math.min(EXPLAINED, result.differences().size()))) {
            text.append('\n')
                    .append(ClusterComparison.explain(left, right, difference))
                    .append('\n');
            RecordTrace.touching(left.resolve("pg_wal"), redo, difference)
                    .forEach(line -> text.append("  ").append(line).append('\n'));
        }
        return text.toString();
    }
}
