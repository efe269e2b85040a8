package org.pgkernel.it.crash;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault;

/**
 * Goes through seeds, each another workload and other settings of the kernel, crashed at a sample
 * of its changes of the disk in several outcomes, and again in the recovery, until it has made as
 * many crashes as wished or the time is over. A crash is one seed, one call on the disk and one
 * outcome, whose recovery was checked; those of recoveries are counted apart. Properties:
 *
 * <pre>
 * pgkernel.crashes          crashes of workloads to make
 * pgkernel.crashes.minutes  and no longer than this
 * pgkernel.crashes.seed     the first seed
 * pgkernel.crashes.threads  seeds at a time
 * pgkernel.crash            a line that a failure told: only that run
 * </pre>
 */
final class CrashMatrix {
    private static final int STEPS = 45;
    private static final int PLACES = 60;

    /** By chance, besides "nothing is there" and "everything is". */
    private static final int OUTCOMES = 2;

    private static final int IN_RECOVERY = 1;
    private static final long NANOS_BETWEEN_REPORTS = TimeUnit.SECONDS.toNanos(20);

    private final long most;
    private final int threads;
    private final long nanos =
            TimeUnit.MINUTES.toNanos(Integer.getInteger("pgkernel.crashes.minutes", 24 * 60));
    private final AtomicLong nextSeed = new AtomicLong(Long.getLong("pgkernel.crashes.seed", 1));
    private final AtomicLong seeds = new AtomicLong();
    private final AtomicLong crashes = new AtomicLong();
    private final AtomicLong recoveriesCrashed = new AtomicLong();
    private final AtomicLong reports = new AtomicLong();
    private final long start = System.nanoTime();

    private CrashMatrix(long most, int threads) {
        this.most = Long.getLong("pgkernel.crashes", most);
        this.threads = Integer.getInteger("pgkernel.crashes.threads", threads);
    }

    /**
     * Prints how far it is, and in the end what was done.
     *
     * @param most crashes, unless the property says otherwise
     * @return crashes made
     * @throws AssertionError for the first failure, with the line that repeats it
     */
    static long run(long most) throws InterruptedException {
        String line = System.getProperty(CrashSearch.PROPERTY, "");
        if (line.startsWith("matrix-")) {
            String[] words = line.substring(0, line.indexOf(';')).split("-");
            search(Long.parseLong(words[1]), Integer.parseInt(words[2])).run();
            return Long.getLong("pgkernel.crashes", most);
        }
        CrashMatrix matrix =
                new CrashMatrix(most, Math.min(2, Runtime.getRuntime().availableProcessors()));
        matrix.runAll();
        System.out.println(matrix);
        return matrix.crashes.get();
    }

    private void runAll() throws InterruptedException {
        List<Future<?>> parts = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            for (int i = 0; i < threads; i++) {
                parts.add(executor.submit(this::runPart));
            }
        }
        for (Future<?> part : parts) {
            try {
                part.get();
            } catch (ExecutionException e) {
                throw e.getCause() instanceof Error error ? error : new AssertionError(e);
            }
        }
    }

    private void runPart() {
        try {
            while (crashes.get() < most && System.nanoTime() - start < nanos) {
                CrashSearch search = search(nextSeed.getAndIncrement(), STEPS);
                search.run();
                seeds.incrementAndGet();
                crashes.addAndGet(search.crashes());
                recoveriesCrashed.addAndGet(search.recoveriesCrashed());
                report();
            }
        } catch (Throwable e) {
            // The other part need not go on.
            crashes.addAndGet(most);
            throw e;
        }
    }

    private void report() {
        long number = (System.nanoTime() - start) / NANOS_BETWEEN_REPORTS;
        if (reports.getAndSet(number) < number) {
            System.out.println(this);
        }
    }

    private static CrashSearch search(long seed, int steps) {
        CrashSearch search =
                MatrixRun.search(seed, steps)
                        .seed(seed)
                        .outcomes(OUTCOMES)
                        .mostCrashes(PLACES)
                        .crashesInRecovery(IN_RECOVERY)
                        .prepare(disk -> disk.orderedMetadata(seed % 3 == 0));
        if (seed % 5 == 4) {
            // A disk that also fails: whoever stops for it has promised nothing more.
            search.faults(Fault.at(Fault.Effect.EIO, DiskCall.SYNC, 20 + seed % 60));
        }
        return search;
    }

    @Override
    public String toString() {
        return "crash matrix: %d seeds, %d crashes, %d crashes of recoveries in %d s"
                .formatted(
                        seeds.get(),
                        crashes.get(),
                        recoveriesCrashed.get(),
                        TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start));
    }
}
