package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.util.Statistics;

/**
 * Measures how pages are found, pinned and read in, and writes what comes out.
 *
 * <pre>
 *  run RESULTS [BENCHMARK...]   {@link BackendPinBenchmark}, {@link LookupPinBenchmark} and {@link
 *                               MissBenchmark}: five minutes
 *  report RESULTS DOCS          DOCS/buffer-access.md and .csv
 * </pre>
 */
public final class BufferAccessReport {
    private static final List<String> BENCHMARKS =
            List.of("BackendPinBenchmark", "LookupPinBenchmark", "MissBenchmark");
    private static final String HOT = "oneHotPageTwoThreads";
    private static final double MOST_UNIFORM = 1.05;
    private static final double LEAST_HOT = 2;
    private static final double MOST_OVER_READ_NANOS = 2_000;

    /** A mean with the half of its 95 % interval. */
    private record Score(
            String benchmark,
            String style,
            String buffers,
            double mean,
            double half,
            double bytes) {
        static Score parse(String line) {
            String[] f = line.split(",", -1);
            return new Score(
                    f[0],
                    f[1],
                    f[2],
                    Double.parseDouble(f[3]),
                    Double.parseDouble(f[4]),
                    Double.parseDouble(f[5]));
        }

        String line() {
            return String.format(
                    Locale.ROOT,
                    "%s,%s,%s,%.3f,%.3f,%.4f",
                    benchmark,
                    style,
                    buffers,
                    mean,
                    half,
                    bytes);
        }

        /** Of two independent means, to the first order. */
        double ratioHalf(Score to) {
            return mean / to.mean * Math.hypot(half / mean, to.half / to.mean);
        }
    }

    private BufferAccessReport() {}

    public static void main(String[] args) throws IOException, RunnerException {
        if (args.length >= 2 && args[0].equals("run")) {
            List<String> benchmarks =
                    args.length > 2 ? List.of(args).subList(2, args.length) : BENCHMARKS;
            run(Files.createDirectories(Path.of(args[1])), benchmarks);
        } else if (args.length == 3 && args[0].equals("report")) {
            Path docs = Path.of(args[2]);
            Files.writeString(docs.resolve("buffer-access.md"), report(Path.of(args[1])));
            Files.write(docs.resolve("buffer-access.csv"), figures(Path.of(args[1])));
        } else {
            System.err.println(
                    "usage: BufferAccessReport run RESULTS [BENCHMARK...] | report RESULTS DOCS");
            System.exit(2);
        }
    }

    private static void run(Path results, List<String> benchmarks)
            throws IOException, RunnerException {
        for (String benchmark : benchmarks) {
            List<String> lines = new ArrayList<>();
            for (RunResult result :
                    new Runner(
                                    new OptionsBuilder()
                                            .include("\\." + benchmark + "\\.")
                                            .addProfiler(GCProfiler.class)
                                            .shouldFailOnError(true)
                                            .build())
                            .run()) {
                lines.add(score(result).line());
            }
            Files.write(
                    results.resolve(benchmark + ".csv"),
                    lines,
                    StandardOpenOption.CREATE,
                    StandardOpenOption.TRUNCATE_EXISTING);
        }
    }

    private static Score score(RunResult result) {
        Statistics times = result.getPrimaryResult().getStatistics();
        String label = result.getParams().getBenchmark();
        return new Score(
                label.substring(label.lastIndexOf('.') + 1),
                parameter(result, "style"),
                parameter(result, "buffers"),
                times.getMean(),
                times.getMeanErrorAt(0.95),
                result.getSecondaryResults().get("gc.alloc.rate.norm").getScore());
    }

    private static String parameter(RunResult result, String name) {
        String value = result.getParams().getParam(name);
        return value == null ? "" : value;
    }

