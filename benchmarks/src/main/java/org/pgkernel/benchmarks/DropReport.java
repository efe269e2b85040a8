package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.knowm.xchart.VectorGraphicsEncoder;
import org.knowm.xchart.VectorGraphicsEncoder.VectorGraphicsFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;

/**
 * Measures the drop strategies and writes what comes out.
 *
 * <pre>
 *  run RESULTS [PIECE...]   every cell, or pieces of all, into CSV files of JMH: about 20 minutes
 *  report RESULTS DOCS      DOCS/drop-strategies.md, .csv and charts
 * </pre>
 *
 * Pieces: {@code replacement}, {@code pairs}, and with a pool's buffers {@code drops-}, {@code
 * reference-}, {@code one-page-}; and for one cell once more, by turns in several processes, {@code
 * again-BUFFERS-RESIDENT-BLOCKS-SIZES-CACHES}. What was measured more than once is reported by its
 * median.
 *
 * <p>The pools' processes are started here, one for each pool size and strategy, as JMH's own forks
 * would fill the pool anew for each cell.
 */
public final class DropReport {
    private static final int[] BUFFERS = {16_384, 131_072, 1_310_720, 13_107_200};
    private static final List<String> STRATEGIES =
            List.of("FULL_SCAN", "LOOKUP", "DLIST", "ADAPTIVE");
    private static final List<String> CELLS =
            List.of("0/1000", "1/1", "1/1000000", "100/100", "1000/1000", "1000/1000000");

    /** Not among the published cells: tells what a block costs that is looked up in vain. */
    private static final List<String> FITTED_TOO = List.of("1/1000", "10/10000");

    private static final List<String> SIZES = List.of("known", "unknown");
    private static final List<String> CACHES = List.of("warm", "cold");

    /** See {@link #again}. */
    private static final int PROCESSES = 5;

    private static final double MOST_OF_BETTER = 1.2;
    private static final double MOST_OF_DLIST = 1.5;
    private static final double MOST_OF_REPLACEMENT = 1.05;

    private final DropResults results;
    private final Path docs;
    private final StringBuilder text = new StringBuilder();
    private final List<String> misses = new ArrayList<>();

    private DropReport(DropResults results, Path docs) {
        this.results = results;
        this.docs = docs;
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        if (args.length >= 2 && args[0].equals("run")) {
            List<String> pieces = Arrays.asList(args).subList(2, args.length);
            run(Files.createDirectories(Path.of(args[1])), pieces);
        } else if (args.length == 3 && args[0].equals("report")) {
            new DropReport(DropResults.read(Path.of(args[1])), Path.of(args[2])).write();
        } else {
            System.err.println("usage: DropReport run RESULTS [PIECE...] | report RESULTS DOCS");
            System.exit(2);
        }
    }

    private static void run(Path results, List<String> pieces)
            throws IOException, InterruptedException {
        if (pieces.isEmpty() || pieces.contains("replacement")) {
            jmh(unused(results, "replacement"), "ReplacementCostBenchmark", "-prof", "gc");
        }
        if (pieces.isEmpty() || pieces.contains("pairs")) {
            java(
                    unused(results, "replacement-pairs"),
                    List.of("org.pgkernel.benchmarks.ReplacementPairs"));
        }
        for (String piece : pieces) {
            if (piece.startsWith("again-")) {
                String[] of = piece.split("-");
                again(results, Integer.parseInt(of[1]), of[2] + "/" + of[3], of[4], of[5]);
            }
        }
        for (int buffers : BUFFERS) {
            String pool = "buffers=" + buffers;
            if (pieces.isEmpty() || pieces.contains("drops-" + buffers)) {
                for (String strategy : STRATEGIES) {
                    Path result = unused(results, "drop-" + buffers + "-" + strategy);
                    jmh(result, "DropBenchmark", "-f", "0", "-p", pool, "-p", of(strategy));
                }
            }
            if (pieces.isEmpty() || pieces.contains("reference-" + buffers)) {
                Path result = unused(results, "reference-" + buffers);
                jmh(result, "ReferenceScanBenchmark", "-f", "0", "-p", pool);
            }
            if (pieces.isEmpty() || pieces.contains("one-page-" + buffers)) {
                again(results, buffers, "1/1", "known", "cold");
            }
        }
    }

