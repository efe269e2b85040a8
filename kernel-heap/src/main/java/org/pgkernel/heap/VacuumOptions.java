package org.pgkernel.heap;

import org.pgkernel.xact.FreezeSettings;

/**
 * How a table is vacuumed.
 *
 * @param freeze ages from which on rows are frozen, and tables read whole
 * @param truncate pages without rows at the end are given back, when it is worth the lock
 * @param skipPages pages that need no visit are passed over; false reads and freezes as if the
 *     table were as old as can be (DISABLE_PAGE_SKIPPING)
 * @param indexes what is done about dead line pointers of a table with indexes
 * @param deadTuples how many dead line pointers are remembered before indexes are cleaned; what
 *     maintenance_work_mem has room for, at 6 bytes each
 * @param failsafeAge age of the table, in xids or multixacts, from which on nothing counts but to
 *     get through: no indexes, no truncation (vacuum_failsafe_age)
 */
public record VacuumOptions(
        FreezeSettings freeze,
        boolean truncate,
        boolean skipPages,
        Indexes indexes,
        int deadTuples,
        int failsafeAge) {
    /** (PostgreSQL: INDEX_CLEANUP.) */
    public enum Indexes {
        /** Cleaned, unless it is hardly worth it. */
        AUTO,
        /** Cleaned. */
        ON,
        /** Left alone; dead line pointers stay. */
        OFF
    }

    /** PostgreSQL's defaults: 64 MB for dead line pointers. */
    public static final VacuumOptions DEFAULT =
            new VacuumOptions(
                    FreezeSettings.DEFAULT,
                    true,
                    true,
                    Indexes.AUTO,
                    64 * 1024 * 1024 / 6,
                    1_600_000_000);

    public VacuumOptions withFreeze(FreezeSettings settings) {
        return new VacuumOptions(settings, truncate, skipPages, indexes, deadTuples, failsafeAge);
    }

    public VacuumOptions withTruncate(boolean on) {
        return new VacuumOptions(freeze, on, skipPages, indexes, deadTuples, failsafeAge);
    }

    public VacuumOptions withSkipPages(boolean on) {
        return new VacuumOptions(freeze, truncate, on, indexes, deadTuples, failsafeAge);
    }

    public VacuumOptions withIndexes(Indexes what) {
        return new VacuumOptions(freeze, truncate, skipPages, what, deadTuples, failsafeAge);
    }

    public VacuumOptions withDeadTuples(int most) {
        return new VacuumOptions(freeze, truncate, skipPages, indexes, most, failsafeAge);
    }

    public VacuumOptions withFailsafeAge(int age) {
        return new VacuumOptions(freeze, truncate, skipPages, indexes, deadTuples, age);
    }
}
