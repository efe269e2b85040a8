package org.pgkernel.cli.repro;

import java.io.PrintStream;
import java.time.Duration;
import java.util.Locale;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A progress bar with time left on a terminal; one line at the start and at the end elsewhere. */
final class Progress implements AutoCloseable {
    private final PrintStream err;
    private final String task;
    private final long began = System.nanoTime();
    private final ProgressBar bar;

    Progress(PrintStream err, String task, long steps) {
        this.err = err;
        this.task = task;
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

    void at(long step) {
        if (bar != null) {
            bar.stepTo(step);
        }
    }

    @Override
    public void close() {
        if (bar != null) {
            bar.close();
        } else {
            err.printf(Locale.ROOT, "%s: %s%n", task, elapsed(began));
        }
    }

    /** Seconds since {@code nanos}, for people. */
    static String elapsed(long nanos) {
        Duration passed = Duration.ofNanos(System.nanoTime() - nanos);
        return passed.toMinutes() > 0
                ? passed.toMinutes() + " min " + passed.toSecondsPart() + " s"
                : String.format(Locale.ROOT, "%.1f s", passed.toMillis() / 1e3);
    }
}
