package org.pgkernel.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.ServiceLoader;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.Page;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.testkit.ClusterComparison;
import org.pgkernel.testkit.PostgresBinaries;
import org.pgkernel.testkit.PostgresServer;
import org.pgkernel.testkit.Workloads;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;

/**
 * A redo that is wrong on purpose must not pass the comparison: or the comparison proves nothing.
 */
class MutantRedoIT {
    private static final int HEAP2 = 9;
    private static final int HEAP = 10;
    private static final int XLOG_HEAP_INSERT = 0x00;
    private static final int XLOG_HEAP2_VISIBLE = 0x40;
    private static final int XLOG_HEAP_OPMASK = 0x70;

    private static CrashedCluster cluster;
    private static Path judged;
    private static long redo;

    /** What happens instead of the real redo of the one record chosen. */
    interface Mutation {
        void redo(ResourceManager real, WalRecord record, RedoContext context);
    }

    private static Mutation mutation;
    private static long target;
    private static int applied;

    @BeforeAll
    static void crash() throws Exception {
        var settings =
                new CrashedCluster.Settings(PostgresBinaries.judge(), false, true, "off", "16MB");
        cluster =
                CrashedCluster.make(
                        settings,
                        server -> {},
                        Workloads::deleteAndVacuum,
                        Workloads::transactions);
        judged = cluster.copy("postgres", CrashedCluster.Base.AT_CHECKPOINT);
        redo = ControlFile.read(new PosixDisk(), judged.toString()).checkPointRedo();
        PostgresServer.recover(settings.binaries(), judged, settings.asMap());
    }

    @AfterAll
    static void clean() {
        cluster.close();
    }

    @Test
    void withoutMutationTheWrapperItselfChangesNothing() throws Exception {
        ClusterComparison.Result result = recover("none", -1, null);
        assertTrue(result.equal(), result.describe());
        assertEquals(0, applied);
    }

    @Test
    void oneFlippedByteOfOnePageIsFound() throws Exception {
        ClusterComparison.Result result =
                recover(
                        "byte",
                        last(HEAP, XLOG_HEAP_INSERT),
                        (real, record, context) -> {
                            real.redo(record, context);
                            change(record, context, Page.SIZE - 1, 0x40);
                        });
        assertOnlyDifference(result, Page.SIZE - 1);
    }

    @Test
    void oneHintBitIsFound() throws Exception {
        int[] offset = new int[1];
        ClusterComparison.Result result =
                recover(
                        "hint",
                        last(HEAP, XLOG_HEAP_INSERT),
                        (real, record, context) -> {
                            real.redo(record, context);
                            int buffer = read(record, context);
                            UnsafeBuffer page = new UnsafeBuffer(0, 0);
                            context.pool().wrap(buffer, page);
                            // HEAP_XMIN_COMMITTED of the first tuple, in the upper byte of
                            // t_infomask.
                            offset[0] = Page.lpOffset(Page.itemId(page, 1)) + 21;
                            context.pool().release(buffer);
                            change(record, context, offset[0], 0x01);
                        });
        assertOnlyDifference(result, offset[0]);
        assertEquals("hint bits", result.differences().getFirst().reason());
    }

    @Test
    void oneSkippedRecordIsFound() throws Exception {
        ClusterComparison.Result result =
                recover("skip", last(HEAP2, XLOG_HEAP2_VISIBLE), (real, record, context) -> {});
        assertEquals(1, applied);
        assertFalse(result.equal());
    }

    private static void assertOnlyDifference(ClusterComparison.Result result, int offset) {
        assertEquals(1, applied);
        assertEquals(1, result.differenceCount(), result.describe());
        assertEquals(offset, result.differences().getFirst().offset());
    }

