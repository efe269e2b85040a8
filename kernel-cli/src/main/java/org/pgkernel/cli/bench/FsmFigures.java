package org.pgkernel.cli.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.pgkernel.cli.UserException;

/**
 * The figures of {@code bench fsm}: a line a round, subject and measure. Those of several runs go
 * into one file; rounds go on where the file ends, and pairs are of the same round.
 */
final class FsmFigures {
    /** The policy that others are compared with. */
    static final String BASE = "ALWAYS";

    static final String HEAD = "part,case,measure,subject,round,value";

    private static final int RESAMPLES = 2000;

    /**
     * @param what the case, {@code scale 10, 16 sessions}, without commas: those are written as
     *     semicolons
     * @param measure with its unit
     * @param subject a policy or a server
     */
    record Figure(
            String part, String what, String measure, String subject, int round, double value) {
        private String line() {
            return String.format(
                    Locale.ROOT,
                    "%s,%s,%s,%s,%d,%.6g",
                    part,
                    what.replace(", ", "; "),
                    measure,
                    subject,
                    round,
                    value);
        }

        private static Figure parse(String line) {
            String[] fields = line.split(",", -1);
            return new Figure(
                    fields[0],
                    fields[1].replace("; ", ", "),
                    fields[2],
                    fields[3],
                    Integer.parseInt(fields[4]),
                    Double.parseDouble(fields[5]));
        }
    }

    private final List<Figure> figures = new ArrayList<>();
    private int firstRound;

    /**
     * @throws UserException when it is no file of ours
     */
    void read(Path csv) throws IOException {
        List<String> lines = Files.readAllLines(csv, StandardCharsets.UTF_8);
        int at = 0;
        try {
            if (lines.isEmpty() || !lines.get(at++).equals(HEAD)) {
                throw new IllegalArgumentException();
            }
            for (; at < lines.size(); at++) {
                figures.add(Figure.parse(lines.get(at)));
            }
        } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
            throw new UserException(
                    "not a file of figures of bench fsm: file=" + csv + " line=" + Math.max(at, 1));
        }
        firstRound = figures.stream().mapToInt(Figure::round).max().orElse(-1) + 1;
    }

    void write(Path csv) throws IOException {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(csv))) {
            out.println(HEAD);
            figures.forEach(f -> out.println(f.line()));
        }
    }

    /**
     * @param round from 0 in this run
     */
    void add(String part, String what, String measure, String subject, int round, double value) {
        figures.add(new Figure(part, what, measure, subject, firstRound + round, value));
    }

    boolean isEmpty() {
        return figures.isEmpty();
    }

    /** What belongs into one line. */
    private record Row(String part, String what, String measure) {}

    /** A table a part. */
    String render() {
        Map<Row, Map<String, Map<Integer, Double>>> rows = new LinkedHashMap<>();
        for (Figure f : figures) {
            rows.computeIfAbsent(
                            new Row(f.part(), f.what(), f.measure()), k -> new LinkedHashMap<>())
                    .computeIfAbsent(f.subject(), k -> new LinkedHashMap<>())
                    .put(f.round(), f.value());
        }
        StringBuilder text = new StringBuilder();
        String part = "";
        for (var row : rows.entrySet()) {
            if (!row.getKey().part().equals(part)) {
                part = row.getKey().part();
                text.append(text.isEmpty() ? "" : "\n").append(head(part));
            }
            for (var subject : row.getValue().entrySet()) {
                text.append(
                        line(
                                row.getKey(),
                                subject.getKey(),
                                subject.getValue(),
                                row.getValue().get(BASE)));
            }
        }
        return text.toString();
    }

    private static String head(String part) {
        return part
                + "\n\n| case | measure | subject | median (least to most) | rounds | ratio | 95 % interval |\n"
                + "|---|---|---|---:|---:|---:|---:|\n";
    }

    /** A policy's ratio is its own to the base's; a server's is the base's to its own. */
    private static String line(
            Row row, String subject, Map<Integer, Double> values, Map<Integer, Double> base) {
        double[] all = values.values().stream().mapToDouble(v -> v).sorted().toArray();
        String ratio = "";
        String interval = "";
        if (base != null && !subject.equals(BASE)) {
            boolean isServer = subject.startsWith("PostgreSQL");
            double[] ratios =
                    values.entrySet().stream()
                            .filter(v -> base.containsKey(v.getKey()))
                            .mapToDouble(
                                    v ->
                                            isServer
                                                    ? base.get(v.getKey()) / v.getValue()
                                                    : v.getValue() / base.get(v.getKey()))
                            .filter(Double::isFinite)
                            .toArray();
            if (ratios.length > 0) {
                ratio = String.format(Locale.ROOT, "%.3f", Bootstrap.median(ratios));
            }
            if (ratios.length >= 3) {
                double[] ends = Bootstrap.ofMedian(ratios, RESAMPLES, 0.95, 42);
                interval = String.format(Locale.ROOT, "%.3f to %.3f", ends[0], ends[1]);
            }
        }
        return String.format(
                Locale.ROOT,
                "| %s | %s | %s | %s (%s to %s) | %d | %s | %s |%n",
                row.what(),
                row.measure(),
                subject,
                number(Bootstrap.median(all)),
                number(all[0]),
                number(all[all.length - 1]),
                all.length,
                ratio,
                interval);
    }

    private static String number(double value) {
        String format = Math.abs(value) >= 1000 ? "%,.0f" : Math.abs(value) >= 10 ? "%.1f" : "%.3f";
        return String.format(Locale.ROOT, format, value);
    }
}
