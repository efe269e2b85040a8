package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.SystemNanoClock;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault.Effect;
import org.pgkernel.testkit.SimulatedDisk;

/**
 * One pool under eight backends, a background writer and a checkpointer, on a disk with faults.
 * Every few tenths of a second all of them meet, and {@link StressChecks} compares pool, files, and
 * what a crash would leave, with the model.
 *
 * <p>The seed decides what each thread does, not how the threads meet. One object, one run.
 */
final class StressRun {
    static final int WORKERS = 8;
    static final int SEGMENT_BLOCKS = 16;
    private static final String DIRECTORY = "/data";
    private static final int OTHER_TABLESPACE = 16500;
    private static final int FAULTS_PER_THOUSAND = 8;
    private static final long PATIENCE_SECONDS = 90;

    /**
     * What the run is about.
     *
     * @param recovery as redo does: sizes are accurate, files go at once, no hints
     * @param retaining every pin that is given up is retained
     * @param syncFails a sync fails in the middle; the kernel stops then
     */
    record Plan(
            long seed,
            BufferPoolOptions options,
            SizePolicy sizes,
            boolean recovery,
            boolean retaining,
            boolean syncFails,
            StressMutant mutant) {
        /** Turn by turn every strategy, policy and lookup; 24 turns are all combinations. */
        static Plan ofTurn(long seed, int turn) {
            Random random = new Random(seed + turn);
            DropStrategy strategy = DropStrategy.values()[turn % 4];
            Replacement replacement = Replacement.values()[turn % 3];
            LookupStyle lookup = LookupStyle.values()[(turn / 12 + turn % 12 / 4) % 2];
            BufferPoolOptions options =
                    BufferPoolOptions.of(nbuffers(random))
                            .withStrategy(strategy)
                            .withReplacement(replacement)
                            .withLookupStyle(lookup)
                            .withLookupDivisor(1 + random.nextInt(4))
                            .withChecksums(random.nextInt(4) != 0);
            SizePolicy sizes = SizePolicy.values()[random.nextInt(2)];
            boolean recovery = random.nextInt(4) == 0;
            boolean retaining =
                    Boolean.getBoolean("pgkernel.stress.retain") || random.nextInt(3) == 0;
            return new Plan(
                    seed + turn, options, sizes, recovery, retaining, false, StressMutant.NONE);
        }

        /** From so few that all may be pinned to more than the pages in use. */
        private static int nbuffers(Random random) {
            int least = 16 << 2 * random.nextInt(3);
            return least + random.nextInt(2 * least);
        }

        Plan with(StressMutant mutant, DropStrategy strategy) {
            BufferPoolOptions sound = options.withStrategy(strategy).withChecksums(true);
            return new Plan(seed, sound, sizes, false, retaining, false, mutant);
        }

        Plan withFailingSync() {
            return new Plan(seed, options, sizes, recovery, retaining, true, mutant);
        }
    }

    /** What happened, added up over runs. */
    static final class Tally {
        final LongAdder[] operations = adders(StressWorker.Operation.values().length);
        final LongAdder[] counters = adders(PoolCounter.values().length);
        final LongAdder noFreeBuffer = new LongAdder();
        final LongAdder failedByFault = new LongAdder();
        final LongAdder cleanupRefused = new LongAdder();
        final LongAdder faults = new LongAdder();
        final LongAdder pagesWritten = new LongAdder();
        final LongAdder gateCalls = new LongAdder();
        final LongAdder hintImages = new LongAdder();
        final LongAdder checkpoints = new LongAdder();
        final LongAdder pauses = new LongAdder();
        final LongAdder pagesCompared = new LongAdder();

        private static LongAdder[] adders(int count) {
            LongAdder[] adders = new LongAdder[count];
            Arrays.setAll(adders, i -> new LongAdder());
            return adders;
        }

        long operations() {
            return Arrays.stream(operations).mapToLong(LongAdder::sum).sum();
        }

