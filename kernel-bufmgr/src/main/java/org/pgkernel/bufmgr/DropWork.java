package org.pgkernel.bufmgr;

import java.util.Arrays;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;

/** A thread's arrays for a drop, kept from call to call, and what the call did. */
final class DropWork {
    private static final int BSEARCH_THRESHOLD = FullScanDropper.BSEARCH_THRESHOLD;

    private static final ThreadLocal<DropWork> WORK = ThreadLocal.withInitial(DropWork::new);

    /**
     * Blocks of each relation's forks; {@link BlockNumber#INVALID} for a fork that does not exist.
     */
    int[] blocks = new int[64];

    /** The relations to drop, as plain numbers: a scan compares millions of tags with them. */
    int[] spcs = new int[16];

    int[] dbs = new int[16];
    int[] rels = new int[16];

    private long[] order = new long[16];

    /** Copy of a fork's list (DLIST). */
    int[] buffers = new int[64];

    /**
     * Forks that have pages in the pool (ADAPTIVE): where, from which block on, up to which, and
     * how many pages are left at most, and how many were thrown away that the fork's count still
     * has.
     */
    int forks;

    /**
     * {@link #FIELDS} ints a fork, together in one cache line: a drop of one page pays for each
     * line it touches.
     */
    private int[] forkFields = new int[64 * FIELDS];

    private static final int FIELDS = 9;

    private long[] forkOrder = new long[64];

    /** How many forks a drop may have met by a scan without having told their counts. */
    static final int MOST_UNTOLD = 16;

    /** These forks, by their numbers here. Any number of pages of each. */
    final int[] untoldForks = new int[MOST_UNTOLD];

    int untold;

    /** The forks' relations' fingerprints, each once: as bits and as numbers. */
    final long[] members = new long[1024];

    int[] fingerprints = new int[64];
    int fingerprintCount;

    /** Buffers whose fingerprints a scan has found and that are not looked at yet. */
    final int[] found = new int[BufferAllocator.TOUCHED_AT_ONCE];

    /** Hashes of some blocks. */
    final int[] hashes = new int[BufferAllocator.TOUCHED_AT_ONCE];

    /** First buffers of the buckets of some blocks: see {@link BufferAllocator#touch}. */
    final int[] heads = new int[BufferAllocator.TOUCHED_AT_ONCE];

    /** What the call did. */
    DropPath path;

    DropReason reason;
    DropStopReason stop;
    long probes;
    long bytesScanned;
    long collisions;

    private DropWork() {}

    static DropWork begin() {
        DropWork work = WORK.get();
        work.path = DropPath.NOTHING_RESIDENT;
        work.reason = DropReason.ONLY_WAY;
        work.stop = DropStopReason.NOTHING_TO_DO;
        work.probes = 0;
        work.bytesScanned = 0;
        work.collisions = 0;
        work.forks = 0;
        work.untold = 0;
        return work;
    }

    /**
     * @return 0, for the caller to return as the number of buffers dropped so far
     */
    int ended(DropPath path, DropStopReason stop) {
        this.path = path;
        this.stop = stop;
        return 0;
    }

    void ensureBlocks(int count) {
        if (blocks.length < count) {
            blocks = new int[Math.max(count, blocks.length * 2)];
        }
    }

