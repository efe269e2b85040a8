package org.pgkernel.cluster;

import org.pgkernel.base.error.RefusedException;
import org.pgkernel.heap.HeapRelation;

/**
 * How a table is kept. Immutable; start from {@link #DEFAULT}.
 *
 * @param unlogged its changes are not logged, and it is empty after a crash
 * @param fillFactor percent of a page that inserts fill, 10 to 100
 * @param vacuumTruncate vacuum gives the empty tail back to the system (vacuum_truncate)
 */
public record TableOptions(boolean unlogged, int fillFactor, boolean vacuumTruncate) {
    public static final TableOptions DEFAULT =
            new TableOptions(false, HeapRelation.DEFAULT_FILLFACTOR, true);

    /**
     * @throws RefusedException when the fillfactor is out of range
     */
    public TableOptions {
        if (fillFactor < HeapRelation.MIN_FILLFACTOR || fillFactor > 100) {
            throw new RefusedException(
                    "a table's fillfactor is from "
                            + HeapRelation.MIN_FILLFACTOR
                            + " to 100 fillfactor="
                            + fillFactor);
        }
    }

    public TableOptions withUnlogged(boolean on) {
        return new TableOptions(on, fillFactor, vacuumTruncate);
    }

    public TableOptions withFillFactor(int percent) {
        return new TableOptions(unlogged, percent, vacuumTruncate);
    }

    public TableOptions withVacuumTruncate(boolean on) {
        return new TableOptions(unlogged, fillFactor, on);
    }
}
