package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresInspection;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.Workloads;

/**
 * Crash recovery by the kernel and by PostgreSQL 15.7 from copies of one directory end in the same
 * bytes, nothing masked.
 */
class EqualPagesIT {
    private static final boolean FULL = "full".equals(System.getProperty("pgkernel.matrix"));

    /**
     * Which directory is recovered (all, in the full matrix), the primary's settings, and what the
     * kernel recovers with.
     */
    record Case(
            CrashedCluster.Base base,
            boolean checksums,
            boolean fullPageWrites,
            String walCompression,
            int sharedBuffers,
            DropStrategy strategy) {
        CrashedCluster.Settings settings() {
            // A small pool on the primary: many pages reach the disk before the crash, newer than
            // the redo point.
            return new CrashedCluster.Settings(
                    PostgresBinaries.judge(), checksums, fullPageWrites, walCompression, "2MB");
        }

        @Override
        public String toString() {
            return base
                    + " checksums="
                    + checksums
                    + " full_page_writes="
                    + fullPageWrites
                    + " wal_compression="
                    + walCompression
                    + " buffers="
                    + sharedBuffers
                    + " "
                    + strategy;
        }
    }

    static Stream<Case> cases() {
        if (!FULL) {
            return Stream.of(
                    new Case(
                            CrashedCluster.Base.AT_CRASH,
                            true,
                            true,
                            "pglz",
                            16384,
                            DropStrategy.LOOKUP),
                    new Case(
                            CrashedCluster.Base.AT_CHECKPOINT,
                            false,
                            false,
                            "off",
                            1024,
                            DropStrategy.LOOKUP),
                    new Case(
                            CrashedCluster.Base.AT_CRASH,
                            true,
                            false,
                            "off",
                            65536,
                            DropStrategy.FULL_SCAN));
        }
        // Every strategy with every combination of settings; the pool sizes take turns.
        List<Case> all = new ArrayList<>();
        int[] buffers = {256, 16384, 1_310_720};
        for (boolean checksums : new boolean[] {true, false}) {
            for (boolean images : new boolean[] {true, false}) {
                for (String compression : new String[] {"off", "pglz"}) {
                    for (DropStrategy strategy : DropStrategy.values()) {
                        all.add(
                                new Case(
                                        CrashedCluster.Base.AT_CRASH,
                                        checksums,
                                        images,
                                        compression,
                                        buffers[all.size() % buffers.length],
                                        strategy));
                    }
                }
            }
        }
        return all.stream();
    }

