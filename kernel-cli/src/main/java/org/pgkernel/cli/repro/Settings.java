package org.pgkernel.cli.repro;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.SharedBuffers;

/** What an experiment is to do. */
record Settings(
        int tables,
        List<SharedBuffers> sharedBuffers,
        List<DropStrategy> strategies,
        List<DataKind> dataKinds,
        int repetitions,
        BaseKind base,
        List<Integer> postgres,
        Path keep,
        Path csv) {
    /** One data set is made for each. */
    record DataKind(Operation operation, boolean toast) {
        @Override
        public String toString() {
            return operation.label() + (toast ? " with TOAST tables" : " plain");
        }
    }

    int runsADataset() {
        return sharedBuffers.size() * strategies.size() * repetitions;
    }

    /**
     * Disk space: the primary, the judge and one run each hold the tables and all WAL, and so does
     * a base copy that is taken after the load; a rival of another release has a primary of its own
     * while it runs; with {@code --keep} every run's directory stays. Rough, on the safe side.
     */
    long bytesNeeded() {
        long one = 60L << 20;
        one += tables * (250L << 10);
        long copies = base == BaseKind.EMPTY ? 2 : 3;
        if (keep == null) {
            return one * (copies + (postgres.isEmpty() ? 1 : 2));
        }
        long rivalRuns = (long) postgres.size() * (1 + sharedBuffers.size() * repetitions);
        return one * (copies + runsADataset() + 1 + rivalRuns) * dataKinds.size();
    }

    /** What will be done, with which settings, and how long it may take, for people. */
    String plan() {
        int runs = dataKinds.size() * runsADataset();
        StringBuilder plan = new StringBuilder();
        plan.append("pgkernel repro: failover (resume of a paused replay until promoted)\n");
        plan.append("  data      ")
                .append(join(dataKinds))
                .append(String.format(Locale.ROOT, "; %,d tables of 1,000 rows each%n", tables));
        plan.append("  base      ")
                .append(base.label())
                .append(
                        base == BaseKind.EMPTY
                                ? " (the standby replays the load first)\n"
                                : " (nothing resident, no size known)\n");
        plan.append("  pools     ")
                .append(join(sharedBuffers))
                .append("; strategies ")
                .append(join(strategies))
                .append("; repetitions ")
                .append(repetitions)
                .append('\n');
        plan.append(
                "  settings  autovacuum=off full_page_writes=off checkpoint_timeout=30min, no"
                        + " checksums; primary PostgreSQL 15.7\n");
        if (!postgres.isEmpty()) {
            plan.append("  rivals    PostgreSQL ")
                    .append(join(postgres))
                    .append(", each on its own cluster made by the same statements\n");
        }
        plan.append(
                String.format(
                        Locale.ROOT,
                        "  runs      %d, after one warm-up run a data set that is not counted;"
                                + " about %s%n",
                        runs,
                        estimate()));
        return plan.toString();
    }

    private static String join(List<?> list) {
        return list.stream().map(Object::toString).collect(Collectors.joining(", "));
    }

    /**
     * Rough: making the data, replaying it in each run, and what the full scans cost (about 3 ns a
     * buffer).
     */
    private String estimate() {
        double seconds = 0;
        for (DataKind kind : dataKinds) {
            double replay = tables * 0.004 + 1;
            seconds +=
                    8
                            + tables
                                    * (kind.operation() == Operation.VACUUM ? 0.02 : 0.015)
                                    * (1 + postgres.size());
            for (SharedBuffers size : sharedBuffers) {
                double scans = tables * 3e-9 * size.buffers();
                for (DropStrategy strategy : strategies) {
                    boolean scanning =
                            strategy == DropStrategy.FULL_SCAN
                                    || strategy == DropStrategy.LOOKUP
                                            && (kind.toast() || base == BaseKind.AFTER_LOAD);
                    seconds += repetitions * (replay + (scanning ? scans : 0));
                }
                seconds += postgres.size() * repetitions * (5 + tables * 0.01 + scans);
            }
        }
        return seconds < 90
                ? Math.round(seconds / 5) * 5 + " s"
                : Math.round(seconds / 60) + " min";
    }
}
