package org.pgkernel.cluster;

import java.time.Clock;
import java.time.Instant;
import java.util.List;
import org.agrona.concurrent.Agent;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.recovery.Primary;
import org.pgkernel.recovery.PrimaryOptions;
import org.pgkernel.recovery.Recovery;
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
    final Workers workers;
    private final Recovery recovery;

    private Kernel(Recovery recovery, ClusterOptions all) {
        this.recovery = recovery;
        options = all.run();
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
                        () -> micros(clock));
        oids = new OidCounter(primary.modules().counters(), primary.wal());
        numbers = new RelationNumbers(oids, pool.smgr());
        checkpointer = new Checkpointer(primary, options, primary.control().xlogSegSize(), stop);
        workers = new Workers(stop, agents(), options.workers() == RunOptions.Workers.BY_HAND);
    }

    /** Over a recovered directory, which it does not own. */
    static Kernel start(Recovery recovery, ClusterOptions options) {
        Kernel kernel = new Kernel(recovery, options);
        kernel.workers.start();
        return kernel;
    }

    private List<Agent> agents() {
        return List.of(
                pool.backgroundWriter(options.backgroundWriter(), options.nanoClock()),
                new WalWriterWork(primary.wal(), options),
                checkpointer);
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

    /** Workers end; nothing is written. */
    void abandon() {
        workers.close();
    }

    /** The last checkpoint. Nobody else uses the kernel any more. */
    void shutdown() {
        workers.close();
        stop.check();
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
