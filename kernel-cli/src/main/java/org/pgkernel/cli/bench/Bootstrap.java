package org.pgkernel.cli.bench;

import java.util.Arrays;
import java.util.SplittableRandom;

/** Medians of a few figures and how far they can be trusted: the percentile bootstrap. */
public final class Bootstrap {
    private Bootstrap() {}

    public static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /**
     * @return lower and upper end of the interval in which the median lies with the probability
     */
    public static double[] ofMedian(double[] values, int resamples, double probability, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        double[] medians = new double[resamples];
        double[] drawn = new double[values.length];
        for (int i = 0; i < resamples; i++) {
            for (int k = 0; k < drawn.length; k++) {
                drawn[k] = values[random.nextInt(values.length)];
            }
            medians[i] = median(drawn);
        }
        Arrays.sort(medians);
        double tail = (1 - probability) / 2;
        return new double[] {
            medians[(int) (tail * (resamples - 1))], medians[(int) ((1 - tail) * (resamples - 1))]
        };
    }
}
