package org.pgkernel.cli.bench;

import org.pgkernel.bufmgr.BufferAccessStrategy;
import org.pgkernel.bufmgr.Replacement;
import org.pgkernel.bufmgr.ReplacementTrial;

/** Replays a trace on a pool under a policy. */
final class ReplacementRun {
    private ReplacementRun() {}

    /**
     * @param timed false: victim searches are not timed
     */
    static ReplacementResult of(Trace trace, Replacement policy, int buffers, boolean timed) {
        try (ReplacementTrial trial = new ReplacementTrial(policy, buffers, timed)) {
            BufferAccessStrategy ring = null;
            long hits = 0;
            for (int at = 0; at < trace.length(); at++) {
                byte scan = trace.scan(at);
                if (scan == Trace.SCAN_BEGINS) {
                    ring = BufferAccessStrategy.forScan(trace.scanBlocks(), buffers);
                }
                Trace.Page page = trace.page(trace.use(at));
                if (trial.use(
                        page.spc(),
                        page.db(),
                        page.rel(),
                        page.fork(),
                        page.block(),
                        scan == Trace.NO_SCAN ? null : ring)) {
                    hits++;
                }
            }
            return new ReplacementResult(
                    trace.name(),
                    trace.footprint(),
                    trace.length(),
                    buffers,
                    policy.name(),
                    hits,
                    trial.victimSearches(),
                    trial.victimNanos());
        }
    }

    static ReplacementResult optimum(Trace trace, int buffers) {
        return new ReplacementResult(
                trace.name(),
                trace.footprint(),
                trace.length(),
                buffers,
                ReplacementResult.MIN,
                Optimum.hits(trace, buffers),
                0,
                0);
    }
}