    /**
     * A cold drop of one page is a few dozen waits for memory, and how long they are depends on
     * where a process's code and objects came to lie; and a machine may be half as fast some
     * minutes later: so several processes, by turns. FULL_SCAN only in small pools: elsewhere it is
     * far off.
     */
    private static void again(Path results, int buffers, String cell, String sizes, String caches)
            throws IOException, InterruptedException {
        String name = String.join("-", "again-" + buffers, cell.replace('/', '-'), sizes, caches);
        List<String> strategies =
                buffers > BUFFERS[1] ? STRATEGIES.subList(1, STRATEGIES.size()) : STRATEGIES;
        for (int i = 0; i < PROCESSES; i++) {
            for (String strategy : strategies) {
                jmh(
                        unused(results, name + "-" + strategy),
                        "DropBenchmark",
                        "-f",
                        "0",
                        "-i",
                        "4",
                        "-p",
                        "buffers=" + buffers,
                        "-p",
                        of(strategy),
                        "-p",
                        "cell=" + cell,
                        "-p",
                        "sizes=" + sizes,
                        "-p",
                        "caches=" + caches);
            }
        }
    }

    private static String of(String strategy) {
        return "strategy=" + strategy;
    }

    /** A file that is not there yet: what is measured again is added, not put in its place. */
    private static Path unused(Path results, String name) {
        int number = 1;
        while (Files.exists(results.resolve(name + "-" + number + ".csv"))) {
            number++;
        }
        return results.resolve(name + "-" + number + ".csv");
    }

    private static void jmh(Path result, String benchmark, String... options)
            throws IOException, InterruptedException {
        List<String> jmh = new ArrayList<>(List.of("org.openjdk.jmh.Main", benchmark));
        jmh.addAll(List.of(options));
        jmh.addAll(List.of("-foe", "true", "-v", "SILENT", "-rf", "csv", "-rff"));
        java(result, jmh);
    }

