package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;

/**
 * What a vacuum freezes. (PostgreSQL: vacuum_set_xid_limits, vacuum.c.)
 *
 * @param freezeLimit xids before it are frozen
 * @param multiXactCutoff multixacts before it are
 * @param tableAgeLimit a table whose oldest xid is not after it is read whole
 * @param multiXactTableAgeLimit the same for its oldest multixact
 * @param isFarBehind an old transaction keeps much from being frozen: worth a warning
 */
public record FreezeLimits(
        int freezeLimit,
        int multiXactCutoff,
        int tableAgeLimit,
        int multiXactTableAgeLimit,
        boolean isFarBehind) {
    static FreezeLimits of(
            FreezeSettings settings,
            int freezeMaxAge,
            int multixactFreezeMaxAge,
            int nextXid,
            int nextMulti,
            int oldestXmin,
            int oldestMulti) {
        int limit = xidBefore(oldestXmin, Math.min(settings.freezeMinAge(), freezeMaxAge / 2));
        boolean xidsBehind = TransactionId.precedes(limit, xidBefore(nextXid, freezeMaxAge));
        if (xidsBehind) {
            limit = oldestXmin;
        }
        int multiAge = Math.min(settings.multixactFreezeMinAge(), multixactFreezeMaxAge / 2);
        int cutoff = multiBefore(oldestMulti, multiAge);
        int safe = multiBefore(nextMulti, multixactFreezeMaxAge);
        boolean multisBehind = MultiXactLog.precedes(cutoff, safe);
        if (multisBehind) {
            cutoff = MultiXactLog.precedes(oldestMulti, safe) ? oldestMulti : safe;
        }
        int tableAge = Math.min(settings.freezeTableAge(), (int) (freezeMaxAge * 0.95));
        int multiTableAge =
                Math.min(settings.multixactFreezeTableAge(), (int) (multixactFreezeMaxAge * 0.95));
        return new FreezeLimits(
                limit,
                cutoff,
                xidBefore(nextXid, tableAge),
                multiBefore(nextMulti, multiTableAge),
                xidsBehind || multisBehind);
    }

    private static int xidBefore(int xid, int by) {
        int before = xid - by;
        return TransactionId.isNormal(before) ? before : TransactionId.FIRST_NORMAL;
    }

    private static int multiBefore(int multi, int by) {
        int before = multi - by;
        return before == 0 ? MultiXactLog.FIRST_MULTI : before;
    }

    /** True if the table must be read whole. */
    public boolean isAggressive(int relfrozenxid, int relminmxid) {
        return TransactionId.precedesOrEquals(relfrozenxid, tableAgeLimit)
                || relminmxid == multiXactTableAgeLimit
                || MultiXactLog.precedes(relminmxid, multiXactTableAgeLimit);
    }
}