        @Override
        public String toString() {
            StringBuilder text = new StringBuilder("operations " + operations());
            for (StressWorker.Operation operation : StressWorker.Operation.values()) {
                text.append("\n  ").append(operation).append(' ');
                text.append(operations[operation.ordinal()]);
            }
            text.append("\nfaults met ").append(faults).append(", operations failed by one ");
            text.append(failedByFault).append(", no free buffer ").append(noFreeBuffer);
            text.append(", cleanup refused ").append(cleanupRefused);
            text.append("\npages written ").append(pagesWritten).append(", gate calls ");
            text.append(gateCalls).append(", images of hints ").append(hintImages);
            text.append("\ncheckpoints ").append(checkpoints).append(", pauses ").append(pauses);
            text.append(", pages compared ").append(pagesCompared);
            for (PoolCounter counter : PoolCounter.values()) {
                text.append("\n  ").append(counter).append(' ');
                text.append(counters[counter.ordinal()]);
            }
            return text.toString();
        }
    }

    final Plan plan;
    final Tally tally;
    final StressWal wal = new StressWal();
    final StressDisk disk;
    final SyncRequests syncs;
    final StorageManager smgr;
    final BufferPool pool;
    final List<StressRelation> relations = new ArrayList<>();
    final LongAdder pagesAsked = new LongAdder();

    /** Pages of calls that failed, or that may have found their page or not. */
    final LongAdder pagesPerhaps = new LongAdder();

    final LongAdder pagesAdded = new LongAdder();
    final LongAdder dropCalls = new LongAdder();

    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CountDownLatch failed = new CountDownLatch(1);
    private final CountDownLatch kernelStopped = new CountDownLatch(1);

    /** All threads and the one that checks: they meet twice a pause. Terminated by a failure. */
    private final Phaser meeting = new Phaser(WORKERS + 3);

    private final List<Thread> threads = new ArrayList<>();
    private volatile int pauses;
    private volatile boolean stop;
    private int nextNumber = 100;

    StressRun(Plan plan, Tally tally) {
        this.plan = plan;
        this.tally = tally;
        SimulatedDisk simulated =
                new SimulatedDisk(plan.seed)
                        .directories(DIRECTORY + "/base/5", DIRECTORY + "/global")
                        .directories(
                                DIRECTORY
                                        + "/pg_tblspc/"
                                        + OTHER_TABLESPACE
                                        + "/"
                                        + RelFileLocator.TABLESPACE_VERSION_DIRECTORY);
        boolean checksums = plan.options.checksums();
        disk = new StressDisk(simulated, SEGMENT_BLOCKS, checksums, wal, this::fail);
        syncs = plan.mutant.syncRequests(disk, DIRECTORY);
        smgr = new StorageManager(disk, DIRECTORY, SEGMENT_BLOCKS, plan.sizes, syncs);
        smgr.inRecovery(plan.recovery);
        pool =
                BufferPool.open(
                        plan.options,
                        smgr,
                        plan.mutant.gate(wal),
                        plan.mutant.parts(plan.retaining));
        pool.maxBackends(1 + Math.floorMod(plan.seed, WORKERS)); // or pins never run out
        pool.hintImageLog(wal);
        pool.hintsAreLogged(true);
        for (int slot = 0; slot < 10; slot++) {
            int spc = slot % 3 == 2 ? OTHER_TABLESPACE : RelFileLocator.DEFAULT_TABLESPACE;
            StressRelation relation = new StressRelation(slot, spc, slot < 4 ? 5 : 6 + slot % 2);
            relations.add(relation);
            create(relation, newNumber());
        }
    }

    synchronized int newNumber() {
        return nextNumber++;
    }

    String path(StressRelation relation, int number, int fork) {
        return DIRECTORY
                + "/"
                + new RelFileLocator(relation.spc, relation.db, number)
                        .path(StressRelation.FORKS[fork]);
    }

    String databaseDirectory(StressRelation relation) {
        return DIRECTORY + "/" + RelFileLocator.databasePath(relation.spc, relation.db);
    }

    /** Another incarnation, empty; the caller has the relation to itself. */
    void create(StressRelation relation, int number) {
        relation.incarnation++;
        relation.handle = smgr.open(relation.spc, relation.db, number);
        for (int fork = 0; fork < StressRelation.FORKS.length; fork++) {
            relation.cut(fork, 0);
            disk.owns(path(relation, number, fork), relation, fork);
            relation.handle.create(StressRelation.FORKS[fork], plan.recovery);
        }
    }

