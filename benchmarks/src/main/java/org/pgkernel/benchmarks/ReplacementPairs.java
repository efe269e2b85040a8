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
 * does falls on both. Each pair of turns gives a ratio, and the median of {@link #PAIRS} is an
 * instance's. Where a pool and its file come to lie in memory changes it by some per cent, so there
 * are {@link #INSTANCES} instances, of fresh pools, made first by turns; their median counts, with
 * the least and the most of them: the true median of all instances lies between these with 99 %
 * certainty.
 *
 * <p>{@code LOOKUP} against {@code FULL_SCAN}, which run the same code, tells what such a ratio is
 * worth.
 */
final class ReplacementPairs {
    private static final int TURN = 8_192;
    private static final int PAIRS = 50;
    private static final int WARMUP = 10;
    private static final int INSTANCES = 8;

    private ReplacementPairs() {}

    /** {@code args[0]}: the file to write, as JMH writes its CSV files. */
    public static void main(String[] args) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(
                "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\",\"Score Error (95%)\",\"Unit\",\"Param: strategy\"");
        for (DropStrategy strategy :
                List.of(DropStrategy.LOOKUP, DropStrategy.DLIST, DropStrategy.ADAPTIVE)) {
            double[] ratios = new double[INSTANCES];
            for (int i = 0; i < INSTANCES; i++) {
                ratios[i] = instance(strategy, (i & 1) == 0);
            }
            Arrays.sort(ratios);
            lines.add(
                    line(
                            "median",
                            strategy,
                            (ratios[INSTANCES / 2 - 1] + ratios[INSTANCES / 2]) / 2));
            lines.add(line("low", strategy, ratios[0]));
            lines.add(line("high", strategy, ratios[INSTANCES - 1]));
        }
        Files.write(Path.of(args[0]), lines);
    }

    private static double instance(DropStrategy strategy, boolean keepsFirst) throws IOException {
        try (ReplacingPool one = new ReplacingPool(keepsFirst ? strategy : DropStrategy.FULL_SCAN);
                ReplacingPool other =
                        new ReplacingPool(keepsFirst ? DropStrategy.FULL_SCAN : strategy)) {
            double[] ratios = keepsFirst ? ratios(one, other) : ratios(other, one);
            Arrays.sort(ratios);
            return (ratios[PAIRS / 2 - 1] + ratios[PAIRS / 2]) / 2;
        }
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
                PAIRS * INSTANCES,
                ratio,
                strategy);
    }
}
