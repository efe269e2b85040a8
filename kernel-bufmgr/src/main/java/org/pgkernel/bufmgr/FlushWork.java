package org.pgkernel.bufmgr;

import org.pgkernel.smgr.SmgrRelation;

/** A thread's arrays for a flush, kept from call to call, and what the call did. */
final class FlushWork {
    private static final ThreadLocal<FlushWork> WORK = ThreadLocal.withInitial(FlushWork::new);

    /** Dirty buffers found. Tests put another in its place. */
    WriteOrder order = new WriteOrder();

    /** The victims: relations, sorted by number, and their forks with pages in the pool. */
    DropWork victims;

    /** How many relations; -1: a whole database is the victim. */
    int relations;

    int db;
    long probes;
    long dirtySeen;
    long bytesScanned;

    private FlushWork() {}

    private static FlushWork begin() {
        FlushWork work = WORK.get();
        work.order.clear();
        work.victims = DropWork.begin();
        work.probes = 0;
        work.dirtySeen = 0;
        work.bytesScanned = 0;
        return work;
    }

    static FlushWork of(SmgrRelation[] relations, int count) {
        FlushWork work = begin();
        work.relations = count;
        work.victims.take(relations, count, true);
        return work;
    }

    static FlushWork ofDatabase(int db) {
        FlushWork work = begin();
        work.relations = -1;
        work.db = db;
        return work;
    }

    /** True if the tag names a victim's page. */
    boolean isVictim(int spc, int db, int rel) {
        if (relations < 0) {
            return db == this.db;
        }
        int[] rels = victims.rels;
        int low = 0;
        int high = relations;
        while (low < high) {
            int middle = low + high >>> 1;
            if (rels[middle] < rel) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < relations && rels[low] == rel; low++) {
            if (victims.dbs[low] == db && victims.spcs[low] == spc) {
                return true;
            }
        }
        return false;
    }
}
