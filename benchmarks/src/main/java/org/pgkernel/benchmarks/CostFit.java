package org.pgkernel.benchmarks;

import java.util.ArrayList;
import java.util.List;

/**
 * The model of ADAPTIVE's cost: {@code c + a resident + min(b blocks, 2 NBuffers / speed)}
 * nanoseconds, if anything is resident. {@code c} is a drop's of one page and block, {@code a} is
 * what a page costs that is thrown away, {@code b} a block that is looked up, {@code speed} the
 * bytes of fingerprints scanned in a nanosecond. Searched for on a grid, by least squares of the
 * logarithms, so that small drops count as much as large ones.
 */
final class CostFit {
    private static final double STEP = 1.05;

    private record Point(int buffers, int resident, int blocks, double nanos) {}

    private final List<Point> points = new ArrayList<>();
    double a;
    double b;
    double c;
    double speed;

    void add(int buffers, int resident, int blocks, double nanos) {
        if (resident > 0 && !Double.isNaN(nanos)) {
            points.add(new Point(buffers, resident, blocks, nanos));
        }
    }

    /**
     * @param speed bytes a nanosecond, measured apart
     */
    void fit(double speed) {
        this.speed = speed;
        double[] smallest =
                points.stream()
                        .filter(p -> p.resident == 1 && p.blocks == 1)
                        .mapToDouble(Point::nanos)
                        .sorted()
                        .toArray();
        c = smallest.length == 0 ? 0 : smallest[smallest.length / 2];
        double best = Double.MAX_VALUE;
        for (double tryA = 5; tryA < 2000; tryA *= STEP) {
            for (double tryB = 1; tryB < 1000; tryB *= STEP) {
                double error = 0;
                for (Point p : points) {
                    double e = Math.log(p.nanos / nanos(p, tryA, tryB));
                    error += e * e;
                }
                if (error < best) {
                    best = error;
                    a = tryA;
                    b = tryB;
                }
            }
        }
    }

    private double nanos(Point p, double a, double b) {
        return c + a * p.resident + Math.min(b * p.blocks, 2.0 * p.buffers / speed);
    }

    /** Largest measured cost, as a multiple of the model's. */
    double worst() {
        double worst = 0;
        for (Point p : points) {
            worst = Math.max(worst, p.nanos / nanos(p, a, b));
        }
        return worst;
    }

    boolean isEmpty() {
        return points.isEmpty();
    }
}
