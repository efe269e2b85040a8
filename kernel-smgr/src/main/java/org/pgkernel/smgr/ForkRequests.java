package org.pgkernel.smgr;

import java.util.BitSet;

/** The segments of one fork that wait to be synced. Guarded by {@link SyncRequests}' lock. */
final class ForkRequests {
    final int spcOid;
    final int dbOid;
    final int relNumber;
    final int fork;

    /** One bit a segment. */
    final BitSet segments = new BitSet(1);

    ForkRequests(int spcOid, int dbOid, int relNumber, int fork) {
        this.spcOid = spcOid;
        this.dbOid = dbOid;
        this.relNumber = relNumber;
        this.fork = fork;
    }

    /** Cancels the segments from {@code first} on. @return how many had waited */
    int cancelFrom(int first) {
        int before = segments.cardinality();
        segments.clear(first, Math.max(first, segments.length()));
        return before - segments.cardinality();
    }
}
