package org.pgkernel.heap;

import org.pgkernel.base.BlockNumber;

/** What one backend remembers of a relation; its thread's own. */
final class RelationState {
    /** Where the last row went, or invalid. (PostgreSQL: smgr_targblock.) */
    int targetBlock = BlockNumber.INVALID;

    /** Made when the first row needs it. */
    ToastPlanner planner;

    /** A row as {@link #planner} made it. */
    RowValues stored;

    /** For the version that is replaced or deleted; made when first needed. */
    RowValues old;
}
