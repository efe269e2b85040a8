package org.pgkernel.cli.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.pgkernel.bufmgr.Replacement;
import org.pgkernel.cli.Progress;
import org.pgkernel.cli.UserException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code pgkernel bench replacement}: hit rates of the replacement policies. */
@Command(
        name = "replacement",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Replays traces of page uses on the buffer pool under each replacement policy and compares hit rates; MIN is the optimum, which knows the future. "
                    + "Pages are not read, all else is the pool's own code. The time of a victim search is given too.",
            "The same seed gives the same hits."
        })
public final class ReplacementCommand implements Callable<Integer> {
    private static final int WARM_UP_PAGES = 20_000;
    private static final int WARM_UP_USES = 300_000;

    @CommandLine.Spec private CommandLine.Model.CommandSpec spec;

    @Option(
            names = "--generate",
            paramLabel = "LIST",
            split = ",",
            description = {
                "Traces to make (default: all, unless --trace is given):",
                "  zipf-0.8, zipf-1.0: page k is used 1/k^0.8, 1/k as often as the first;",
                "  shift: zipf-1.0 with another order after each tenth;",
                "  scan: zipf-1.0 over one half, every 4th use a scan of the other half;",
                "  scan-ring: the same, the scans through rings;",
                "  loop: all pages in order, again and again;",
                "  tpcb: pgbench-like transactions through an index."
            })
    private List<String> generate;

    @Option(
            names = "--trace",
            paramLabel = "FILE",
            description =
                    "A recorded trace: a line a page, \"spc db rel fork block\" with blanks or commas between. May be given several times.")
    private List<Path> files = List.of();

    @Option(
            names = "--pages",
            paramLabel = "N",
            description = "Pages of a generated trace (default: ${DEFAULT-VALUE}).",
            defaultValue = "100000")
    private int pages;

    @Option(
            names = "--uses",
            paramLabel = "N",
            description = "Uses in a generated trace (default: ${DEFAULT-VALUE}).",
            defaultValue = "1000000")
    private int uses;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of generated traces (default: ${DEFAULT-VALUE}).",
            defaultValue = "1")
    private long seed;

    @Option(
            names = "--pool",
            paramLabel = "LIST",
            split = ",",
            description =
                    "Pool sizes: parts of the trace's pages, or 128MB, or a number of 8kB buffers (default: ${DEFAULT-VALUE}).",
            defaultValue = "1%,5%,10%,25%,50%")
    private List<String> pools;

    @Option(
            names = "--policy",
            paramLabel = "LIST",
            split = ",",
            description = "${COMPLETION-CANDIDATES} (default: all).")
    private List<Replacement> policies;

    @Option(
            names = "--no-timing",
            description = "Time nothing: then the output is the same at every run.")
    private boolean noTiming;

    @Option(
            names = "--csv",
            paramLabel = "FILE",
            description = "Write the figures there, a line a policy, trace and pool size.")
    private Path csv;

    @Override
    public Integer call() throws IOException {
        List<PoolSize> sizes = new ArrayList<>();
        List<Supplier<Trace>> traces;
        try {
            require(
                    pages >= 100 && pages <= 10_000_000,
                    "--pages must be between 100 and 10000000, not " + pages);
            require(
                    uses >= 1 && uses <= 500_000_000,
                    "--uses must be between 1 and 500000000, not " + uses);
            pools.forEach(pool -> sizes.add(PoolSize.parse(pool)));
            traces = traces();
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage());
        }
        List<Replacement> compared =
                policies == null
                        ? List.of(Replacement.values())
                        : policies.stream().distinct().toList();
        PrintWriter out = spec.commandLine().getOut();
        try (PrintWriter figures = openCsv()) {
            if (!noTiming) {
                warmUp(compared);
            }
            ReplacementTable table = new ReplacementTable(compared, !noTiming);
            run(traces, sizes, compared, table, figures);
            out.print(table.render());
        }
        out.flush();
        return 0;
    }

    private void run(
            List<Supplier<Trace>> traces,
            List<PoolSize> sizes,
            List<Replacement> compared,
            ReplacementTable table,
            PrintWriter figures) {
        int cells = traces.size() * sizes.size() * (compared.size() + 1);
        int done = 0;
        try (Progress progress = new Progress(System.err, "replacement", cells)) {
            for (Supplier<Trace> made : traces) {
                Trace trace = made.get();
                int footprint = trace.footprint();
                List<Integer> different =
                        sizes.stream().map(s -> s.buffersFor(footprint)).distinct().toList();
                for (int buffers : different) {
                    List<ReplacementResult> results = new ArrayList<>();
                    for (Replacement policy : compared) {
                        results.add(ReplacementRun.of(trace, policy, buffers, !noTiming));
                        progress.at(++done);
                    }
                    results.add(ReplacementRun.optimum(trace, buffers));
                    progress.at(++done);
                    table.add(results);
                    write(results, figures);
                }
                done += (sizes.size() - different.size()) * (compared.size() + 1);
                progress.at(done);
            }
        }
    }

    /** Traces are made one after the other, each when its turn comes. Files are read now. */
    private List<Supplier<Trace>> traces() {
        List<GeneratedTrace> wanted = new ArrayList<>();
        if (generate != null) {
            generate.stream().distinct().forEach(label -> wanted.add(GeneratedTrace.parse(label)));
        } else if (files.isEmpty()) {
            wanted.addAll(List.of(GeneratedTrace.values()));
        }
        List<Supplier<Trace>> traces = new ArrayList<>();
        wanted.forEach(trace -> traces.add(() -> trace.make(pages, uses, seed)));
        for (Path file : files) {
            Trace trace = TraceFile.read(file);
            traces.add(() -> trace);
        }
        return traces;
    }

    /** So that the first cell is not the one that the compiler works beside. */
    private static void warmUp(List<Replacement> compared) {
        Trace trace = GeneratedTrace.ZIPF_0_8.make(WARM_UP_PAGES, WARM_UP_USES, 0);
        for (Replacement policy : compared) {
            ReplacementRun.of(trace, policy, WARM_UP_PAGES / 20, true);
        }
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new IllegalArgumentException(message);
        }
    }

    private PrintWriter openCsv() throws IOException {
        if (csv == null) {
            return null;
        }
        Path parent = csv.toAbsolutePath().getParent();
        if (Files.isDirectory(csv)
                || !Files.isDirectory(parent)
                || !Files.isWritable(Files.exists(csv) ? csv : parent)) {
            throw new UserException("the figures cannot be written there: file=" + csv);
        }
        PrintWriter figures = new PrintWriter(Files.newBufferedWriter(csv, StandardCharsets.UTF_8));
        figures.println(ReplacementResult.CSV_HEADER);
        return figures;
    }

    private void write(List<ReplacementResult> results, PrintWriter figures) {
        if (figures == null) {
            return;
        }
        results.forEach(result -> figures.println(result.csv()));
        if (figures.checkError()) {
            throw new UserException("cannot write the figures: file=" + csv);
        }
    }
}
