package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * How long a checkpoint and a flush look for dirty buffers before their first write, in a full
 * pool; and a drop of 100 pages. The first two are stopped where they would write, by a gate that
 * takes the time and throws one and the same exception: so nothing is written, the same pages are
 * dirty each time, and what the exception costs is not counted.
 *
 * <pre>
 *  run RESULTS [MODE]     {@link #PROCESSES} processes a mode (recovery, primary), 15 seconds each
 *  report RESULTS DOCS    DOCS/write-out.md
 * </pre>
 *
 * Each process gives a median and a 90th percentile. The median of the medians is published, with
 * the least and the most of them: between these lies, with 97 % certainty, the true median of the
 * medians of all processes, whatever their distribution (all six are on one side of it in two of 64
 * cases).
 */
public final class WriteOutReport {
    private static final int BUFFERS = 13_107_200;
    private static final int PROCESSES = 6;
    private static final int PAGES = 100;
    private static final int WARM_UPS = 20_000;
    private static final int WARM_SAMPLES = 1_000;
    private static final int COLD_SAMPLES = 120;
    private static final String FILE = "write-out-";

    private static final KernelStoppedException HERE =
            new KernelStoppedException("stopped before the first write", null);

    private final FilledPool filled;
    private final StringBuilder lines = new StringBuilder();

    /** When the gate was asked. */
    private long arrived;

    /** Kept, so that the walks are made. */
    private long sum;

    private WriteOutReport(FilledPool filled) {
        this.filled = filled;
        filled.gate =
                lsn -> {
                    arrived = System.nanoTime();
                    throw HERE;
                };
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        switch (args.length == 0 ? "" : args[0]) {
            case "run" -> run(Path.of(args[1]), args.length > 2 ? List.of(args[2]) : modes());
            case "measure" -> measure(args[1], Path.of(args[2]));
            case "report" -> report(Path.of(args[1]), Path.of(args[2]));
            default -> {
                System.err.println(
                        "usage: WriteOutReport run RESULTS [MODE] | report RESULTS DOCS");
                System.exit(2);
            }
        }
    }

    private static List<String> modes() {
        return List.of("recovery", "primary");
    }

    private static void run(Path results, List<String> modes)
            throws IOException, InterruptedException {
        Files.createDirectories(results);
        for (int i = 0; i < PROCESSES; i++) {
            for (String mode : modes) {
                Path file = results.resolve(FILE + mode + "-" + i + ".csv");
                DropReport.java(
                        file, List.of("org.pgkernel.benchmarks.WriteOutReport", "measure", mode));
            }
        }
    }

    private static void measure(String mode, Path file) throws IOException {
        FilledPool filled = FilledPool.of(BUFFERS, DropStrategy.ADAPTIVE, mode.equals("recovery"));
        WriteOutReport report = new WriteOutReport(filled);
        report.measure();
        Files.writeString(file, report.lines);
    }

    private void measure() throws IOException {
        SmgrRelation[] victims = {filled.victim(PAGES)};
        filled.new Guests(PAGES);
        int[] dirty = map(victims[0]);
        flush("flush", victims[0], dirty);
        for (int buffer : dirty) {
            filled.filler.clean(buffer);
        }
        drop(victims);
        dirty = map(victims[0]); // so that every buffer has a page again

        dirty(1_000);
        sample("checkpoint", WARM_UPS / 4, () -> {}, () -> stopped(filled.pool::flushAll));
        sample(
                "reference",
                50,
                () -> {},
                () -> {
                    sum += filled.filler.dirtyByLookingAtAll();
                    return System.nanoTime();
                });

        dirty(99_000);
        flush("flush-others", victims[0], dirty);
    }

    private int[] map(SmgrRelation relation) {
        int[] dirty = new int[PAGES / 10];
        for (int block = 0; block < PAGES; block++) {
            int buffer = filled.map(relation, block);
            if (block % 10 == 0) {
                dirty[block / 10] = buffer;
            }
        }
        return dirty;
    }

    private void dirty(int count) {
        for (int i = 0; i < count; i++) {
            filled.filler.dirty(filled.random.nextInt(BUFFERS));
        }
    }

    private void flush(String name, SmgrRelation relation, int[] dirty) {
        for (int buffer : dirty) {
            filled.filler.dirty(buffer);
        }
        sample(name, WARM_UPS, () -> {}, () -> stopped(() -> filled.pool.flushRelation(relation)));
    }

    private void drop(SmgrRelation[] victims) {
        sample(
                "drop",
                WARM_UPS,
                () -> map(victims[0]),
                () -> {
                    long dropped = filled.pool.dropStatistics().buffersDropped;
                    filled.pool.dropRelations(victims, 1);
                    long end = System.nanoTime();
                    if (filled.pool.dropStatistics().buffersDropped - dropped != PAGES) {
                        throw new IllegalStateException("not all dropped");
                    }
                    return end;
                });
    }

    /**
     * @return when the first write was about to begin
     */
    private long stopped(Runnable step) {
        try {
            step.run();
        } catch (KernelStoppedException e) {
            if (e != HERE) {
                throw e;
            }
            return arrived;
        }
        throw new IllegalStateException("nothing was dirty");
    }

    private interface Step {
        /**
         * @return when what is measured was over
         */
        long run();
    }

    private void sample(String name, int warmUps, Runnable prepare, Step step) {
        for (int i = 0; i < warmUps; i++) { // until the compiler has done with it
            prepare.run();
            step.run();
        }
        sample(name, "warm", warmUps < WARM_SAMPLES ? warmUps : WARM_SAMPLES, prepare, step);
        sample(name, "cold", warmUps < COLD_SAMPLES ? warmUps : COLD_SAMPLES, prepare, step);
    }

    private void sample(String name, String caches, int count, Runnable prepare, Step step) {
        double[] nanos = new double[count];
        for (int i = 0; i < count; i++) {
            prepare.run();
            if (caches.equals("cold")) {
                sum += Cache.flush();
            }
            long start = System.nanoTime();
            nanos[i] = step.run() - start;
        }
        Arrays.sort(nanos);
        double median = ReplacementPairs.median(nanos);
        lines.append(name).append(',').append(caches).append(',').append(median).append(',');
        lines.append(nanos[count * 9 / 10]).append('\n');
    }

    private static void report(Path results, Path docs) throws IOException {
        Map<String, List<double[]>> figures = new TreeMap<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(results, FILE + "*.csv")) {
            for (Path file : files) {
                String mode = file.getFileName().toString().substring(FILE.length()).split("-")[0];
                for (String line : Files.readAllLines(file)) {
                    String[] fields = line.split(",");
                    figures.computeIfAbsent(
                                    fields[0] + " " + mode + " " + fields[1],
                                    key -> new ArrayList<>())
                            .add(
                                    new double[] {
                                        Double.parseDouble(fields[2]), Double.parseDouble(fields[3])
                                    });
                }
            }
        }
        StringBuilder text = new StringBuilder(INTRODUCTION);
        row(text, figures, "checkpoint", "checkpoint, 1,000 dirty anywhere: found, marked, sorted");
        row(
                text,
                figures,
                "flush",
                "flush of a relation of 100 pages, 10 dirty; nothing else dirty");
        row(text, figures, "flush-others", "the same, 100,000 pages of others dirty");
        row(text, figures, "drop", "drop of a relation of 100 pages");
        row(text, figures, "reference", "reference: a look at every state word, 8 bytes a buffer");
        Files.writeString(docs.resolve("write-out.md"), text.append(REMARKS));
    }

    private static void row(
            StringBuilder text, Map<String, List<double[]>> figures, String name, String title) {
        text.append("| ").append(title).append(" |");
        for (String mode : modes()) {
            for (String caches : List.of("warm", "cold")) {
                List<double[]> all = figures.get(name + " " + mode + " " + caches);
                double[] medians = all.stream().mapToDouble(one -> one[0]).sorted().toArray();
                double[] high = all.stream().mapToDouble(one -> one[1]).toArray();
                text.append(' ').append(micros(ReplacementPairs.median(medians)));
                text.append(" [").append(micros(medians[0])).append("–");
                text.append(micros(medians[medians.length - 1])).append("] (");
                text.append(micros(ReplacementPairs.median(high))).append(") |");
            }
        }
        text.append('\n');
    }

    private static String micros(double nanos) {
        return String.format(Locale.ROOT, nanos < 10_000 ? "%.1f" : "%,.0f", nanos / 1000);
    }

    private static final String INTRODUCTION =
            """
            # Finding dirty buffers

            How long a checkpoint and a flush look for their dirty buffers before the first write, and a drop of 100 pages, in a full pool of
            13,107,200 buffers (100 GB). Made by `java -cp benchmarks/target/benchmarks.jar org.pgkernel.benchmarks.WriteOutReport run RESULTS`, then
            `report RESULTS docs`, in about four minutes.

            Microseconds: median of the medians of six processes, [the least and the most of these: a 97 % interval for the median of all such processes],
            (their 90th percentile). One thread, 2-core machine, strategy `ADAPTIVE`, checksums off. Cold: the processor's caches are flushed before each
            call. Primary: outside recovery, with shared sizes. The pool's metadata is filled by the code that reads use (`PoolFiller`); checkpoint and flush
            are stopped where they would write, and the time is taken there.

            | | recovery, warm | recovery, cold | primary, warm | primary, cold |
            |---|---|---|---|---|
            """;

    private static final String REMARKS =
            """

            - The search goes from the top of the dirty bitmap down (`DirtyBitmap`), so it costs a few cache misses for each dirty buffer found and 800 bytes for
              the pool. The reference does what PostgreSQL's checkpoint does for each buffer, without locking its header; PostgreSQL strides over 64 bytes.
            - With nothing else dirty the flush walks the dirty buffers; with 100,000 others it asks the mapping table for the relation's 100 blocks, sixteen
              at a time, so that their waits for memory overlap.
            - Asked: a flush of few dirty pages finds them in 30 µs, a checkpoint its 1,000 in 1 ms.
            """;
}
