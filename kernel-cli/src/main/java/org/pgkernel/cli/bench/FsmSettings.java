package org.pgkernel.cli.bench;

import java.util.List;

/**
 * What {@code bench fsm} is to do.
 *
 * @param seconds of a TPC-B run
 * @param postgres major versions
 */
record FsmSettings(
        List<FsmPart> parts,
        int rounds,
        List<Integer> scales,
        List<Integer> sessions,
        double seconds,
        List<Integer> rows,
        List<Integer> postgres,
        int tables) {
    /** Bytes that the largest part's data take at one time, with some to spare. */
    long bytes(int variants) {
        long most = 0;
        for (FsmPart part : parts) {
            most =
                    Math.max(
                            most,
                            switch (part) {
                                // Tables with bloat, and WAL, in files and in the pool.
                                case TPCB -> variants * (max(scales) * 60_000_000L + (2L << 30));
                                case COPY ->
                                        max(rows) * 400L
                                                + (postgres.size() + variants) * (1L << 29);
                                case TABLES -> tables * 120_000L + (1L << 29);
                                case SEARCH -> 1L << 28;
                            });
        }
        return most;
    }

    private static long max(List<Integer> values) {
        return values.stream().mapToInt(v -> v).max().orElse(0);
    }

    /** A rough guess from a machine with two cores. */
    long expectedSeconds(int variants) {
        double sum = 0;
        for (FsmPart part : parts) {
            sum +=
                    switch (part) {
                        case TPCB ->
                                scales.stream().mapToDouble(s -> variants * (s * 0.3 + 2)).sum()
                                        + scales.size()
                                                * sessions.size()
                                                * (rounds + 1)
                                                * variants
                                                * (seconds + 0.1);
                        case COPY ->
                                postgres.size() * 3
                                        + rows.stream()
                                                .mapToDouble(
                                                        r ->
                                                                r
                                                                        * 1e-6
                                                                        * (1
                                                                                + (rounds + 1)
                                                                                        * (variants
                                                                                                        * 0.6
                                                                                                + postgres
                                                                                                                .size()
                                                                                                        * 1.2)))
                                                .sum();
                        case TABLES -> tables * variants * 0.004 + 3;
                        case SEARCH -> 30;
                    };
        }
        return Math.round(sum);
    }
}
