package org.pgkernel.base;

/**
 * Transaction ids: unsigned 32-bit numbers that wrap, carried as {@code int}; full ids carry the
 * epoch in the upper half of a {@code long}.
 *
 * <p>Normal ids are ordered modulo 2^32; the three special ids come before every normal one.
 * (PostgreSQL: transam.h, transam.c.)
 */
public final class TransactionId {
    public static final int INVALID = 0;
    public static final int BOOTSTRAP = 1;
    public static final int FROZEN = 2;
    public static final int FIRST_NORMAL = 3;

    private TransactionId() {}

    public static boolean isValid(int xid) {
        return xid != INVALID;
    }

    public static boolean isNormal(int xid) {
        return Integer.compareUnsigned(xid, FIRST_NORMAL) >= 0;
    }

    /**
     * True if {@code a} is logically earlier than {@code b}. (PostgreSQL: TransactionIdPrecedes.)
     */
    public static boolean precedes(int a, int b) {
        if (!isNormal(a) || !isNormal(b)) {
            return Integer.compareUnsigned(a, b) < 0;
        }
        return a - b < 0;
    }

    public static boolean precedesOrEquals(int a, int b) {
        return a == b || precedes(a, b);
    }

    public static boolean follows(int a, int b) {
        return precedes(b, a);
    }

    public static boolean followsOrEquals(int a, int b) {
        return a == b || precedes(b, a);
    }

    /** The next id, skipping the special ones. (PostgreSQL: TransactionIdAdvance.) */
    public static int advance(int xid) {
        int next = xid + 1;
        return isNormal(next) ? next : FIRST_NORMAL;
    }

    /** The previous id, skipping the special ones. (PostgreSQL: TransactionIdRetreat.) */
    public static int retreat(int xid) {
        int previous = xid - 1;
        while (!isNormal(previous)) {
            previous--;
        }
        return previous;
    }

    public static int xidOf(long fullXid) {
        return (int) fullXid;
    }

    public static int epochOf(long fullXid) {
        return (int) (fullXid >>> 32);
    }

    public static long full(int epoch, int xid) {
        return Integer.toUnsignedLong(epoch) << 32 | Integer.toUnsignedLong(xid);
    }

    /**
     * The smallest full next-xid that is past {@code xid}, given the present one: {@code nextFull}
     * itself when {@code xid} precedes it. (PostgreSQL: AdvanceNextFullTransactionIdPastXid,
     * varsup.c.)
     */
    public static long advancePast(long nextFull, int xid) {
        int next = xidOf(nextFull);
        if (!isNormal(xid) || !followsOrEquals(xid, next)) {
            return nextFull;
        }
        int epoch = epochOf(nextFull);
        int advanced = advance(xid);
        if (Integer.compareUnsigned(advanced, next) < 0) {
            epoch++;
        }
        return full(epoch, advanced);
    }
}