    /**
     * Start of the last record of this type that changes a user's table; nothing later replaces
     * that page as a whole.
     */
    private static long last(int rmid, int type) {
        long found = -1;
        try (WalReader reader =
                new WalReader(
                        new PosixDisk(),
                        judged.resolve("pg_wal").toString(),
                        TimelineHistory.of(1),
                        16 << 20,
                        0)) {
            reader.begin(redo);
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                if (record.rmid() == rmid
                        && (record.info() & XLOG_HEAP_OPMASK) == type
                        && record.hasBlock(0)
                        && Integer.compareUnsigned(record.blockRel(0), 16384) >= 0) {
                    found = record.lsn();
                }
            }
        }
        assertTrue(found > 0);
        return found;
    }

    private static int read(WalRecord record, RedoContext context) {
        return context.readExtended(
                record.blockSpc(0),
                record.blockDb(0),
                record.blockRel(0),
                record.blockFork(0),
                record.blockNumber(0),
                ReadMode.NORMAL);
    }

    private static void change(WalRecord record, RedoContext context, int offset, int bits) {
        int buffer = read(record, context);
        context.pool().lockExclusive(buffer);
        UnsafeBuffer page = new UnsafeBuffer(0, 0);
        context.pool().wrap(buffer, page);
        page.putByte(offset, (byte) (page.getByte(offset) ^ bits));
        context.pool().markDirty(buffer);
        context.pool().unlock(buffer);
        context.pool().release(buffer);
    }

    private ClusterComparison.Result recover(String name, long lsn, Mutation given)
            throws Exception {
        mutation = given;
        target = lsn;
        applied = 0;
        Path right = cluster.copy(name, CrashedCluster.Base.AT_CHECKPOINT);
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(new MutantLoader(before, cluster.work()));
        try {
            KernelRecovery.of(cluster, 16384, DropStrategy.LOOKUP).recover(right);
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
        return ClusterComparison.compare(judged, right);
    }

    /** Shows the service loader one provider, which wraps all the real ones. */
    private static final class MutantLoader extends ClassLoader {
        private static final String SERVICES =
                "META-INF/services/" + RecoveryModuleProvider.class.getName();
        private final URL list;

        MutantLoader(ClassLoader parent, Path work) throws IOException {
            super(parent);
            Path file = work.resolve("providers");
            List<String> names = new ArrayList<>();
            ServiceLoader.load(RecoveryModuleProvider.class, parent)
                    .forEach(provider -> names.add(provider.getClass().getName()));
            names.removeIf(name -> name.startsWith("org.pgkernel.heap."));
            names.add(MutantProvider.class.getName());
            Files.write(file, names);
            list = file.toUri().toURL();
        }

        @Override
        public Enumeration<URL> getResources(String name) throws IOException {
            return name.equals(SERVICES)
                    ? Collections.enumeration(List.of(list))
                    : super.getResources(name);
        }
    }

    /** The heap's module with every resource manager wrapped. */
    public static final class MutantProvider implements RecoveryModuleProvider {
        private final RecoveryModuleProvider real;

        public MutantProvider() {
            real =
                    ServiceLoader.load(
                                    RecoveryModuleProvider.class,
                                    MutantProvider.class.getClassLoader())
                            .stream()
                            .map(ServiceLoader.Provider::get)
                            .filter(
                                    provider ->
                                            provider.getClass()
                                                    .getName()
                                                    .startsWith("org.pgkernel.heap."))
                            .findFirst()
                            .orElseThrow();
        }

        @Override
        public String name() {
            return real.name();
        }

        @Override
        public RecoveryModule create(RecoveryEnvironment environment) {
            RecoveryModule module = real.create(environment);
            return () -> module.resourceManagers().stream().map(MutantRedoIT::wrap).toList();
        }
    }

    private static ResourceManager wrap(ResourceManager real) {
        return new ResourceManager() {
            @Override
            public int id() {
                return real.id();
            }

            @Override
            public String name() {
                return real.name();
            }

            @Override
            public String identify(int info) {
                return real.identify(info);
            }

            @Override
            public boolean covers(int info) {
                return real.covers(info);
            }

            @Override
            public void redo(WalRecord record, RedoContext context) {
                if (record.lsn() == target) {
                    applied++;
                    mutation.redo(real, record, context);
                } else {
                    real.redo(record, context);
                }
            }
        };
    }
}
