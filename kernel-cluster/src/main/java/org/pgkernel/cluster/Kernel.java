package org.pgkernel.cluster;

import java.time.Clock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.Agent;
import org.pgkernel.base.ControlFile;
import org.pgkernel.base.FilenodeMap;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.heap.HeapEnvironment;
import org.pgkernel.recovery.Primary;
import org.pgkernel.recovery.PrimaryOptions;
import org.pgkernel.recovery.Recovery;
import org.pgkernel.wal.WalBackgroundWriter;
import org.pgkernel.wal.WalRetention;
import org.pgkernel.xact.Horizons;
import org.pgkernel.xact.LockOptions;
import org.pgkernel.xact.TransactionManager;
import org.pgkernel.xact.WraparoundListener;
import org.pgkernel.xact.XactOptions;

/** What runs in a cluster in production: log, transactions, workers. */
final class Kernel {
    private static final System.Logger LOG = System.getLogger("org.pgkernel.cluster");
    private static final String TRANSACTIONS = "kernel-xact";
    private static final long SECONDS_TO_2000 = 946_684_800L;

    final KernelStop stop = new KernelStop();
    final RunOptions options;
    final Primary primary;
    final BufferPool pool;
    final UnloggedNumbers unlogged;
    final TransactionManager transactions;
    final OidCounter oids;
    final RelationNumbers numbers;
    final Checkpointer checkpointer;
    final HeapEnvironment heap;
    final FsmOptions fsm;
    final Workers workers;

    /** A transaction's new files are not logged but synced (wal_level = minimal). */
    final boolean syncsNewFiles;

    /** Null in a PostgreSQL cluster. */
    final VacuumWorker vacuumWorker;

    private final Recovery recovery;
    private final Set<Backend> backends = ConcurrentHashMap.newKeySet();
    private final AtomicInteger backendNumber = new AtomicInteger();

    /** Null in a PostgreSQL cluster. */
    private final OwnCatalog own;

    /** Catalogues of a PostgreSQL cluster's databases, by name. */
    private final Map<String, PostgresCatalog.Database> databases = new ConcurrentHashMap<>();

    private final Map<PostgresCatalog.Database, PostgresCatalog> catalogs =
            new ConcurrentHashMap<>();

    private Kernel(Recovery recovery, ClusterOptions all) {
        this.recovery = recovery;
        options = all.run();
        fsm = all.fsm();
        pool = recovery.pool();
        unlogged = new UnloggedNumbers();
        primary =
                recovery.startPrimary(
                        new PrimaryOptions(
                                options.walBuffers(), options.walCompression(), unlogged));
        Clock clock = all.clock();
        transactions =
                TransactionManager.start(
                        primary.modules().module(TRANSACTIONS),
                        new XactOptions(
                                options.sessions(),
                                XactOptions.DEFAULT.cachedSubxids(),
                                XactOptions.DEFAULT.freezeMaxAge(),
                                XactOptions.DEFAULT.multixactFreezeMaxAge(),
                                XactOptions.DEFAULT.deferCleanupAge()),
                        new TransactionWal(primary.wal()),
                        new Warnings(),
                        new FileDropper(pool, unlogged),
                        () -> micros(clock),
                        new LockOptions(options.deadlockTimeoutNanos(), options.lockParking()));
        oids = new OidCounter(primary.modules().counters(), primary.wal());
        numbers = new RelationNumbers(oids, pool.smgr());
        heap =
                new HeapEnvironment(
                        pool, primary.wal(), options.walCompression(), transactions, oids::next);
        own =
                isPostgres(all.disk())
                        ? null
                        : new OwnCatalog(pool.smgr(), unlogged, ClusterCreation.DATABASE);
        syncsNewFiles =
                own != null && primary.control().walLevel() == ControlFile.WAL_LEVEL_MINIMAL;
        vacuumWorker = own == null ? null : new VacuumWorker(this);
        checkpointer = new Checkpointer(primary, options, retention(all.disk()), stop);
        workers = new Workers(stop, agents(), options.workers() == RunOptions.Workers.BY_HAND);
    }

    /** Over a recovered directory, which it does not own. */
    static Kernel start(Recovery recovery, ClusterOptions options) {
        Kernel kernel = new Kernel(recovery, options);
        kernel.describeCatalog();
        kernel.workers.start();
        return kernel;
    }

    /** PostgreSQL's catalogue begins with this file; a cluster that was made here has none. */
    private boolean isPostgres(Disk disk) {
        return disk.exists(pool.smgr().dataDirectory() + "/global/" + FilenodeMap.NAME);
    }

