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
import org.pgkernel.base.Page;
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
import org.pgkernel.wal.WalRecord;

/** A redo that is wrong on purpose must not pass the comparison: or the comparison proves nothing. */
class MutantRedoIT {
    private static final int HEAP2 = 9;
    private static final int HEAP = 10;
    private static final int XLOG_HEAP_INSERT = 0x00;
    private static final int XLOG_HEAP2_VISIBLE = 0x40;
    private static final int XLOG_HEAP_OPMASK = 0x70;

    private static CrashedCluster cluster;
    private static Path judged;

    /** What is done to a record; true when it was done, false to leave the record to the real redo. */
    interface Mutation {
        boolean redo(ResourceManager real, WalRecord record, RedoContext context);
    }

    private static Mutation mutation;
    private static int applied;

    @BeforeAll
    static void crash() throws Exception {
        var settings = new CrashedCluster.Settings(PostgresBinaries.judge(), false, true, "off", "16MB");
        cluster = CrashedCluster.make(settings, server -> {}, Workloads::deleteAndVacuum, Workloads::transactions);
        judged = cluster.copy("postgres", CrashedCluster.Base.AT_CHECKPOINT);
        PostgresServer.recover(settings.binaries(), judged, settings.asMap());
    }

    @AfterAll
    static void clean() {
        cluster.close();
    }

    @Test
    void withoutMutationTheWrapperItselfChangesNothing() throws Exception {
        ClusterComparison.Result result = recover("none", (real, record, context) -> false);
        assertTrue(result.equal(), result.describe());
    }

    @Test
    void oneFlippedByteOfOnePageIsFound() throws Exception {
        ClusterComparison.Result result = recover("byte", (real, record, context) -> {
            if (applied > 0 || record.rmid() != HEAP || (record.info() & XLOG_HEAP_OPMASK) != XLOG_HEAP_INSERT || record.blockNumber(0) != 0 || !isUserTable(record)) {
                return false;
            }
            real.redo(record, context);
            change(record, context, Page.SIZE - 1, 0x40);
            return true;
        });
        assertEquals(1, applied);
        assertFalse(result.equal());
    }

    @Test
    void oneHintBitIsFound() throws Exception {
        ClusterComparison.Result result = recover("hint", (real, record, context) -> {
            if (applied > 0 || record.rmid() != HEAP || (record.info() & XLOG_HEAP_OPMASK) != XLOG_HEAP_INSERT || !isUserTable(record)) {
                return false;
            }
            real.redo(record, context);
            // HEAP_XMIN_COMMITTED of the last tuple, in the upper byte of t_infomask.
            int buffer = context.readExtended(record.blockSpc(0), record.blockDb(0), record.blockRel(0), record.blockFork(0), record.blockNumber(0), ReadMode.NORMAL);
            UnsafeBuffer page = new UnsafeBuffer(0, 0);
            context.pool().wrap(buffer, page);
            int offset = Page.lpOffset(Page.itemId(page, Page.maxOffsetNumber(page)));
            context.pool().release(buffer);
            change(record, context, offset + 21, 0x01);
            return true;
        });
        assertEquals(1, applied);
        assertFalse(result.equal());
    }

    @Test
    void oneSkippedRecordIsFound() throws Exception {
        ClusterComparison.Result result = recover("skip", (real, record, context) ->
                applied == 0 && record.rmid() == HEAP2 && (record.info() & XLOG_HEAP_OPMASK) == XLOG_HEAP2_VISIBLE && isUserTable(record));
        assertEquals(1, applied);
        assertFalse(result.equal());
    }

    /** Tables that the workload made last and nothing rewrites as a whole. */
    private static boolean isUserTable(WalRecord record) {
        for (int id = 0; id <= record.maxBlockId(); id++) {
            if (record.hasBlock(id) && Integer.compareUnsigned(record.blockRel(id), 16384) < 0) {
                return false;
            }
        }
        return Long.compareUnsigned(record.lsn(), cluster.pauseLsn()) < 0 ? record.rmid() == HEAP2 : true;
    }

    private static void change(WalRecord record, RedoContext context, int offset, int bits) {
        int buffer = context.readExtended(record.blockSpc(0), record.blockDb(0), record.blockRel(0), record.blockFork(0), record.blockNumber(0), ReadMode.NORMAL);
        context.pool().lockExclusive(buffer);
        UnsafeBuffer page = new UnsafeBuffer(0, 0);
        context.pool().wrap(buffer, page);
        page.putByte(offset, (byte) (page.getByte(offset) ^ bits));
        context.pool().markDirty(buffer);
        context.pool().unlock(buffer);
        context.pool().release(buffer);
    }

    private ClusterComparison.Result recover(String name, Mutation given) throws Exception {
        mutation = given;
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
        private static final String SERVICES = "META-INF/services/" + RecoveryModuleProvider.class.getName();
        private final URL list;

        MutantLoader(ClassLoader parent, Path work) throws IOException {
            super(parent);
            Path file = work.resolve("providers");
            List<String> names = new ArrayList<>();
            ServiceLoader.load(RecoveryModuleProvider.class, parent).forEach(provider -> names.add(provider.getClass().getName()));
            names.removeIf(name -> name.startsWith("org.pgkernel.heap."));
            names.add(MutantProvider.class.getName());
            Files.write(file, names);
            list = file.toUri().toURL();
        }

        @Override
        public Enumeration<URL> getResources(String name) throws IOException {
            return name.equals(SERVICES) ? Collections.enumeration(List.of(list)) : super.getResources(name);
        }
    }

    /** The heap's module with every resource manager wrapped. */
    public static final class MutantProvider implements RecoveryModuleProvider {
        private final RecoveryModuleProvider real;

        public MutantProvider() {
            real = ServiceLoader.load(RecoveryModuleProvider.class, MutantProvider.class.getClassLoader()).stream().map(ServiceLoader.Provider::get)
                    .filter(provider -> provider.getClass().getName().startsWith("org.pgkernel.heap.")).findFirst().orElseThrow();
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
                if (mutation.redo(real, record, context)) {
                    applied++;
                } else {
                    real.redo(record, context);
                }
            }
        };
    }
}