    void ensureBuffers(int count) {
        if (buffers.length < count) {
            buffers = new int[Math.max(count, buffers.length * 2)];
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

    void addFork(int hash, int spc, int db, int rel, int fork, int first, int end, int pages) {
        if (forks == forkOrder.length) {
            growForks();
        }
        int at = forks * FIELDS;
        forkFields[at] = hash;
        forkFields[at + 1] = spc;
        forkFields[at + 2] = db;
        forkFields[at + 3] = rel;
        forkFields[at + 4] = fork;
        forkFields[at + 5] = first;
        forkFields[at + 6] = end;
        forkFields[at + 7] = pages;
        forkFields[at + 8] = 0;
        forks++;
    }

    int forkHash(int i) {
        return forkFields[i * FIELDS];
    }

    int forkSpc(int i) {
        return forkFields[i * FIELDS + 1];
    }

    int forkDb(int i) {
        return forkFields[i * FIELDS + 2];
    }

    int forkRel(int i) {
        return forkFields[i * FIELDS + 3];
    }

    int forkNumber(int i) {
        return forkFields[i * FIELDS + 4];
    }

    int first(int i) {
        return forkFields[i * FIELDS + 5];
    }

    int end(int i) {
        return forkFields[i * FIELDS + 6];
    }

    int left(int i) {
        return forkFields[i * FIELDS + 7];
    }

    /** One page of the fork was found by its block and thrown away. */
    void found(int i) {
        forkFields[i * FIELDS + 7]--;
        forkFields[i * FIELDS + 8]++;
    }

    /**
     * One page of the fork was found by a scan and thrown away. @return true when the counts of the
     * {@link #untoldForks} must be told now
     */
    boolean met(int i) {
        if (forkFields[i * FIELDS + 8]++ == 0) {
            untoldForks[untold++] = i;
        }
        return untold == MOST_UNTOLD;
    }

    /** Pages thrown away since this was asked last. */
    int takeGone(int i) {
        int gone = forkFields[i * FIELDS + 8];
        forkFields[i * FIELDS + 8] = 0;
        return gone;
    }

    private void growForks() {
        int length = forks * 2;
        forkFields = Arrays.copyOf(forkFields, length * FIELDS);
        forkOrder = new long[length];
        fingerprints = Arrays.copyOf(fingerprints, length);
    }

    /**
     * Keeps fork {@code from} as number {@code to}, not above it: forks that are done with are left
     * out so.
     */
    void moveFork(int from, int to) {
        System.arraycopy(forkFields, from * FIELDS, forkFields, to * FIELDS, FIELDS);
    }

    /** Collects the forks' relations' fingerprints and makes {@link #forkOf} ready. */
    void prepareScan(Fingerprints of) {
        while (fingerprintCount
                > 0) { // of the scan before; all 8 KiB would cost more than a small scan
            members[fingerprints[--fingerprintCount] >>> 6] = 0;
        }
        for (int i = 0; i < forks; i++) {
            int fingerprint = of.of(forkSpc(i), forkDb(i), forkRel(i));
            if ((members[fingerprint >>> 6] >>> fingerprint & 1) == 0) {
                members[fingerprint >>> 6] |= 1L << fingerprint;
                fingerprints[fingerprintCount++] = fingerprint;
            }
            forkOrder[i] = (long) forkRel(i) << 32 | i;
        }
        if (forks > BSEARCH_THRESHOLD) {
            Arrays.sort(forkOrder, 0, forks);
        }
    }

    /** The fork, by its number in this work, or -1. After {@link #prepareScan}. */
    int forkOf(int spc, int db, int rel, int fork) {
        for (int i = firstOf(rel); i < forks; i++) {
            int at = (int) forkOrder[i];
            if (forkRel(at) == rel
                    && forkNumber(at) == fork
                    && forkDb(at) == db
                    && forkSpc(at) == spc) {
                return at;
            }
            if (forks > BSEARCH_THRESHOLD && forkRel(at) != rel) {
                return -1;
            }
        }
        return -1;
    }

    /** True if any fork of the relation is in this work. */
    boolean hasRelation(int spc, int db, int rel) {
        for (int i = firstOf(rel); i < forks; i++) {
            int at = (int) forkOrder[i];
            if (forkRel(at) == rel && forkDb(at) == db && forkSpc(at) == spc) {
                return true;
            }
            if (forks > BSEARCH_THRESHOLD && forkRel(at) != rel) {
                return false;
            }
        }
        return false;
    }

    private int firstOf(int rel) {
        if (forks <= BSEARCH_THRESHOLD) {
            return 0;
        }
        int low = 0;
        int high = forks;
        while (low < high) {
            int middle = low + high >>> 1;
            if ((int) (forkOrder[middle] >> 32) < rel) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
}
