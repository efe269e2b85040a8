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

    /** The relations to drop, as plain numbers: a scan compares millions of tags with them. */
    int[] spcs = new int[16];

    int[] dbs = new int[16];
    int[] rels = new int[16];

    private long[] order = new long[16];

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

    /** Takes the relations' numbers over; by relation number, signed, if {@code sorted}. */
    void take(SmgrRelation[] relations, int count, boolean sorted) {
        if (rels.length < count) {
            int length = Math.max(count, rels.length * 2);
            spcs = new int[length];
            dbs = new int[length];
            rels = new int[length];
            order = new long[length];
        }
        for (int i = 0; i < count; i++) {
            order[i] = (long) relations[i].relNumber() << 32 | i;
        }
        if (sorted) {
            Arrays.sort(order, 0, count);
        }
        for (int i = 0; i < count; i++) {
            SmgrRelation relation = relations[(int) order[i]];
            spcs[i] = relation.spcOid();
            dbs[i] = relation.dbOid();
            rels[i] = relation.relNumber();
        }
    }

    int index(int relation, ForkNumber fork) {
        return relation * ForkNumber.COUNT + fork.ordinal();
    }
}
