package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.Workloads;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * The WAL may end anywhere: between any two records, in the middle of one, at a page's edge, in a
 * record that crosses pages. Kernel and PostgreSQL make the same of it. {@code -Dpgkernel.seed=N}
 * repeats a run, {@code -Dpgkernel.cuts=N} tries more places.
 */
class WalCutIT {
    @Test
    void walCutAnywhereRecoversToEqualPages() throws Exception {
        long seed = Long.getLong("pgkernel.seed", System.nanoTime());
        int cuts =
                Integer.getInteger(
                        "pgkernel.cuts",
                        "full".equals(System.getProperty("pgkernel.matrix")) ? 60 : 6);
        Random random = new Random(seed);
        boolean images = random.nextBoolean();
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(), false, images, images ? "pglz" : "off", "16MB");
        try (CrashedCluster cluster =
                CrashedCluster.make(settings, server -> {}, Workloads::everything, server -> {})) {
            Path whole = cluster.copy("whole", CrashedCluster.Base.AT_CHECKPOINT);
            long redo = ControlFile.read(new PosixDisk(), whole.toString()).checkPointRedo();
            List<long[]> records = records(whole, redo);
            for (int i = 0; i < cuts; i++) {
                long[] record = records.get(1 + random.nextInt(records.size() - 1));
                // Every third cut falls between records, every third into one, every third on the
                // page edge before one's end.
                long lsn =
                        switch (i % 3) {
                            case 0 -> record[0];
                            case 1 -> record[0] + 1 + random.nextLong(record[1] - record[0] - 1);
                            default -> Math.max(record[1] & ~8191L, redo + 8192 & ~8191L);
                        };
                check(
                        cluster,
                        lsn,
                        "seed=" + seed + " cut=" + Lsn.format(lsn),
                        i,
                        1 << 6 + random.nextInt(9),
                        DropStrategy.values()[i % DropStrategy.values().length]);
            }
        }
    }

    private static void check(
            CrashedCluster cluster,
            long lsn,
            String place,
            int i,
            int buffers,
            DropStrategy strategy)
            throws Exception {
        Path left = cluster.copyCutAt("postgres-" + i, lsn);
        Path right = cluster.copyCutAt("kernel-" + i, lsn);
        try {
            PostgresServer.recover(cluster.settings().binaries(), left, cluster.settings().asMap());
            KernelRecovery.of(cluster, buffers, strategy).recover(right);
        } catch (RuntimeException | AssertionError e) {
            fail(place, e);
        }
        ClusterComparison.Result result = ClusterComparison.compare(left, right);
        if (!result.equal()) {
            fail(
                    place
                            + "\n"
                            + result.describe()
                            + "\n"
                            + ClusterComparison.explain(
                                    left, right, result.differences().getFirst()));
        }
        assertEquals(List.of(), EqualPages.controlFileDifferences(left, right), place);
        // And each is a place where the other could have stopped: PostgreSQL starts on ours without
        // redo.
        String log =
                PostgresServer.recover(
                        cluster.settings().binaries(), right, cluster.settings().asMap());
        assertEquals(false, log.contains("redo starts"), place + "\n" + log);
    }

    /** Start and end of each record from the redo point on. */
    private static List<long[]> records(Path directory, long redo) {
        List<long[]> all = new ArrayList<>();
        try (WalReader reader =
                new WalReader(
                        new PosixDisk(),
                        directory.resolve("pg_wal").toString(),
                        TimelineHistory.of(1),
                        16 << 20,
                        0)) {
            reader.begin(redo);
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                all.add(new long[] {record.lsn(), record.endLsn()});
            }
        }
        return all;
    }
}
