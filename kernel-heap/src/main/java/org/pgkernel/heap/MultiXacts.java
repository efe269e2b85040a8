package org.pgkernel.heap;

import java.util.Arrays;

/** What the heap asks about sets of transactions that share a row's xmax. */
public interface MultiXacts {
    int FOR_KEY_SHARE = 0;
    int FOR_SHARE = 1;
    int FOR_NO_KEY_UPDATE = 2;
    int FOR_UPDATE = 3;
    int NO_KEY_UPDATE = 4;
    int UPDATE = 5;

    /** Members of one multixact; reused, so that asking allocates nothing once it has grown. */
    final class Members {
        private int[] xids = new int[8];
        private int[] statuses = new int[8];
        private int count;

        public void clear() {
            count = 0;
        }

        public void add(int xid, int status) {
            if (count == xids.length) {
                xids = Arrays.copyOf(xids, 2 * count);
                statuses = Arrays.copyOf(statuses, 2 * count);
            }
            xids[count] = xid;
            statuses[count++] = status;
        }

        public int count() {
            return count;
        }

        public int xid(int i) {
            return xids[i];
        }

        public int status(int i) {
            return statuses[i];
        }

        /**
         * The member changed the row, it does not only lock it. (PostgreSQL:
         * ISUPDATE_from_mxstatus.)
         */
        public boolean isUpdate(int i) {
            return statuses[i] >= NO_KEY_UPDATE;
        }
    }

    /** Fills in the members. (PostgreSQL: GetMultiXactIdMembers.) */
    void members(int multi, Members into);

    /** A new multixact of these members. (PostgreSQL: MultiXactIdCreateFromMembers.) */
    int create(Members members);
}
