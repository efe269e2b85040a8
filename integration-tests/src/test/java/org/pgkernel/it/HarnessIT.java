package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresInspection;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.Workloads;

/** Proves the oracle itself: PostgreSQL equals PostgreSQL, and one changed byte does not. */
class HarnessIT {
    @Test
    void postgresRecoversToEqualPagesAtTwoPoolSizesAndOnePlantedByteIsFound() throws Exception {
        var settings =
                new CrashedCluster.Settings(PostgresBinaries.judge(), false, true, "off", "128MB");
        try (CrashedCluster cluster =
                CrashedCluster.make(settings, server -> {}, Workloads::everything, server -> {})) {
            for (CrashedCluster.Base base : CrashedCluster.Base.values()) {
                Path left = cluster.copy("left-" + base, base);
                Path right = cluster.copy("right-" + base, base);
                String log =
                        PostgresServer.recover(settings.binaries(), left, with(settings, "1MB"));
                assertTrue(log.contains("redo done"), log);
                PostgresServer.recover(settings.binaries(), right, with(settings, "512MB"));
                ClusterComparison.Result result = ClusterComparison.compare(left, right);
                assertTrue(result.equal(), result.describe());
                assertTrue(result.pages() > 3000, result.describe());

                if (base == CrashedCluster.Base.AT_CHECKPOINT) {
                    try (RandomAccessFile file =
                            new RandomAccessFile(right.resolve("base/5/1259").toFile(), "rw")) {
                        file.seek(5 * 8192 + 4000);
                        int old = file.read();
                        file.seek(5 * 8192 + 4000);
                        file.write(old ^ 1);
                    }
                    ClusterComparison.Result planted = ClusterComparison.compare(left, right);
                    assertEquals(1, planted.differenceCount(), planted.describe());
                    assertEquals("base/5/1259", planted.differences().getFirst().file());
                    assertEquals(5, planted.differences().getFirst().block());
                }
                PostgresInspection.Report report =
                        PostgresInspection.inspect(settings.binaries(), left, settings.asMap());
                assertEquals(List.of(), report.complaints());
                assertEquals("0 0", report.tables().get("postgres.public.plain_0"));
                assertTrue(report.tables().get("postgres.public.plain_5").startsWith("500 "));
            }
            Path left = cluster.copyCutAt("left-cut", cluster.pauseLsn());
            PostgresServer.recover(settings.binaries(), left, settings.asMap());
            PostgresInspection.Report report =
                    PostgresInspection.inspect(settings.binaries(), left, settings.asMap());
            assertFalse(report.tables().containsKey("postgres.public.last_commit"));
        }
    }

    private static Map<String, String> with(
            CrashedCluster.Settings settings, String sharedBuffers) {
        Map<String, String> map = new LinkedHashMap<>(settings.asMap());
        map.put("shared_buffers", sharedBuffers);
        return map;
    }
}
