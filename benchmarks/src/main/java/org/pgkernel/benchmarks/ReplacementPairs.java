package org.pgkernel.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.SwitchedBookkeeping;

/**
 * What a strategy's bookkeeping adds to a replacement, as a ratio to the same without it: in one
 * pool, so in the same memory and the same files, whose bookkeeping is switched on and off by turns
 * of {@link #TURN} replacements. Each pair of turns gives a ratio, the median of {@link #PAIRS} is
 * an instance's, and the median of {@link #INSTANCES} instances, each a fresh pool, is the result,
 * with a 95 % bootstrap interval over the instances.
 *
 * <p>As a control the same is done with the bookkeeping off in both turns, under the name {@code
 * LOOKUP}, which keeps nothing.
 */
final class ReplacementPairs {
    private static final int TURN = 2_048;
    private static final int PAIRS = 150;
    private static final int WARMUP = 20;
    private static final int INSTANCES = 15;
    private static final int RESAMPLES = 20_000;

    private ReplacementPairs() {}

    /** {@code args[0]}: the file to write, as JMH writes its CSV files. */
    public static void main(String[] args) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(
                "\"Benchmark\",\"Mode\",\"Threads\",\"Samples\",\"Score\",\"Score Error (95%)\",\"Unit\",\"Param: strategy\"");
        DropStrategy[] strategies = {
            DropStrategy.LOOKUP, DropStrategy.DLIST, DropStrategy.ADAPTIVE
        };
        double[][] ratios = new double[strategies.length][INSTANCES];
        for (int i = 0; i < INSTANCES; i++) { // by turns, so that the machine's moods fall on all
            for (int s = 0; s < strategies.length; s++) {
                ratios[s][i] = instance(strategies[s]);
            }
        }
        for (int s = 0; s < strategies.length; s++) {
            double[] medians = resampledMedians(ratios[s]);
            lines.add(line("median", strategies[s], median(ratios[s])));
            lines.add(line("low", strategies[s], medians[RESAMPLES / 40]));
            lines.add(line("high", strategies[s], medians[RESAMPLES - 1 - RESAMPLES / 40]));
        }
        Files.write(Path.of(args[0]), lines);
    }

    private static double instance(DropStrategy strategy) throws IOException {
        boolean control = strategy == DropStrategy.LOOKUP;
        SwitchedBookkeeping bookkeeping =
                new SwitchedBookkeeping(control ? DropStrategy.ADAPTIVE : strategy);
        try (ReplacingPool pool = new ReplacingPool(bookkeeping)) {
            double[] ratios = new double[PAIRS];
            for (int i = -WARMUP; i < PAIRS; i++) {
                boolean first = (i & 1) == 0; // neither is always the one that comes second
                long one = turn(pool, bookkeeping, first && !control);
                long other = turn(pool, bookkeeping, !first && !control);
                if (i >= 0) {
                    ratios[i] = first ? (double) one / other : (double) other / one;
                }
            }
            return median(ratios);
        }
    }

    private static long turn(ReplacingPool pool, SwitchedBookkeeping bookkeeping, boolean on) {
        bookkeeping.turn(on);
        long start = System.nanoTime();
        for (int i = 0; i < TURN; i++) {
            pool.replace();
        }
        return System.nanoTime() - start;
    }

    private static double[] resampledMedians(double[] ratios) {
        SplittableRandom random = new SplittableRandom(20_201_123);
        double[] medians = new double[RESAMPLES];
        double[] sample = new double[ratios.length];
        for (int i = 0; i < RESAMPLES; i++) {
            for (int k = 0; k < sample.length; k++) {
                sample[k] = ratios[random.nextInt(ratios.length)];
            }
            medians[i] = median(sample);
        }
        Arrays.sort(medians);
        return medians;
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
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