    /** A process with the class, options and the result's file as its arguments. */
    static void java(Path result, List<String> arguments) throws IOException, InterruptedException {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                ProcessHandle.current().info().command().orElse("java"),
                                "-Xms1g",
                                "-Xmx1g",
                                "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
                                "--enable-native-access=ALL-UNNAMED",
                                "--sun-misc-unsafe-memory-access=allow",
                                "-cp",
                                System.getProperty("java.class.path")));
        command.addAll(arguments);
        command.add(result.toString());
        long start = System.nanoTime();
        int status = new ProcessBuilder(command).inheritIO().start().waitFor();
        System.out.printf(
                "%s: %d s%n", result.getFileName(), (System.nanoTime() - start) / 1_000_000_000);
        if (status != 0) {
            throw new IllegalStateException("process ended with " + status + " for " + result);
        }
    }

    private void write() throws IOException {
        Files.createDirectories(docs);
        writeCsv();
        StringBuilder tables = new StringBuilder();
        for (String caches : CACHES) {
            for (String sizes : SIZES) {
                tables.append(table(sizes, caches));
            }
        }
        line("# Drop strategies, measured");
        line("");
        line(INTRODUCTION);
        verdict();
        fit();
        replacement();
        reference();
        charts();
        text.append(tables);
        Files.writeString(docs.resolve("drop-strategies.md"), text);
    }

    private static final String INTRODUCTION =
            """
            One relation is dropped out of a pool whose every buffer holds a page of another one. *Resident* pages of it are in the
            pool, spread uniformly over buffers and over the blocks of its one fork. *Sizes known*: the storage manager remembers the
            fork's size, as when redo has asked for it; *unknown*: it does not. *Cold*: the processor's caches were flushed before each
            drop. Every drop was checked to have left none of the pages. Medians of JMH's sample mode (`DropBenchmark`); one thread,
            %s processors of %s, JDK %s. 16,384 buffers are `shared_buffers = 128MB`, 13,107,200 are `100GB`.

            Made by `java -cp benchmarks/target/benchmarks.jar org.pgkernel.benchmarks.DropReport run RESULTS`, then `report RESULTS docs`.
            All figures: [drop-strategies.csv](drop-strategies.csv).
            """
                    .formatted(
                            Runtime.getRuntime().availableProcessors(),
                            processor(),
                            Runtime.version());

    private static String processor() {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/cpuinfo"))) {
                if (line.startsWith("model name")) {
                    return line.substring(line.indexOf(':') + 1).strip();
                }
            }
        } catch (IOException e) {
            // Not Linux.
        }
        return System.getProperty("os.arch");
    }

    private void writeCsv() throws IOException {
        StringBuilder csv =
                new StringBuilder("buffers,resident,blocks,sizes,caches,strategy,median_ns\n");
        eachCell(
                (buffers, cell, sizes, caches) -> {
                    for (String strategy : STRATEGIES) {
                        double nanos = results.drop(buffers, strategy, cell, sizes, caches);
                        if (!Double.isNaN(nanos)) {
                            csv.append(buffers)
                                    .append(',')
                                    .append(cell.replace('/', ','))
                                    .append(',')
                                    .append(sizes)
                                    .append(',')
                                    .append(caches)
                                    .append(',')
                                    .append(strategy)
                                    .append(',')
                                    .append(Math.round(nanos))
                                    .append('\n');
                        }
                    }
                });
        Files.writeString(docs.resolve("drop-strategies.csv"), csv);
    }

    private interface Cell {
        void visit(int buffers, String cell, String sizes, String caches);
    }

    private static void eachCell(Cell visitor) {
        for (int buffers : BUFFERS) {
            for (String cell : CELLS) {
                for (String sizes : SIZES) {
                    for (String caches : CACHES) {
                        visitor.visit(buffers, cell, sizes, caches);
                    }
                }
            }
        }
    }

    private static int resident(String cell) {
        return Integer.parseInt(cell.substring(0, cell.indexOf('/')));
    }

    private static int blocks(String cell) {
        return Integer.parseInt(cell.substring(cell.indexOf('/') + 1));
    }

    private static boolean isFull(String cell) {
        return resident(cell) == blocks(cell);
    }

    private String table(String sizes, String caches) {
        StringBuilder table = new StringBuilder();
        table.append("## ").append(caches.equals("cold") ? "Cold" : "Warm").append(", sizes ");
        table.append(sizes).append("\n\nMicroseconds.\n\n| buffers | resident / blocks |");
        STRATEGIES.forEach(s -> table.append(' ').append(s).append(" |"));
        table.append(" ADAPTIVE / better of FULL_SCAN, LOOKUP | ADAPTIVE / DLIST |\n");
        table.append("|---:|---:|---:|---:|---:|---:|---:|---:|\n");
        for (int buffers : BUFFERS) {
            for (String cell : CELLS) {
                table.append(row(buffers, cell, sizes, caches));
            }
        }
        return table.append('\n').toString();
    }

    private String row(int buffers, String cell, String sizes, String caches) {
        double adaptive = results.drop(buffers, "ADAPTIVE", cell, sizes, caches);
        if (Double.isNaN(adaptive)) {
            return "";
        }
        StringBuilder row = new StringBuilder();
        row.append("| ").append(number(buffers)).append(" | ");
        row.append(number(resident(cell))).append(" / ").append(number(blocks(cell))).append(" |");
        for (String strategy : STRATEGIES) {
            row.append(' ')
                    .append(micros(results.drop(buffers, strategy, cell, sizes, caches)))
                    .append(" |");
        }
        double better =
                Math.min(
                        results.drop(buffers, "FULL_SCAN", cell, sizes, caches),
                        results.drop(buffers, "LOOKUP", cell, sizes, caches));
        String where = number(buffers) + " buffers, " + cell + ", sizes " + sizes + ", " + caches;
        row.append(' ')
                .append(
                        ratio(
                                adaptive / better,
                                MOST_OF_BETTER,
                                where,
                                "the better of FULL_SCAN and LOOKUP"));
        double dlist = results.drop(buffers, "DLIST", cell, sizes, caches);
        row.append(" | ");
        if (isFull(cell)) {
            row.append(ratio(adaptive / dlist, MOST_OF_DLIST, where, "DLIST"));
        } else {
            row.append('(').append(format("%.2f", adaptive / dlist)).append(')');
        }
        return row.append(" |\n").toString();
    }

    private String ratio(double ratio, double most, String where, String of) {
        if (ratio > most) {
            misses.add(format("%.2f", ratio) + " × " + of + ": " + where);
            return "**" + format("%.2f", ratio) + "**";
        }
        return format("%.2f", ratio);
    }

    private void verdict() {
        line("## Criteria");
        line("");
        line(
                "ADAPTIVE takes at most 1.2 times as long as the better of FULL_SCAN and LOOKUP in every cell, and at most 1.5 times");
        line("as long as DLIST where all blocks are resident.");
        line("");
        if (misses.isEmpty()) {
            line("Both hold in every cell.");
        } else {
            line("Not so (bold in the tables):");
            line("");
            misses.forEach(miss -> line("- " + miss));
        }
        line("");
    }

    private void fit() {
        line("## Cost of a drop");
        line("");
        line(
                "ADAPTIVE's cost is fitted by `c + a · resident + min(b · blocks, 2 bytes · NBuffers / speed)`, where `c` is a drop of one page of one");
        line(
                "block; when nothing is resident it is the last column's. Cells of 1 of 1,000 and 10 of 10,000 blocks are fitted too; their pages are");
        line(
                "found after about half and nine tenths of the blocks. `speed` is that of the fingerprint scan, from the cell with one resident page of 1,000,000 blocks in the");
        line(
                "largest pool, which is found in the middle of it on average. The column before the last is the worst cell's cost as a multiple of the fit's: with a, b and c times that the formula");
        line("bounds every cell.");
        line("");
        line(
                "| caches | a, ns a resident page | b, ns a block | c, ns | speed, GB/s | worst cell | nothing resident, ns |");
        line("|---|---:|---:|---:|---:|---:|---:|");
        for (String caches : CACHES) {
            CostFit fit = new CostFit();
            for (int buffers : BUFFERS) {
                for (String cell : Stream.concat(CELLS.stream(), FITTED_TOO.stream()).toList()) {
                    for (String sizes : SIZES) {
                        double nanos = results.drop(buffers, "ADAPTIVE", cell, sizes, caches);
                        fit.add(buffers, resident(cell), blocks(cell), nanos);
                    }
                }
            }
            if (fit.isEmpty()) {
                continue;
            }
            int largest = BUFFERS[BUFFERS.length - 1];
            double scan = results.drop(largest, "ADAPTIVE", "1/1000000", "known", caches);
            fit.fit(Double.isNaN(scan) ? 28 : 1.0 * largest / scan);
            double nothing = results.drop(largest, "ADAPTIVE", "0/1000", "known", caches);
            line(
                    format(
                            "| %s | %.0f | %.0f | %.0f | %.1f | %.2f | %.0f |",
                            caches, fit.a, fit.b, fit.c, fit.speed, fit.worst(), nothing));
        }
        line("");
    }

    private void replacement() {
        line("## Cost of a replacement");
        line("");
        line(
                "Another page is read (8 KiB from a file in memory) into the buffer of one that goes, and the same without reading the page: only the");
        line(
                "tag, mapping table, clock sweep and the strategy's bookkeeping. 16,384 buffers, 128 relations by turns. FULL_SCAN and LOOKUP");
        line(
                "keep nothing. *Ratio*: with the bookkeeping to without it, in one pool, in which it is switched on and off by turns (`ReplacementPairs`):");
        line(
                "median of 15 fresh pools, 150 pairs of turns of 2,048 replacements each, and its 95 % bootstrap interval; LOOKUP's row is off against off.");
        line("The other columns are JMH's, a process each. Asked: at most 1.05.");
        line("");
        line(
                "| strategy | ratio | 95 % interval | replacement, ns | without reading, ns | added, ns | bytes allocated |");
        line("|---|---:|---:|---:|---:|---:|---:|");
        double mapOnly = (replaced("mapOnly", "FULL_SCAN") + replaced("mapOnly", "LOOKUP")) / 2;
        for (String strategy : STRATEGIES) {
            line(
                    format(
                            "| %s | %s | %.0f | %.0f | %.0f | %.3f |",
                            strategy,
                            pairs(strategy),
                            replaced("replace", strategy),
                            replaced("mapOnly", strategy),
                            replaced("mapOnly", strategy) - mapOnly,
                            replaced("replace:gc.alloc.rate.norm", strategy)));
        }
        line("");
    }

    private String pairs(String strategy) {
        String parameter = "strategy=" + strategy;
        double median = results.score("ReplacementPairs.median", parameter);
        if (Double.isNaN(median)) {
            return "| ";
        }
        double low = results.score("ReplacementPairs.low", parameter);
        double high = results.score("ReplacementPairs.high", parameter);
        boolean missed = strategy.equals("ADAPTIVE") && high > MOST_OF_REPLACEMENT;
        return format(missed ? "**%.3f** | %.3f–%.3f" : "%.3f | %.3f–%.3f", median, low, high);
    }

    private double replaced(String name, String strategy) {
        return results.score("ReplacementCostBenchmark." + name, "strategy=" + strategy);
    }

    private void reference() {
        line("## Layout and algorithm");
        line("");
        line(
                "Looking for a relation without pages: over descriptors 64 bytes apart, as PostgreSQL has them; over our tags, 20 bytes each (FULL_SCAN);");
        line(
                "over fingerprints, 2 bytes each (ADAPTIVE with one page of 1,000,000 blocks, which it finds by scanning in the larger pools). The");
        line("first two differ by layout, the others by algorithm. Microseconds.");
        line("");
        line(
                "| caches | buffers | 64-byte descriptors | FULL_SCAN | layout's gain | ADAPTIVE scans | further gain |");
        line("|---|---:|---:|---:|---:|---:|---:|");
        for (String caches : CACHES) {
            for (int buffers : BUFFERS) {
                double wide = referenced("descriptors64", buffers, caches);
                double tags = referenced("fullScan", buffers, caches);
                double prints = results.drop(buffers, "ADAPTIVE", "1/1000000", "unknown", caches);
                if (!Double.isNaN(wide)) {
                    line(
                            format(
                                    "| %s | %s | %s | %s | %.1f | %s | %.1f |",
                                    caches,
                                    number(buffers),
                                    micros(wide),
                                    micros(tags),
                                    wide / tags,
                                    micros(prints),
                                    tags / prints));
                }
            }
        }
        line("");
    }

    private double referenced(String name, int buffers, String caches) {
        return results.score(
                "ReferenceScanBenchmark." + name + ":p0.50",
                "buffers=" + buffers,
                "caches=" + caches);
    }

    private void charts() throws IOException {
        line("## Charts");
        line("");
        line(
                "Cold caches; LOOKUP with known and with unknown sizes, which make no difference to the others.");
        line("");
        for (String cell : CELLS) {
            XYChart chart =
                    new XYChartBuilder()
                            .width(640)
                            .height(420)
                            .title(
                                    number(resident(cell))
                                            + " resident of "
                                            + number(blocks(cell))
                                            + " blocks")
                            .xAxisTitle("buffers")
                            .yAxisTitle("microseconds")
                            .build();
            chart.getStyler().setPlotGridLinesVisible(false);
            chart.getStyler().setXAxisLogarithmic(true);
            chart.getStyler().setYAxisLogarithmic(true);
            chart.getStyler().setLegendPosition(LegendPosition.OutsideE);
            add(chart, "FULL_SCAN", "FULL_SCAN", cell, "known");
            add(chart, "LOOKUP, known", "LOOKUP", cell, "known");
            add(chart, "LOOKUP, unknown", "LOOKUP", cell, "unknown");
            add(chart, "DLIST", "DLIST", cell, "known");
            add(chart, "ADAPTIVE", "ADAPTIVE", cell, "unknown");
            if (!chart.getSeriesMap().isEmpty()) {
                String name = "drop-" + cell.replace('/', '-');
                VectorGraphicsEncoder.saveVectorGraphic(
                        chart, docs.resolve(name).toString(), VectorGraphicsFormat.SVG);
                line("![" + chart.getTitle() + "](" + name + ".svg)");
            }
        }
        line("");
    }

    private void add(XYChart chart, String label, String strategy, String cell, String sizes) {
        List<Double> x = new ArrayList<>();
        List<Double> y = new ArrayList<>();
        for (int buffers : BUFFERS) {
            double nanos = results.drop(buffers, strategy, cell, sizes, "cold");
            if (!Double.isNaN(nanos)) {
                x.add((double) buffers);
                y.add(nanos / 1000);
            }
        }
        if (!x.isEmpty()) {
            chart.addSeries(label, x, y);
        }
    }

    private void line(String line) {
        text.append(line).append('\n');
    }

    private static String number(int number) {
        return format("%,d", number);
    }

    private static String micros(double nanos) {
        double micros = nanos / 1000;
        return micros < 10
                ? format("%.2f", micros)
                : micros < 100 ? format("%.1f", micros) : format("%,.0f", micros);
    }

    private static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
