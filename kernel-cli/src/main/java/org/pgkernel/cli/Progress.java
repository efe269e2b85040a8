package org.pgkernel.cli;

import java.io.PrintStream;
import java.time.Duration;
import java.util.Locale;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/**
 * A progress bar with time left on a terminal; elsewhere a line every few seconds, and one at the
 * end.
 */
public final class Progress implements AutoCloseable {
    private static final long LINE_NANOS = 10_000_000_000L;

    private final PrintStream err;
    private final String task;
    private final long steps;
    private final long began = System.nanoTime();
    private final ProgressBar bar;
    private long lastLine = began;
    private long reached;

    public Progress(PrintStream err, String task, long steps) {
        this.err = err;
        this.task = task;
        this.steps = steps;
        if (System.console() != null && System.console().isTerminal()) {
            bar =
                    new ProgressBarBuilder()
                            .setTaskName(task)
                            .setInitialMax(steps)
                            .setUpdateIntervalMillis(200)
                            .setStyle(ProgressBarStyle.ASCII)
                            .setConsumer(new ConsoleProgressBarConsumer(err))
                            .build();
        } else {
            bar = null;
        }
    }

    public void at(long step) {
        reached = step;
        if (bar != null) {
            bar.stepTo(step);
            return;
        }
        long now = System.nanoTime();
        if (step > 0 && step < steps && now - lastLine >= LINE_NANOS) {
            lastLine = now;
            err.println(task + ": " + standing(now - began, step, steps));
        }
    }

    /** {@code 50 of 200, about 12 s left}: as if every step took the same time. */
    static String standing(long nanos, long step, long steps) {
        long left = Math.round(nanos / 1e9 / step * (steps - step));
        return step + " of " + steps + ", about " + left + " s left";
    }

    @Override
    public void close() {
        if (bar != null) {
            bar.close();
        } else if (reached == steps) {
            err.printf(Locale.ROOT, "%s: %s%n", task, elapsed(began));
        } else {
            err.printf(Locale.ROOT, "%s: stopped after %s%n", task, elapsed(began));
        }
    }

    /** Seconds since {@code nanos}, for people. */
    public static String elapsed(long nanos) {
        Duration passed = Duration.ofNanos(System.nanoTime() - nanos);
        return passed.toMinutes() > 0
                ? passed.toMinutes() + " min " + passed.toSecondsPart() + " s"
                : String.format(Locale.ROOT, "%.1f s", passed.toMillis() / 1e3);
    }
}
