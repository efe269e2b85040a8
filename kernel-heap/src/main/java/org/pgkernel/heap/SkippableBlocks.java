package org.pgkernel.heap;

import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Which blocks a vacuum need not visit, by the visibility map: all-frozen ones, and all-visible
 * ones unless the vacuum is aggressive; but only in runs of {@link #LEAST_RUN}, for reading on is
 * cheaper than a gap, and a table of which nothing was passed over may have its oldest id moved on.
 * The last block is always visited: a truncation that is bound to fail there would take its lock
 * for nothing.
 *
 * <p>What the map said may change at once. A bit that is cleared meanwhile means that somebody
 * writes to the page now, with ids that this vacuum need not care for. (PostgreSQL:
 * lazy_scan_skip.)
 */
final class SkippableBlocks {
    /** (PostgreSQL: SKIP_PAGES_THRESHOLD.) */
    static final int LEAST_RUN = 32;

    private final VisibilityMap map;
    private final BackendBuffers buffers;

    /** The map's page that was looked at last, pinned, or -1. */
    private int held = -1;

    private int nextToVisit;
    private boolean skips;

    SkippableBlocks(VisibilityMap map, BackendBuffers buffers) {
        this.map = map;
        this.buffers = buffers;
    }

    /** Looks ahead from block 0. A pin that a vacuum that failed had is not there any more. */
    void begin(VacuumState state) {
        held = -1;
        lookAhead(state, 0);
    }

    /** True if the block is to be visited; asked for one block after the other. */
    boolean visit(VacuumState state, int block) {
        if (block != nextToVisit) {
            return !skips;
        }
        lookAhead(state, block + 1);
        return true;
    }

    private void lookAhead(VacuumState state, int from) {
        SmgrRelation storage = state.relation.storage();
        boolean passesVisible = false;
        int block = from;
        while (Integer.compareUnsigned(block, state.pages) < 0) {
            held = map.pinExisting(buffers, storage, block, held);
            int bits = map.status(buffers, block, held);
            boolean frozen = (bits & VisibilityMap.ALL_FROZEN) != 0;
            if ((bits & VisibilityMap.ALL_VISIBLE) == 0
                    || block == state.pages - 1
                    || !state.options.skipPages()
                    || state.aggressive && !frozen) {
                break;
            }
            passesVisible |= !frozen;
            block++;
        }
        nextToVisit = block;
        skips = block - from >= LEAST_RUN;
        state.skippedAllVisible |= skips && passesVisible;
    }

    /** Lets go of the map's page. */
    void release() {
        VisibilityMap.release(buffers, held);
        held = -1;
    }
}
