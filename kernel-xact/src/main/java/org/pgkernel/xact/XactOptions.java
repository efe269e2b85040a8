package org.pgkernel.xact;

/**
 * How transactions run.
 *
 * @param sessions at most open at a time (PostgreSQL: MaxBackends)
 * @param cachedSubxids subtransactions of a session that snapshots hold; of more pg_subtrans tells
 * @param freezeMaxAge xids after which a vacuum is asked for (autovacuum_freeze_max_age)
 * @param multixactFreezeMaxAge the same for multixacts (autovacuum_multixact_freeze_max_age)
 * @param deferCleanupAge xids by which horizons stay behind (vacuum_defer_cleanup_age)
 */
public record XactOptions(
        int sessions,
        int cachedSubxids,
        int freezeMaxAge,
        int multixactFreezeMaxAge,
        int deferCleanupAge) {
    /** PostgreSQL's defaults. */
    public static final XactOptions DEFAULT =
            new XactOptions(
                    100,
                    RunningTransactions.CACHED_SUBXIDS,
                    XidLimits.DEFAULT_FREEZE_MAX_AGE,
                    400_000_000,
                    0);
}