    /** The first time a cluster is opened its catalogue is empty. */
    private void describeCatalog() {
        if (own != null) {
            try (Backend backend = newBackend()) {
                backend.describeCatalog();
            }
        }
    }

    Backend newBackend() {
        if (own == null) {
            throw new RefusedException(
                    "a session in a PostgreSQL cluster belongs to a database, which has to be named");
        }
        return newBackend(own, ClusterCreation.DATABASE);
    }

    Backend newBackend(String database) {
        if (own != null) {
            throw new RefusedException(
                    "this cluster has one database, which has no name: database=" + database);
        }
        PostgresCatalog.Database found = databases.computeIfAbsent(database, this::findDatabase);
        PostgresCatalog catalog =
                catalogs.computeIfAbsent(found, one -> new PostgresCatalog(pool.smgr(), one));
        return newBackend(catalog, found.oid());
    }

    private PostgresCatalog.Database findDatabase(String name) {
        try (Backend backend = newBackend(null, 0)) {
            backend.begin();
            return PostgresCatalog.database(backend, pool.smgr(), name);
        }
    }

    private Backend newBackend(TableCatalog catalog, int database) {
        stop.check();
        Backend backend =
                new Backend(this, catalog, database, "backend " + backendNumber.incrementAndGet());
        backends.add(backend);
        return backend;
    }

    void closed(Backend backend) {
        backends.remove(backend);
    }

    /** Older ones than this are in no row that is written from now on. (PostgreSQL: RecentXmin) */
    int oldestUsableXid() {
        Horizons horizons = new Horizons();
        transactions.horizons(ClusterCreation.DATABASE, horizons);
        return horizons.oldestConsideredRunning();
    }

    private List<Agent> agents() {
        List<Agent> agents = new ArrayList<>();
        Collections.addAll(
                agents,
                pool.backgroundWriter(options.backgroundWriter(), options.nanoClock()),
                new WalBackgroundWriter(
                        primary.wal(),
                        options.walWriterDelayNanos(),
                        Math.min(WalBackgroundWriter.DEFAULT_FLUSH_AFTER, options.walBuffers() / 4),
                        options.nanoClock()),
                checkpointer);
        if (vacuumWorker != null) {
            agents.add(vacuumWorker);
        }
        return agents;
    }

    /** With replication slots all WAL stays: nobody here knows what they need. */
    private WalRetention retention(Disk disk) {
        String slots = pool.smgr().dataDirectory() + "/pg_replslot";
        return new WalRetention(
                primary.wal(),
                new WalRetention.Settings(
                        options.minWalSize(),
                        options.maxWalSize(),
                        options.walKeepSize(),
                        true,
                        options.checkpointCompletionTarget()),
                () -> disk.list(slots).isEmpty() ? Long.MAX_VALUE : 0);
    }

    /** Microseconds since 2000. (PostgreSQL: TimestampTz.) */
    private static long micros(Clock clock) {
        Instant now = clock.instant();
        return (now.getEpochSecond() - SECONDS_TO_2000) * 1_000_000L + now.getNano() / 1000;
    }

    /** A checkpoint that begins now, as fast as it goes. */
    void checkpoint() {
        stop.check();
        long number = checkpointer.request();
        if (workers.isByHand()) {
            while (!checkpointer.isOver(number)) {
                driveCheckpoint();
            }
        } else {
            workers.wake();
            checkpointer.await(number);
        }
    }

    private void driveCheckpoint() {
        try {
            checkpointer.doWork();
        } catch (Throwable failure) {
            if (KernelStop.isFatal(failure)) {
                stop.stop(failure);
            }
            throw failure;
        }
    }

    private void endWorkers() {
        if (vacuumWorker != null) {
            vacuumWorker.end();
        }
        workers.close();
    }

    /** Xids after which a table is vacuumed in any case. (autovacuum_freeze_max_age) */
    int freezeMaxAge() {
        return XactOptions.DEFAULT.freezeMaxAge();
    }

    /** Workers end; nothing is written. */
    void abandon() {
        endWorkers();
    }

    /** The last checkpoint. Nobody else uses the kernel any more. */
    void shutdown() {
        endWorkers();
        stop.check();
        for (Backend backend : backends) {
            backend.close();
        }
        oids.shutdown();
        recovery.shutdown();
    }

    private static final class Warnings implements WraparoundListener {
        @Override
        public void warning(String message) {
            LOG.log(System.Logger.Level.WARNING, message);
        }

        @Override
        public void vacuumNeeded(int database) {
            LOG.log(System.Logger.Level.WARNING, "transaction ids run out: vacuum is needed");
        }
    }
}
