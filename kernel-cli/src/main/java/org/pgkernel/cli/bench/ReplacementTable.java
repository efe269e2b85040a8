package org.pgkernel.cli.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.pgkernel.bufmgr.Replacement;

/** The table that the benchmark ends with: a row a trace and pool size. */
final class ReplacementTable {
    private static final int TEXT_COLUMNS = 1;

    private final List<Replacement> policies;
    private final boolean timed;
    private final List<List<String>> rows = new ArrayList<>();

    ReplacementTable(List<Replacement> policies, boolean timed) {
        this.policies = policies;
        this.timed = timed;
        List<String> head = new ArrayList<>(List.of("trace", "pages", "pool", "pool/pages"));
        policies.forEach(policy -> head.add(policy.name()));
        head.add(ReplacementResult.MIN);
        if (timed) {
            policies.forEach(policy -> head.add("ns " + policy.name()));
        }
        rows.add(head);
    }

    /**
     * @param results of one trace and pool size: the policies in their order, then the optimum
     */
    void add(List<ReplacementResult> results) {
        ReplacementResult first = results.getFirst();
        List<String> row = new ArrayList<>();
        row.add(first.trace());
        row.add(Integer.toString(first.pages()));
        row.add(Integer.toString(first.buffers()));
        row.add(percent((double) first.buffers() / first.pages()));
        results.forEach(result -> row.add(percent(result.hitRate())));
        if (timed) {
            for (int i = 0; i < policies.size(); i++) {
                double nanos = results.get(i).nanosPerVictim();
                row.add(Double.isNaN(nanos) ? "-" : String.format(Locale.ROOT, "%.0f", nanos));
            }
        }
        rows.add(row);
    }

    private static String percent(double part) {
        return String.format(Locale.ROOT, "%.2f%%", part * 100);
    }

    /** Columns padded, numbers to the right. */
    String render() {
        int columns = rows.getFirst().size();
        int[] widths = new int[columns];
        for (List<String> row : rows) {
            for (int i = 0; i < columns; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        StringBuilder out = new StringBuilder();
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int i = 0; i < columns; i++) {
                String pad = " ".repeat(widths[i] - row.get(i).length());
                line.append(i == 0 ? "" : "  ")
                        .append(i < TEXT_COLUMNS ? row.get(i) + pad : pad + row.get(i));
            }
            out.append(line.toString().stripTrailing()).append('\n');
            if (row == rows.getFirst()) {
                for (int i = 0; i < columns; i++) {
                    out.append(i == 0 ? "" : "  ").append("-".repeat(widths[i]));
                }
                out.append('\n');
            }
        }
        return out.toString();
    }
}
