package org.pgkernel.cli.bench;

import java.util.Locale;

/**
 * One trace in one pool under one policy.
 *
 * @param policy its name, or MIN: the optimum
 * @param searches victims that the policy looked for; 0 when nothing was timed
 * @param nanos what all searches took
 */
record ReplacementResult(
        String trace,
        int pages,
        int uses,
        int buffers,
        String policy,
        long hits,
        long searches,
        long nanos) {
    static final String MIN = "MIN";
    static final String CSV_HEADER =
            "trace,pages,uses,buffers,policy,hits,misses,hit_rate,victim_searches,ns_per_victim";

    double hitRate() {
        return (double) hits / uses;
    }

    /** NaN when there was no search, or none was timed. */
    double nanosPerVictim() {
        return searches == 0 ? Double.NaN : (double) nanos / searches;
    }

    String csv() {
        return String.format(
                Locale.ROOT,
                "%s,%d,%d,%d,%s,%d,%d,%.6f,%d,%s",
                trace,
                pages,
                uses,
                buffers,
                policy,
                hits,
                uses - hits,
                hitRate(),
                searches,
                searches == 0 ? "" : String.format(Locale.ROOT, "%.1f", nanosPerVictim()));
    }
}