    /** Runs for so long; throws what went wrong. */
    void run(long millis, int pauseMillis) throws InterruptedException {
        for (int i = 0; i < WORKERS; i++) {
            StressWorker worker = new StressWorker(this, i);
            start("worker " + i, worker::run);
        }
        start("background writer", this::writeInBackground);
        start("checkpointer", this::checkpoint);
        StressChecks checks = new StressChecks(this);
        faults(true);
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        try {
            do {
                failed.await(pauseMillis, TimeUnit.MILLISECONDS);
                if (failure.get() == null) {
                    pause(checks, System.nanoTime() - end >= 0);
                }
            } while (!stop && failure.get() == null);
            for (Thread thread : threads) {
                thread.join(failure.get() == null ? TimeUnit.SECONDS.toMillis(30) : 300);
                if (failure.get() == null && thread.isAlive()) {
                    fail(stuck("does not end"));
                }
            }
        } finally {
            stop = true;
            meeting.forceTermination();
        }
        account();
        if (failure.get() != null) {
            // Threads may be left that use the pool: it stays open.
            throw new AssertionError(plan + "\n" + disk.simulated.lastCalls(20), failure.get());
        }
        pool.close();
        smgr.close();
    }

    private void start(String name, Runnable body) {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                body.run();
                            } catch (Throwable e) {
                                if (!(e instanceof Stopped)) {
                                    fail(e);
                                }
                            }
                        },
                        name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void pause(StressChecks checks, boolean last) throws InterruptedException {
        pauses++;
        try {
            awaitAll();
            if (isOver()) {
                return;
            }
            faults(false);
            checks.check(isKernelStopped());
            tally.pauses.increment();
            stop = last;
            faults(!last);
            meeting.arrive();
        } catch (TimeoutException e) {
            fail(stuck("does not come to the pause"));
        } catch (AssertionError | RuntimeException e) {
            fail(e);
        }
    }

    private void awaitAll() throws InterruptedException, TimeoutException {
        int phase = meeting.arrive();
        if (phase >= 0) {
            meeting.awaitAdvanceInterruptibly(phase, PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private AssertionError stuck(String what) {
        StringBuilder text = new StringBuilder();
        for (Thread thread : threads) {
            text.append(thread.getName()).append(' ').append(thread.getState());
            text.append(' ').append(Arrays.toString(thread.getStackTrace())).append('\n');
        }
        return new AssertionError("a thread " + what + ":\n" + text);
    }

    /** Faults by chance; and now and then a disk that is nearly full until the next pause. */
    private void faults(boolean on) {
        SimulatedDisk simulated = disk.simulated;
        simulated.clearFaults();
        simulated.room(Long.MAX_VALUE);
        if (on) {
            double chance = FAULTS_PER_THOUSAND / 1000.0;
            // In recovery a file that seems to end reads as zeros, as it must.
            Effect[] ofReads = {Effect.EIO, plan.recovery ? Effect.EIO : Effect.SHORT};
            simulated.chance(DiskCall.READ, chance, ofReads);
            simulated.chance(DiskCall.WRITE, chance, Effect.EIO, Effect.ENOSPC, Effect.SHORT);
            if ((plan.seed + pauses) % 3 == 0) {
                simulated.room(1 << 18);
            }
            if (plan.syncFails && pauses > 0 && !isKernelStopped()) {
                simulated.droppedPages(SimulatedDisk.KEEP_ALL); // or what is read would be old
                simulated.chance(DiskCall.SYNC, 0.2, Effect.EIO);
            }
        }
    }

    /** A thread comes here between two steps; it waits if there is a pause it has not seen. */
    int meet(int seen) {
        int now = pauses;
        if (seen != now) {
            meeting.arriveAndAwaitAdvance();
            meeting.arriveAndAwaitAdvance();
        }
        if (isOver()) {
            throw new Stopped();
        }
        return now;
    }

    boolean isOver() {
        return stop || failure.get() != null;
    }

    void fail(Throwable e) {
        failure.compareAndSet(null, e);
        failed.countDown();
        meeting.forceTermination();
    }

    /** The end of a thread. */
    static final class Stopped extends RuntimeException {
        private static final long serialVersionUID = 1;

        Stopped() {
            super(null, null, false, false);
        }
    }

    /** The failure must come from a fault that this thread met since it had met so many. */
    void expectFault(int before, KernelException e) {
        if (disk.faults() == before) {
            throw new AssertionError("a failure without a fault", e);
        }
        tally.failedByFault.increment();
    }

    private void writeInBackground() {
        BackgroundWriter writer =
                pool.backgroundWriter(
                        new BackgroundWriterOptions(20, 2, TimeUnit.MILLISECONDS.toNanos(1), 16),
                        SystemNanoClock.INSTANCE);
        int seen = 0;
        while (true) {
            seen = meet(seen);
            int before = disk.faults();
            try {
                if (writer.doWork() == 0) {
                    writer.rest();
                }
            } catch (DiskException e) {
                expectFault(before, e);
            }
        }
    }

    private void checkpoint() {
        Random random = new Random(plan.seed);
        long[] now = new long[1];
        NanoClock clock = () -> now[0] += TimeUnit.MILLISECONDS.toNanos(20);
        int[] seen = new int[1];
        while (true) {
            seen[0] = meet(seen[0]);
            List<Written> promises = promises(relations);
            CheckpointSchedule schedule =
                    random.nextBoolean()
                            ? CheckpointSchedule.IMMEDIATE
                            : progress -> random.nextInt(8) == 0;
            syncs.preCheckpoint();
            wal.moveRedoPointer();
            CheckpointWrite write = pool.beginCheckpoint(schedule, clock, 32);
            int before = disk.faults();
            try {
                while (!write.isDone()) {
                    write.doWork();
                    seen[0] = meet(seen[0]);
                }
                promises.forEach(promise -> promise.check("a checkpoint"));
                process();
                syncs.postCheckpoint();
                tally.checkpoints.increment();
            } catch (DiskException e) {
                expectFault(before, e);
            } catch (KernelStoppedException e) {
                if (!plan.syncFails) {
                    throw e;
                }
            }
        }
    }

    private void process() {
        if (isKernelStopped()) {
            long syncsBefore = disk.simulated.count(DiskCall.SYNC);
            try {
                syncs.process();
            } catch (KernelStoppedException e) {
                if (disk.simulated.count(DiskCall.SYNC) != syncsBefore) {
                    throw new AssertionError("synced again after a failure");
                }
                throw e;
            }
            throw new AssertionError("a checkpoint completed after a failed sync");
        }
        try {
            syncs.process();
        } catch (KernelStoppedException e) {
            kernelStopped.countDown();
            throw e;
        }
    }

    /** True once a sync has failed. */
    boolean isKernelStopped() {
        return kernelStopped.getCount() == 0;
    }

    /** What a flush or a checkpoint that begins now promises for the relation. */
    record Written(StressRelation relation, int epoch, long[][] versions) {
        /**
         * It has ended: every page that was dirty then is in its file, in that version or later.
         */
        void check(String who) {
            relation.use.readLock().lock();
            try {
                if (relation.epoch != epoch) {
                    return; // dropped or cut meanwhile
                }
                for (int fork = 0; fork < versions.length; fork++) {
                    for (int block = 0; block < versions[fork].length; block++) {
                        if (relation.written(fork, block) < versions[fork][block]) {
                            throw new AssertionError(
                                    who
                                            + " left version "
                                            + versions[fork][block]
                                            + " unwritten, the file has "
                                            + relation.written(fork, block)
                                            + " "
                                            + relation.place(fork, block));
                        }
                    }
                }
            } finally {
                relation.use.readLock().unlock();
            }
        }
    }

    static List<Written> promises(List<StressRelation> relations) {
        List<Written> promises = new ArrayList<>();
        for (StressRelation relation : relations) {
            promises.add(promise(relation));
        }
        return promises;
    }

    /** Under the shared lock, or epoch and versions might not belong together. */
    private static Written promise(StressRelation relation) {
        relation.use.readLock().lock();
        try {
            return new Written(relation, relation.epoch, relation.versions());
        } finally {
            relation.use.readLock().unlock();
        }
    }

    private void account() {
        tally.faults.add(disk.faultsMet.sum());
        tally.pagesWritten.add(disk.pagesWritten.sum());
        tally.gateCalls.add(wal.gateCalls.sum());
        tally.hintImages.add(wal.images.sum());
        for (PoolCounter counter : PoolCounter.values()) {
            tally.counters[counter.ordinal()].add(pool.counters().value(counter));
        }
    }
}
