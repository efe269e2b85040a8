package org.pgkernel.cli.repro;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.pgkernel.bufmgr.DropDecision;
import org.pgkernel.bufmgr.DropPath;
import org.pgkernel.bufmgr.DropStrategy;

/**
 * The table that a run ends with: published figures, ours, and the ratio to the full scan of the
 * same data and pool size.
 */
final class ResultTable {
    private static final String[] HEAD = {
        "operation",
        "TOAST",
        "shared_buffers",
        "published master",
        "published patched",
        "who",
        "seconds",
        "of it drops",
        "us/table",
        "vs FULL_SCAN",
        "drop paths",
        "probes",
        "MB scanned",
        "checkpoint",
        "pages equal"
    };

    private final PublishedFigures published = new PublishedFigures();
    private final int tables;
    private final List<String[]> rows = new ArrayList<>();

    ResultTable(int tables) {
        this.tables = tables;
        rows.add(HEAD);
    }

    /**
     * Adds one row a cell (the median of its repetitions), and the rivals of the same data below.
     */
    void add(List<Measurement> measurements, List<RivalMeasurement> rivals) {
        Map<String, List<Measurement>> groups = new LinkedHashMap<>();
        for (Measurement m : measurements) {
            groups.computeIfAbsent(
                            groupOf(
                                    m.cell().operation(),
                                    m.cell().toast(),
                                    m.cell().sharedBuffers().text()),
                            k -> new ArrayList<>())
                    .add(m);
        }
        groups.forEach(
                (key, group) -> {
                    double scan = medianSeconds(group, DropStrategy.FULL_SCAN);
                    for (DropStrategy strategy : DropStrategy.values()) {
                        List<Measurement> runs =
                                group.stream()
                                        .filter(m -> m.cell().strategy() == strategy)
                                        .toList();
                        if (!runs.isEmpty()) {
                            rows.add(row(runs, scan));
                        }
                    }
                    rivals.stream()
                            .filter(
                                    r ->
                                            groupOf(
                                                            r.operation(),
                                                            r.toast(),
                                                            r.sharedBuffers().text())
                                                    .equals(key))
                            .collect(
                                    Collectors.groupingBy(
                                            RivalMeasurement::name,
                                            LinkedHashMap::new,
                                            Collectors.toList()))
                            .values()
                            .forEach(runs -> rows.add(rivalRow(runs, scan)));
                });
    }

    private static String groupOf(Operation operation, boolean toast, String sharedBuffers) {
        return operation + " " + toast + " " + sharedBuffers;
    }

    private static double medianSeconds(List<Measurement> group, DropStrategy strategy) {
        return median(
                group.stream()
                        .filter(m -> m.cell().strategy() == strategy)
                        .mapToDouble(Measurement::seconds)
                        .toArray());
    }

    /** The median; NaN for no values. */
    static double median(double[] values) {
        if (values.length == 0) {
            return Double.NaN;
        }
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private String[] row(List<Measurement> runs, double scan) {
        Cell cell = runs.getFirst().cell();
        double seconds = median(runs.stream().mapToDouble(Measurement::seconds).toArray());
        Measurement last = runs.getLast();
        long different = runs.stream().mapToLong(Measurement::pagesDifferent).sum();
        long compared = runs.stream().mapToLong(Measurement::pagesCompared).sum();
        return head(
                cell.operation(),
                cell.toast(),
                cell.sharedBuffers().text(),
                cell.strategy().name(),
                seconds,
                fixed(median(runs.stream().mapToDouble(Measurement::dropSeconds).toArray())),
                scan,
                paths(last),
                Long.toString(last.decisions().stream().mapToLong(DropDecision::probes).sum()),
                String.format(
                        Locale.ROOT,
                        "%.1f",
                        last.decisions().stream().mapToLong(DropDecision::bytesScanned).sum()
                                / 1e6),
                fixed(median(runs.stream().mapToDouble(Measurement::checkpointSeconds).toArray())),
                different == 0
                        ? compared + " of " + compared
                        : (compared - different) + " of " + compared + " !");
    }

    /** {@code 200 lookup}, or several with a comma: drop calls by path. */
    static String paths(Measurement m) {
        Map<DropPath, Long> calls = new EnumMap<>(DropPath.class);
        m.decisions().forEach(d -> calls.merge(d.path(), d.calls(), Long::sum));
        return calls.entrySet().stream()
                .map(
                        e ->
                                e.getValue()
                                        + " "
                                        + e.getKey()
                                                .name()
                                                .toLowerCase(Locale.ROOT)
                                                .replace('_', ' '))
                .collect(Collectors.joining(", "));
    }

    private String[] rivalRow(List<RivalMeasurement> runs, double scan) {
        RivalMeasurement rival = runs.getFirst();
        return head(
                rival.operation(),
                rival.toast(),
                rival.sharedBuffers().text(),
                rival.name(),
                median(runs.stream().mapToDouble(RivalMeasurement::seconds).toArray()),
                "",
                scan,
                "",
                "",
                "",
                "",
                "judge");
    }

    private String[] head(
            Operation operation,
            boolean toast,
            String sharedBuffers,
            String who,
            double seconds,
            String drops,
            double scan,
            String paths,
            String probes,
            String scanned,
            String checkpoint,
            String equal) {
        PublishedFigures.Figure figure = published.find(operation, sharedBuffers);
        return new String[] {
            operation.label(),
            toast ? "yes" : "no",
            sharedBuffers,
            figure == null ? "-" : fixed(figure.master()),
            figure == null ? "-" : fixed(figure.patched()),
            who,
            fixed(seconds),
            drops,
            String.format(Locale.ROOT, "%.0f", seconds * 1e6 / tables),
            Double.isNaN(scan) ? "-" : String.format(Locale.ROOT, "%.3f", seconds / scan),
            paths,
            probes,
            scanned,
            checkpoint,
            equal
        };
    }

    private static String fixed(double value) {
        return String.format(Locale.ROOT, "%.3f", value);
    }

    /** The table in plain text: columns padded, numbers to the right. */
    String render() {
        int[] widths = new int[HEAD.length];
        for (String[] row : rows) {
            for (int i = 0; i < row.length; i++) {
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        StringBuilder out = new StringBuilder();
        for (int r = 0; r < rows.size(); r++) {
            String[] row = rows.get(r);
            for (int i = 0; i < row.length; i++) {
                boolean left = r == 0 || i < 3 || i == 5 || i == 10 || i == 14;
                String pad = " ".repeat(widths[i] - row[i].length());
                out.append(i == 0 ? "" : "  ").append(left ? row[i] + pad : pad + row[i]);
            }
            out.setLength(out.toString().stripTrailing().length());
            out.append('\n');
            if (r == 0) {
                for (int i = 0; i < widths.length; i++) {
                    out.append(i == 0 ? "" : "  ").append("-".repeat(widths[i]));
                }
                out.append('\n');
            }
        }
        return out.toString();
    }
}
