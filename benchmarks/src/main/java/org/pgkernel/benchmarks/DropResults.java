package org.pgkernel.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Figures that JMH wrote as CSV files ({@code -rf csv}) into a directory. */
final class DropResults {
    private static final String PARAMETER = "Param: ";

    /**
     * Benchmark's simple name, a metric after a colon, and parameters sorted by name; the scores,
     * one of each process that measured it.
     */
    private final Map<String, List<Double>> scores = new HashMap<>();

    private DropResults() {}

    static DropResults read(Path directory) {
        DropResults results = new DropResults();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "*.csv")) {
            for (Path file : files) {
                results.add(Files.readAllLines(file));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return results;
    }

    private void add(List<String> lines) {
        if (lines.isEmpty()) {
            return;
        }
        List<String> header = fields(lines.getFirst());
        for (String line : lines.subList(1, lines.size())) {
            List<String> fields = fields(line);
            List<String> parameters = new ArrayList<>();
            for (int i = 0; i < header.size(); i++) {
                if (header.get(i).startsWith(PARAMETER) && !fields.get(i).isEmpty()) {
                    parameters.add(
                            header.get(i).substring(PARAMETER.length()) + "=" + fields.get(i));
                }
            }
            String name = fields.get(0).replace("org.pgkernel.benchmarks.", "");
            scores.computeIfAbsent(key(name, parameters), key -> new ArrayList<>())
                    .add(Double.valueOf(fields.get(4)));
        }
    }

    /** JMH quotes text and never has a quote inside. */
    private static List<String> fields(String line) {
        List<String> fields = new ArrayList<>();
        StringBuilder field = new StringBuilder();
        boolean quoted = false;
        for (int i = 0; i < line.length(); i++) {
            char c = line.charAt(i);
            if (c == '"') {
                quoted = !quoted;
            } else if (c == ',' && !quoted) {
                fields.add(field.toString());
                field.setLength(0);
            } else {
                field.append(c);
            }
        }
        fields.add(field.toString());
        return fields;
    }

    private static String key(String name, List<String> parameters) {
        return name + parameters.stream().sorted().toList();
    }

    /**
     * @return the median over the processes; NaN when that was not measured
     */
    double score(String name, String... parameters) {
        List<Double> found = scores.get(key(name, List.of(parameters)));
        return found == null
                ? Double.NaN
                : ReplacementPairs.median(
                        found.stream().mapToDouble(Double::doubleValue).toArray());
    }

    /** Median of a drop, nanoseconds. */
    double drop(int buffers, String strategy, String cell, String sizes, String caches) {
        return score(
                "DropBenchmark.drop:p0.50",
                "buffers=" + buffers,
                "strategy=" + strategy,
                "cell=" + cell,
                "sizes=" + sizes,
                "caches=" + caches);
    }
}
