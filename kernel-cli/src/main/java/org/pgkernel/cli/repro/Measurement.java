package org.pgkernel.cli.repro;

import java.util.List;
import java.util.Locale;
import org.pgkernel.bufmgr.DropDecision;

/**
 * One run of a cell.
 *
 * @param repetition from 1
 * @param seconds resume until promoted
 * @param dropSeconds of these, spent in the pool's drop calls
 * @param checkpointSeconds the checkpoint that follows the promotion
 * @param decisions how the drop calls of these seconds were decided
 * @param pagesCompared with PostgreSQL's recovery of the same data
 * @param pagesDifferent of these, pages (and files) that differ
 */
record Measurement(
        Cell cell,
        int repetition,
        double seconds,
        double dropSeconds,
        double checkpointSeconds,
        List<DropDecision> decisions,
        long pagesCompared,
        long pagesDifferent) {
    static final String CSV_HEADER =
            "operation,toast,base,shared_buffers,nbuffers,strategy,tables,repetition,seconds,drop_seconds,checkpoint_seconds,pages_compared,pages_different";

    String csv(BaseKind base, int tables) {
        return String.format(
                Locale.ROOT,
                "%s,%s,%s,%s,%d,%s,%d,%d,%.6f,%.6f,%.6f,%d,%d",
                cell.operation().label(),
                cell.toast() ? "yes" : "no",
                base.label(),
                cell.sharedBuffers().text(),
                cell.sharedBuffers().buffers(),
                cell.strategy().name(),
                tables,
                repetition,
                seconds,
                dropSeconds,
                checkpointSeconds,
                pagesCompared,
                pagesDifferent);
    }
}
