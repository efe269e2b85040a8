package org.pgkernel.bufmgr;

import java.util.Arrays;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** A thread's arrays for a drop, kept from call to call, and what the call did. */
final class DropWork {
    private static final ThreadLocal<DropWork> WORK = ThreadLocal.withInitial(DropWork::new);

    /** Blocks of each relation's forks; {@link BlockNumber#INVALID} for a fork that does not exist. */
    int[] blocks = new int[64];

    /** Relation numbers in the high half, sorted, and indexes into the caller's array in the low half. */
    long[] sorted = new long[16];

    boolean scanned;
    long probes;

    private DropWork() {}

    static DropWork begin() {
        DropWork work = WORK.get();
        work.scanned = false;
        work.probes = 0;
        return work;
    }

    void ensureBlocks(int count) {
        if (blocks.length < count) {
            blocks = new int[Math.max(count, blocks.length * 2)];
        }
    }

    /** Fills and sorts {@link #sorted}. */
    void sort(SmgrRelation[] relations, int count) {
        if (sorted.length < count) {
            sorted = new long[Math.max(count, sorted.length * 2)];
        }
        for (int i = 0; i < count; i++) {
            sorted[i] = (long) relations[i].relNumber() << 32 | i;
        }
        Arrays.sort(sorted, 0, count);
    }

    /** The relation that a tag belongs to, by binary search in the first {@code count} of {@link #sorted}; null if none. */
    SmgrRelation find(SmgrRelation[] relations, int count, int spc, int db, int rel) {
        int low = 0;
        int high = count;
        while (low < high) {
            int middle = low + high >>> 1;
            if ((int) (sorted[middle] >> 32) < rel) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < count && (int) (sorted[low] >> 32) == rel; low++) {
            SmgrRelation relation = relations[(int) sorted[low]];
            if (relation.dbOid() == db && relation.spcOid() == spc) {
                return relation;
            }
        }
        return null;
    }

    int index(int relation, ForkNumber fork) {
        return relation * ForkNumber.COUNT + fork.ordinal();
    }
}