    @ParameterizedTest
    @MethodSource("cases")
    void kernelAndPostgresRecoverToEqualPages(Case given) throws Exception {
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        given.settings(),
                        EqualPagesIT::old,
                        EqualPagesIT::first,
                        EqualPagesIT::second)) {
            KernelRecovery kernel =
                    KernelRecovery.of(cluster, given.sharedBuffers(), given.strategy());
            for (CrashedCluster.Base base :
                    FULL ? List.of(CrashedCluster.Base.values()) : List.of(given.base())) {
                Path right = cluster.copy("kernel-" + base, base);
                EqualPages.check(cluster, cluster.copy("postgres-" + base, base), right, kernel);
                checkRows(EqualPages.inspect(cluster, right), true);
            }
            if (!FULL && given.base() == CrashedCluster.Base.AT_CRASH) {
                return;
            }
            Path right = cluster.copyCutAt("kernel-cut", cluster.pauseLsn());
            EqualPages.check(
                    cluster, cluster.copyCutAt("postgres-cut", cluster.pauseLsn()), right, kernel);
            checkRows(EqualPages.inspect(cluster, right), false);
        }
    }

    /**
     * The embedded 15.7 knows neither lz4 nor zstd; an installed PostgreSQL 15 judges these, free
     * space maps under checksums left out.
     */
    @ParameterizedTest
    @MethodSource("compressions")
    void imagesCompressedWithLz4AndZstdAreRestoredAsAnInstalledPostgresDoes(String compression)
            throws Exception {
        Optional<PostgresBinaries> installed = PostgresBinaries.installed(15);
        assumeTrue(installed.isPresent(), "no PostgreSQL 15 is installed");
        var settings = new CrashedCluster.Settings(installed.get(), true, true, compression, "2MB");
        // No multixacts: the later minor releases differ there.
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings, Workloads::deleteAndVacuum, Workloads::tpcb, Workloads::btree)) {
            KernelRecovery kernel = KernelRecovery.of(cluster, 16384, DropStrategy.LOOKUP);
            Path right = cluster.copy("kernel", CrashedCluster.Base.AT_CRASH);
            EqualPages.check(
                    cluster, cluster.copy("postgres", CrashedCluster.Base.AT_CRASH), right, kernel);
            EqualPages.inspect(cluster, right);
        }
    }

    static Stream<String> compressions() {
        return Stream.of("lz4", "zstd");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void walSegmentsOfAnotherSizeAreReadAndWritten(int megabytes) throws Exception {
        var settings =
                new CrashedCluster.Settings(
                        PostgresBinaries.judge(), false, true, "off", "16MB", megabytes, Map.of());
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        Workloads::truncateWithToast,
                        Workloads::deleteAndVacuum)) {
            Path right = cluster.copy("kernel", CrashedCluster.Base.AT_CHECKPOINT);
            EqualPages.check(
                    cluster,
                    cluster.copy("postgres", CrashedCluster.Base.AT_CHECKPOINT),
                    right,
                    KernelRecovery.of(cluster, 4096, DropStrategy.LOOKUP));
            EqualPages.inspect(cluster, right);
        }
    }

    /**
     * Recovered twice is recovered once: the second time there is nothing to redo, and no page
     * changes.
     */
    @Test
    void recoveredDirectoryOpensAgainWithoutRedo() throws Exception {
        var settings =
                new CrashedCluster.Settings(PostgresBinaries.judge(), false, true, "off", "16MB");
        try (CrashedCluster cluster =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        Workloads::transactions,
                        Workloads::truncatePlain)) {
            KernelRecovery kernel = KernelRecovery.of(cluster, 4096, DropStrategy.LOOKUP);
            Path once = cluster.copy("once", CrashedCluster.Base.AT_CRASH);
            assertTrue(kernel.recover(once).records() > 0);
            Path twice = cluster.work().resolve("twice");
            org.pgkernel.testkit.ClusterCopy.copy(once, twice);
            assertEquals(0, kernel.recover(twice).records());
            // PostgreSQL, opened and closed on the same directory, does the same.
            PostgresServer.recover(settings.binaries(), once, settings.asMap());
            var result = org.pgkernel.testkit.ClusterComparison.compare(once, twice);
            assertTrue(result.equal(), result.describe());
            assertEquals(List.of(), EqualPages.controlFileDifferences(once, twice));
        }
    }

    /** On disk at the redo point, changed after it. */
    private static void old(PostgresServer server) throws SQLException {
        try (var connection = server.connect("postgres");
                var statement = connection.createStatement()) {
            Workloads.load(connection, "old_", 4, 800, "varchar");
            statement.execute("create index old_0_id on old_0 (id)");
            statement.execute("vacuum freeze old_0, old_1");
        }
    }

    private static void first(PostgresServer server) throws SQLException {
        Workloads.databases(server);
        Workloads.truncateWithToast(server);
        Workloads.deleteAndVacuum(server);
        Workloads.rowLocks(server);
        try (var connection = server.connect("postgres");
                var statement = connection.createStatement()) {
            statement.execute("update old_0 set v_ch = 'changed' where id % 10 = 0");
            statement.execute("truncate old_2");
            statement.execute("delete from old_1 where id > 400");
            statement.execute("vacuum old_1");
            statement.execute("drop table old_3");
        }
    }

    private static void second(PostgresServer server) throws SQLException {
        Workloads.truncatePlain(server);
        Workloads.tpcb(server);
        Workloads.btree(server);
        Workloads.transactions(server);
    }

    private static void checkRows(PostgresInspection.Report report, boolean whole) {
        var tables = report.tables();
        assertTrue(tables.get("postgres.public.old_0").startsWith("800 "));
        assertTrue(tables.get("postgres.public.old_1").startsWith("400 "));
        assertEquals("0 0", tables.get("postgres.public.old_2"));
        assertFalse(tables.containsKey("postgres.public.old_3"));
        assertTrue(tables.get("postgres.public.toast_0").startsWith("20 "));
        assertTrue(tables.get("postgres.public.vac_0").startsWith("50 "));
        assertEquals("0 0", tables.get("copied.public.c_0"));
        assertTrue(tables.get("copied.public.c_2").startsWith("400 "));
        assertTrue(tables.keySet().stream().noneMatch(name -> name.startsWith("gone.")));
        assertEquals(whole, tables.containsKey("postgres.public.last_commit"));
        assertEquals(whole, tables.containsKey("postgres.public.plain_0"));
        assertFalse(tables.containsKey("postgres.public.aborted"));
        assertEquals(1, report.timeline());
    }
}
