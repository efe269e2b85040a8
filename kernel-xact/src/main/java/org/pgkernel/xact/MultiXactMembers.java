package org.pgkernel.xact;

import org.agrona.DirectBuffer;
import org.agrona.ExpandableArrayBuffer;

/**
 * The members of a multixact: transactions with the strength of their lock. Reusable. Laid out as
 * the record that creates a multixact.
 *
 * <pre>
 *   multixact 4 | offset of the first member 4 | count 4 | each member: xid 4, status 4
 * </pre>
 *
 * (PostgreSQL: MultiXactMember, xl_multixact_create.)
 */
public final class MultiXactMembers {
    public static final int FOR_KEY_SHARE = 0;
    public static final int FOR_SHARE = 1;
    public static final int FOR_NO_KEY_UPDATE = 2;
    public static final int FOR_UPDATE = 3;
    public static final int NO_KEY_UPDATE = 4;
    public static final int UPDATE = 5;

    static final int HEADER = 12;
    static final int SIZE = 8;

    private final ExpandableArrayBuffer data = new ExpandableArrayBuffer(HEADER + 8 * SIZE);
    private int count;

    public int count() {
        return count;
    }

    public int xid(int member) {
        return data.getInt(HEADER + member * SIZE);
    }

    public int status(int member) {
        return data.getInt(HEADER + member * SIZE + 4);
    }

    /** True for a status of who changed the row, not only locked it. (ISUPDATE_from_mxstatus) */
    public static boolean isUpdate(int status) {
        return status > FOR_UPDATE;
    }

    /**
     * The lock whose conflicts are those of this strength. (PostgreSQL: tupleLockExtraInfo, hwlock,
     * heapam.c.)
     */
    public static LockMode lockMode(int status) {
        return switch (status) {
            case FOR_KEY_SHARE -> LockMode.ACCESS_SHARE;
            case FOR_SHARE -> LockMode.ROW_SHARE;
            case FOR_NO_KEY_UPDATE, NO_KEY_UPDATE -> LockMode.EXCLUSIVE;
            default -> LockMode.ACCESS_EXCLUSIVE;
        };
    }

    public MultiXactMembers clear() {
        count = 0;
        return this;
    }

    public MultiXactMembers add(int xid, int status) {
        assert status >= 0 && status <= MultiXactLog.MAX_STATUS : "there is no status " + status;
        data.putInt(HEADER + count * SIZE, xid);
        data.putInt(HEADER + count * SIZE + 4, status);
        count++;
        return this;
    }

    /** The main data of its record. */
    DirectBuffer record(int multi, int offset) {
        data.putInt(0, multi);
        data.putInt(4, offset);
        data.putInt(8, count);
        return data;
    }

    int recordLength() {
        return HEADER + count * SIZE;
    }
}
