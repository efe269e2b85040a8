package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;

/**
 * How far xids may go, given the oldest one that is not frozen everywhere.
 *
 * <pre>
 *   oldest ... vacuum ........ warn .......... stop ....... wrap = oldest + 2^31 - 1
 *              +freezeMaxAge   wrap - 40,000,000   wrap - 3,000,000
 * </pre>
 *
 * From {@code vacuum} on a vacuum is asked for, from {@code warn} on each assignment warns, from
 * {@code stop} on none is made. Every limit is a normal xid. (PostgreSQL: SetTransactionIdLimit,
 * varsup.c.)
 */
record XidLimits(int oldest, int database, int vacuum, int warn, int stop, int wrap) {
    static final int DEFAULT_FREEZE_MAX_AGE = 200_000_000;

    private static final int WARN_BEFORE = 40_000_000;
    private static final int STOP_BEFORE = 3_000_000;

    static XidLimits of(int oldest, int database, int freezeMaxAge) {
        assert TransactionId.isNormal(oldest);
        int wrap = after(oldest, Integer.MAX_VALUE);
        return new XidLimits(
                oldest,
                database,
                after(oldest, freezeMaxAge),
                before(wrap, WARN_BEFORE),
                before(wrap, STOP_BEFORE),
                wrap);
    }

    private static int after(int xid, int by) {
        int sum = xid + by;
        return TransactionId.isNormal(sum) ? sum : sum + TransactionId.FIRST_NORMAL;
    }

    private static int before(int xid, int by) {
        int difference = xid - by;
        return TransactionId.isNormal(difference)
                ? difference
                : difference - TransactionId.FIRST_NORMAL;
    }

    boolean vacuumNeeded(int xid) {
        return TransactionId.followsOrEquals(xid, vacuum);
    }

    boolean mustWarn(int xid) {
        return TransactionId.followsOrEquals(xid, warn);
    }

    boolean mustStop(int xid) {
        return TransactionId.followsOrEquals(xid, stop);
    }
}
