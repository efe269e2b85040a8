package org.pgkernel.xact;

/**
 * Ages at which vacuum freezes, in xids and multixacts.
 *
 * @param freezeMinAge rows older than this are frozen (vacuum_freeze_min_age)
 * @param freezeTableAge tables older than this are read whole (vacuum_freeze_table_age)
 */
public record FreezeSettings(
        int freezeMinAge,
        int freezeTableAge,
        int multixactFreezeMinAge,
        int multixactFreezeTableAge) {
    /** PostgreSQL's defaults. */
    public static final FreezeSettings DEFAULT =
            new FreezeSettings(50_000_000, 150_000_000, 5_000_000, 150_000_000);

    /** Everything that may be frozen is. (VACUUM FREEZE) */
    public static final FreezeSettings FREEZE = new FreezeSettings(0, 0, 0, 0);
}