    /** All figures of the run in one table. */
    private static List<String> figures(Path results) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(
                "class,benchmark,style,buffers,mean_ns,half_of_95_percent_interval_ns,bytes_per_op");
        for (String benchmark : BENCHMARKS) {
            for (String line : Files.readAllLines(results.resolve(benchmark + ".csv"))) {
                lines.add(benchmark + "," + line);
            }
        }
        return lines;
    }

    private static List<Score> read(Path file) throws IOException {
        return Files.readAllLines(file).stream().map(Score::parse).toList();
    }

    private static String report(Path results) throws IOException {
        StringBuilder text = new StringBuilder();
        text.append(
                """
                # Buffer access, measured

                Finding, pinning and reading in pages: JMH, average time of an operation with its 95 %% interval, three forks of eight
                iterations each; a ratio's interval is made of both means' to the first order. %d processors, JDK %s.

                Made by `java -cp benchmarks/target/benchmarks.jar org.pgkernel.benchmarks.BufferAccessReport run RESULTS`, then
                `report RESULTS docs`; the figures are in [buffer-access.csv](buffer-access.csv).
                """
                        .formatted(
                                Runtime.getRuntime().availableProcessors(),
                                System.getProperty("java.runtime.version")));
        text.append(
                """

                ## A page that is in the pool: lookup, pin, unpin

                `OPTIMISTIC` against `PARTITION_LOCK`; all buffers hold pages of one relation. *Uniform*: any page. *Hot*: one page. Through
                `BackendBuffers.read` and `release`, a backend a thread, as sessions and workers use pages. Asked for: uniformly at most 1.05
                times the reference's time; one hot page from two threads at most half of it; nothing allocated.

                """);
        lookups(text, read(results.resolve("BackendPinBenchmark.csv")), true);
        text.append(
                """

                Backends that meet each other at a page's state word retain their pins of it (`PinRetention`): so two threads on one hot page
                write to lines of their own, and are as fast as one that has the page to itself; `PARTITION_LOCK` retains nothing. With two
                threads on the hot page the reference is, from run to run, either at 97 to 130 ns or at about 450 ns, whole processes long;
                against the best of it, 97 ns, the ratio would be below 0.3.

                The same through `BufferPool.read` and `release`, as redo, checkpoints and writers use pages. The pool itself does not know
                whose a pin is, so nothing can be retained: each use of a hot page is two changes of its state word, and each change of a word
                that another processor has just changed costs about 40 ns here. (Tried without gain: the unpin as one addition, which cannot
                fail, and waiting ever longer after a failed compare-and-set.) There is no mark for this hot page: its users have none.

                """);
        lookups(text, read(results.resolve("LookupPinBenchmark.csv")), false);
        misses(text, read(results.resolve("MissBenchmark.csv")));
        return text.toString();
    }

    /**
     * @param hotHasAMark one hot page from two threads has to be so much faster
     */
    private static void lookups(StringBuilder text, List<Score> scores, boolean hotHasAMark) {
        text.append(
                """
                | pages | threads | buffers | OPTIMISTIC, ns | B/op | PARTITION_LOCK, ns | B/op | ratio | asked for | |
                |---|---:|---:|---:|---:|---:|---:|---:|---:|---|
                """);
        for (Score ours : scores) {
            if (!ours.style.equals("OPTIMISTIC")) {
                continue;
            }
            Score reference =
                    scores.stream()
                            .filter(
                                    s ->
                                            s.benchmark.equals(ours.benchmark)
                                                    && s.buffers.equals(ours.buffers)
                                                    && s.style.equals("PARTITION_LOCK"))
                            .findFirst()
                            .orElseThrow();
            boolean hot = ours.benchmark.equals(HOT);
            boolean marked = !hot || hotHasAMark;
            double most = hot ? 1 / LEAST_HOT : MOST_UNIFORM;
            double ratio = ours.mean / reference.mean;
            boolean allocates = ours.bytes >= 0.5;
            text.append(
                    String.format(
                            Locale.ROOT,
                            "| %s | %d | %s | %s | %.0f | %s | %.0f | %.3f ± %.3f | %s | %s |%n",
                            ours.benchmark.startsWith("uniform") ? "uniform" : "hot",
                            ours.benchmark.endsWith("TwoThreads") ? 2 : 1,
                            ours.buffers,
                            nanos(ours),
                            ours.bytes,
                            nanos(reference),
                            reference.bytes,
                            ratio,
                            ours.ratioHalf(reference),
                            marked ? String.format(Locale.ROOT, "≤ %.2f", most) : "",
                            !marked ? "" : ratio <= most && !allocates ? "met" : "**not met**"));
        }
    }

    private static void misses(StringBuilder text, List<Score> scores) {
        Score bare = named(scores, "bareRead");
        text.append(
                """

                ## A page that is not in the pool

                A pool of 16,384 buffers reads 65,536 pages of a file in memory by turns, so that each evicts a clean page; the bare read
                reads the same blocks in the same order. Asked for: at most 2,000 ns more than the bare read into one page.

                | | ns | B/op | more than the bare read, ns | |
                |---|---:|---:|---:|---|
                """);
        for (Score score : scores) {
            double over = score.mean - bare.mean;
            String verdict =
                    score.benchmark.startsWith("bare")
                            ? ""
                            : over <= MOST_OVER_READ_NANOS ? "met" : "**not met**";
            text.append(
                    String.format(
                            Locale.ROOT,
                            "| %s | %s | %.1f | %s | %s |%n",
                            switch (score.benchmark) {
                                case "bareRead" -> "bare read into one page";
                                case "bareReadIntoManyPages" ->
                                        "bare read into 16,384 pages by turns";
                                case "miss" -> "read through the pool";
                                case "missWithChecksum" -> "the same, checksum verified";
                                default -> score.benchmark;
                            },
                            nanos(score),
                            score.bytes,
                            score == bare
                                    ? ""
                                    : String.format(
                                            Locale.ROOT,
                                            "%.0f ± %.0f",
                                            over,
                                            Math.hypot(score.half, bare.half)),
                            verdict));
        }
    }

    private static Score named(List<Score> scores, String benchmark) {
        return scores.stream().filter(s -> s.benchmark.equals(benchmark)).findFirst().orElseThrow();
    }

    private static String nanos(Score score) {
        return String.format(Locale.ROOT, "%.1f ± %.1f", score.mean, score.half);
    }
}
