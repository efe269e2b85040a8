package org.pgkernel.xact;

import org.pgkernel.base.TransactionId;

/**
 * Which transactions had ended at one moment.
 *
 * <pre>
 *   xid &lt; xmin           had ended
 *   xmin &lt;= xid &lt; xmax   had ended unless it is in xip, or in subxip
 *   xmax &lt;= xid          ran, or had not begun
 * </pre>
 *
 * With {@code suboverflowed} the subtransactions are not all in subxip: pg_subtrans tells their
 * top-level transaction, and that is looked for. The owner's own transactions are in none of them.
 *
 * <p>Belongs to one session and is filled again by each {@link TransactionSession#snapshot}: all
 * its memory is taken at once. It holds back the horizons until the session forgets its snapshots.
 * (PostgreSQL: SnapshotData, XidInMVCCSnapshot.)
 */
public final class Snapshot {
    /** No completion count is odd. */
    static final long NONE = -1;

    final int[] xip;
    final int[] subxip;
    int xmin;
    int xmax;
    int xcnt;
    int subxcnt;
    boolean suboverflowed;
    int curcid;

    /** The running table's count of completions when this was taken; {@link #NONE} if never. */
    long sequence = NONE;

    private final SubTransLog subTrans;

    Snapshot(SubTransLog subTrans, int slots, int cachedSubxids) {
        this.subTrans = subTrans;
        xip = new int[slots];
        subxip = new int[slots * cachedSubxids];
    }

    /** All before have ended. */
    public int xmin() {
        return xmin;
    }

    /** None from here on has ended. */
    public int xmax() {
        return xmax;
    }

    /** Commands of the own transaction before this one are seen. */
    public int curcid() {
        return curcid;
    }

    /** A later command of the same transaction uses it: commands before that one are seen. */
    public void curcid(int commandId) {
        curcid = commandId;
    }

    public boolean suboverflowed() {
        return suboverflowed;
    }

    /**
     * True if the transaction, or the one that it belongs to, ran when this was taken or had not
     * begun. What it became otherwise is pg_xact's to say; own transactions are the session's.
     */
    public boolean isRunning(int xid) {
        if (TransactionId.precedes(xid, xmin)) {
            return false;
        }
        if (TransactionId.followsOrEquals(xid, xmax)) {
            return true;
        }
        if (!suboverflowed) {
            return contains(subxip, subxcnt, xid) || contains(xip, xcnt, xid);
        }
        int top = subTrans.topmost(xid, xmin);
        return !TransactionId.precedes(top, xmin) && contains(xip, xcnt, top);
    }

    private static boolean contains(int[] xids, int count, int xid) {
        for (int i = 0; i < count; i++) {
            if (xids[i] == xid) {
                return true;
            }
        }
        return false;
    }

    /** Makes this what the other is; both are the same session's. (PostgreSQL: CopySnapshot.) */
    public void copyFrom(Snapshot other) {
        xmin = other.xmin;
        xmax = other.xmax;
        xcnt = other.xcnt;
        subxcnt = other.subxcnt;
        suboverflowed = other.suboverflowed;
        curcid = other.curcid;
        sequence = other.sequence;
        System.arraycopy(other.xip, 0, xip, 0, xcnt);
        System.arraycopy(other.subxip, 0, subxip, 0, subxcnt);
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(Integer.toUnsignedString(xmin));
        text.append(':').append(Integer.toUnsignedString(xmax)).append(':');
        for (int i = 0; i < xcnt; i++) {
            text.append(i == 0 ? "" : ",").append(Integer.toUnsignedString(xip[i]));
        }
        return text.append(suboverflowed ? " overflowed" : " +" + subxcnt).toString();
    }
}
