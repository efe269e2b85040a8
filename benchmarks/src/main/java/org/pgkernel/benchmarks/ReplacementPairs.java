package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.pgkernel.bufmgr.DropStrategy;

/**
 * What a strategy's bookkeeping adds to a replacement, as a ratio to a pool that keeps nothing:
 * both in one process, by turns of {@link #TURN} replacements, so that whatever else the machine
 * does falls on both. Each pair of turns gives a ratio; the median counts, with the interval that
 * holds it with 95 % certainty (order statistics, no distribution assumed).
 *
 * <p>{@code LOOKUP} against {@code FULL_SCAN}, which run the same code, tells what such a ratio is
 * worth.
 */
final class ReplacementPairs {
    private static final int TURN = 8_192;
    private static final int PAIRS = 400;
    private static final int WARMUP = 40;

    /** 1.96 standard deviations of the number of pairs below the median: sqrt(n) / 2. */
    private static final double HALF_WIDTH = 1.96 / 2;

    private ReplacementPairs() {}

    /** {@code args[0]}: the file to write, as JMH writes its CSV files. */
    public static void main(String[] args) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(
                "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\",\"Score Error (95%)\",\"Unit\",\"Param: strategy\"");
        try (ReplacingPool none = new ReplacingPool(DropStrategy.FULL_SCAN)) {
            for (DropStrategy strategy :
                    List.of(DropStrategy.LOOKUP, DropStrategy.DLIST, DropStrategy.ADAPTIVE)) {
                try (ReplacingPool keeps = new ReplacingPool(strategy)) {
                    double[] ratios = ratios(keeps, none);
                    Arrays.sort(ratios);
                    int half = (int) Math.ceil(HALF_WIDTH * Math.sqrt(PAIRS));
                    lines.add(line("median", strategy, ratios[PAIRS / 2]));
                    lines.add(line("low", strategy, ratios[PAIRS / 2 - half]));
                    lines.add(line("high", strategy, ratios[PAIRS / 2 + half]));
                }
            }
        }
        Files.write(Path.of(args[0]), lines);
    }

    private static double[] ratios(ReplacingPool keeps, ReplacingPool none) {
        double[] ratios = new double[PAIRS];
        for (int i = -WARMUP; i < PAIRS; i++) {
            boolean first = (i & 1) == 0; // neither is always the one that comes second
            long one = turn(first ? keeps : none);
            long other = turn(first ? none : keeps);
            if (i >= 0) {
                ratios[i] = first ? (double) one / other : (double) other / one;
            }
        }
        return ratios;
    }

    private static long turn(ReplacingPool pool) {
        long start = System.nanoTime();
        for (int i = 0; i < TURN; i++) {
            pool.replace();
        }
        return System.nanoTime() - start;
    }

    private static String line(String what, DropStrategy strategy, double ratio) {
        return String.format(
                Locale.ROOT,
                "\"org.pgkernel.benchmarks.ReplacementPairs.%s\",\"pairs\",1,%d,%.4f,NaN,\"ratio\",%s",
                what,
                PAIRS,
                ratio,
                strategy);
    }
}
