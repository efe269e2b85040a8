package org.pgkernel.fsm;

import org.pgkernel.base.error.RefusedException;

/**
 * How free space is found.
 *
 * @param policy what it says for relations of at most {@code threshold} blocks
 * @param threshold blocks, 0 to {@link #MOST_THRESHOLD}; with 0 every relation has a map on disk,
 *     whatever the policy
 */
public record FsmOptions(FsmPolicy policy, int threshold) {
    /** Blocks up to which a heap has no map. (PostgreSQL: HEAP_FSM_CREATION_THRESHOLD.) */
    public static final int DEFAULT_THRESHOLD = 4;

    /** What all backends know of a small relation is one word, a byte a block. */
    public static final int MOST_THRESHOLD = Long.BYTES;

    /** PostgreSQL 15's. */
    public static final FsmOptions ALWAYS = new FsmOptions(FsmPolicy.ALWAYS, 0);

    public FsmOptions {
        if (threshold < 0 || threshold > MOST_THRESHOLD) {
            throw new RefusedException(
                    "a relation without a free space map has at most "
                            + MOST_THRESHOLD
                            + " blocks threshold="
                            + threshold);
        }
    }

    /** With the threshold that PostgreSQL had. */
    public static FsmOptions of(FsmPolicy policy) {
        return new FsmOptions(policy, policy == FsmPolicy.ALWAYS ? 0 : DEFAULT_THRESHOLD);
    }

    /** Blocks up to which no map is made, in redo too. */
    public int creationThreshold() {
        return policy == FsmPolicy.ALWAYS ? 0 : threshold;
    }

    /** For one backend. */
    public FreeSpace newFreeSpace() {
        if (creationThreshold() == 0) {
            return new FreeSpaceMap();
        }
        return switch (policy) {
            case ALWAYS -> new FreeSpaceMap();
            case SMALL_TABLES_LOCAL -> new LocalFreeSpace(threshold);
            case SMALL_TABLES_SHARED -> new SharedFreeSpace(threshold);
        };
    }
}
