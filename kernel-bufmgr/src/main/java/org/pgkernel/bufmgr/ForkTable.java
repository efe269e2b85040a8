package org.pgkernel.bufmgr;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.LockRank;

/**
 * The relation forks that have pages in the pool, each with a word for its user: a chained hash
 * table whose entries keep their number while they live. An entry is made for a fork's first page
 * and removed with its last, so there are never more than buffers, but for the spare one of each
 * stripe and for forks whose last page a drop has thrown away and not told yet ({@link #UNTOLD}).
 *
 * <pre>
 *  entry   0          8      12     16     20     24        links  0          4              16
 *          +----------+------+------+------+------+                +----------+--------------+
 *          | word     | spc  | db   | rel  | fork |                | entry + 1| user's ints  |
 *          +----------+------+------+------+------+                +----------+--------------+
 *  bucket = hash &amp; (buckets - 1)     stripe = hash &amp; 127      heads[bucket] = entry + 1 or 0
 * </pre>
 *
 * A chain is changed under its stripe's lock, and looked through under it ({@link #find}) or
 * without ({@link #guess}): entries are reused, so a guess may be wrong or miss, and is confirmed
 * by the word (see {@link ResidentForks}). Unused entries are numbered densely and reused last in,
 * first out, so memory touched grows with the forks that were there at once, not with the pool.
 * Each stripe keeps the last one to itself, beside its lock: forks of one page come and go without
 * a compare-and-set more.
 */
final class ForkTable {
    static final int STRIPES = 128;

    /**
     * Entries for forks that have lost their pages to drops that have not come to telling. Such a
     * page's buffer may have got another fork's page already, so they come on top of one a buffer.
     * A drop has {@link DropWork#MOST_UNTOLD} at most: enough for 4,096 drops at once.
     */
    static final int UNTOLD = 4096 * DropWork.MOST_UNTOLD;

    private static final int MOST_BUCKETS = 1 << 20;
    private static final int ENTRY = 24;
    private static final int SPC = 8;
    private static final int DB = 12;
    private static final int REL = 16;
    private static final int FORK = 20;

    /** Beside a stripe's lock word: its spare entry + 1, or 0. Under that lock. */
    private static final int SPARE = 8;

    /**
     * Distance of two links: together with what the user keeps there, a quarter of a cache line.
     */
    private static final int LINK_SHIFT = 4;

    /** A chain is hardly ever longer; a guess that got lost among reused entries stops here. */
    private static final int GUESS_STEPS = 64;

    private final int capacity;
    private final int mask;
    private final UnsafeBuffer entries;

    /** Links of chains, and of the unused entries; beside each three ints for the user. */
    private final UnsafeBuffer links;

    private final UnsafeBuffer heads;
    private final LockTable locks;

    /** The stripes' cache lines: the lock's word, then {@link #SPARE}. */
    private final UnsafeBuffer stripes;

    /** Entries from here on were never used. */
    private final AtomicInteger highWater = new AtomicInteger();

    /**
     * First unused entry plus 1, or 0; above it a version, so that a late compare-and-set fails.
     */
    private final AtomicLong unused = new AtomicLong();

    ForkTable(NativeArrays memory, int nbuffers) {
        capacity = capacity(nbuffers);
        int buckets = Math.max(STRIPES, Math.min(MOST_BUCKETS, Integer.highestOneBit(nbuffers)));
        mask = buckets - 1;
        entries = memory.reserve((long) capacity * ENTRY);
        links = memory.reserve((long) capacity << LINK_SHIFT);
        heads = memory.reserve((long) buckets * 4);
        stripes = memory.reserve(STRIPES << PoolMemory.PARTITION_LOCK_SHIFT);
        locks =
                new LockTable(
                        stripes,
                        PoolMemory.PARTITION_LOCK_SHIFT,
                        new WaitTable(STRIPES),
                        LockRank.FORK_STRIPE);
    }

    /** The most entries there can be: each stripe may keep one for itself. */
    static int capacity(int nbuffers) {
        return nbuffers + STRIPES + UNTOLD;
    }

    static int hash(int spc, int db, int rel, int fork) {
        return hash(relationHash(spc, db, rel), fork);
    }

    static int relationHash(int spc, int db, int rel) {
        return BufferTag.hash(spc, db, rel, 0, 0);
    }

    /**
     * A relation's four forks have neighbouring buckets, in one cache line: a drop asks for all of
     * them.
     */
    static int hash(int relationHash, int fork) {
        return relationHash ^ fork;
    }

    void lock(int hash) {
        locks.lockExclusive(hash & STRIPES - 1);
    }

    void unlock(int hash) {
        locks.unlock(hash & STRIPES - 1);
    }

    /** True if the fork is certainly not here: its chain is empty. */
    boolean isEmpty(int hash) {
        return heads.getIntVolatile((hash & mask) << 2) == 0;
    }

    /** Under the stripe's lock. @return the fork's entry, or -1 */
    int find(int hash, int spc, int db, int rel, int fork) {
        assert locks.heldExclusivelyByMe(hash & STRIPES - 1) : "forks searched without the lock";
        int entry = heads.getInt((hash & mask) << 2) - 1;
        while (entry >= 0 && !isOf(entry, spc, db, rel, fork)) {
            entry = links.getInt(entry << LINK_SHIFT) - 1;
        }
        return entry;
    }

    /** Without a lock. @return the first entry of the chain now, or -1 */
    int first(int hash) {
        return heads.getIntVolatile((hash & mask) << 2) - 1;
    }

    /** Without a lock. @return an entry that looked like the fork's, or -1, which proves nothing */
    int guess(int hash, int spc, int db, int rel, int fork) {
        int entry = heads.getIntVolatile((hash & mask) << 2) - 1;
        for (int steps = 0; entry >= 0 && steps < GUESS_STEPS; steps++) {
            if (isOf(entry, spc, db, rel, fork)) {
                return entry;
            }
            entry = links.getIntVolatile(entry << LINK_SHIFT) - 1;
        }
        return -1;
    }

    /**
     * Under the stripe's lock: a new entry for a fork that has none. Its word is what its last user
     * left.
     */
    int insert(int hash, int spc, int db, int rel, int fork) {
        int entry = take(hash);
        int offset = entry * ENTRY;
        entries.putInt(offset + SPC, spc);
        entries.putInt(offset + DB, db);
        entries.putInt(offset + REL, rel);
        entries.putInt(offset + FORK, fork);
        int head = (hash & mask) << 2;
        links.putIntVolatile(entry << LINK_SHIFT, heads.getInt(head));
        heads.putIntVolatile(head, entry + 1);
        return entry;
    }

    /** Under the stripe's lock: takes the entry out of its chain. {@link #free} it afterwards. */
    void unlink(int hash, int entry) {
        int after = links.getInt(entry << LINK_SHIFT);
        int head = (hash & mask) << 2;
        int link = heads.getInt(head);
        if (link == entry + 1) {
            heads.putIntRelease(head, after);
            return;
        }
        int before = link - 1;
        while ((link = links.getInt(before << LINK_SHIFT)) != entry + 1) {
            assert link != 0 : "fork not in its chain";
            before = link - 1;
        }
        links.putIntRelease(before << LINK_SHIFT, after);
    }

    /** Under the stripe's lock: the entry may be used for another fork from now on. */
    void free(int hash, int entry) {
        int spare = spare(hash);
        int before = stripes.getInt(spare) - 1;
        stripes.putInt(spare, entry + 1);
        if (before >= 0) {
            giveBack(before);
        }
    }

    private static int spare(int hash) {
        return ((hash & STRIPES - 1) << PoolMemory.PARTITION_LOCK_SHIFT) + SPARE;
    }

    private void giveBack(int entry) {
        for (; ; ) {
            long top = unused.get();
            links.putIntRelease(entry << LINK_SHIFT, (int) top);
            if (unused.compareAndSet(top, version(top) | entry + 1)) {
                return;
            }
        }
    }

    private int take(int hash) {
        int spare = spare(hash);
        int entry = stripes.getInt(spare) - 1;
        if (entry < 0) {
            return takeShared();
        }
        stripes.putInt(spare, 0);
        return entry;
    }

    private int takeShared() {
        for (; ; ) {
            long top = unused.get();
            int entry = (int) top - 1;
            if (entry < 0) {
                int fresh = highWater.getAndIncrement();
                assert fresh < capacity : "more forks than buffers";
                return fresh;
            }
            if (unused.compareAndSet(
                    top, version(top) | links.getIntVolatile(entry << LINK_SHIFT))) {
                return entry;
            }
        }
    }

    private static long version(long top) {
        return (top >>> 32) + 1 << 32;
    }

    boolean isOf(int entry, int spc, int db, int rel, int fork) {
        int offset = entry * ENTRY;
        return entries.getInt(offset + REL) == rel
                && entries.getInt(offset + FORK) == fork
                && entries.getInt(offset + DB) == db
                && entries.getInt(offset + SPC) == spc;
    }

    int spc(int entry) {
        return entries.getInt(entry * ENTRY + SPC);
    }

    int db(int entry) {
        return entries.getInt(entry * ENTRY + DB);
    }

    int rel(int entry) {
        return entries.getInt(entry * ENTRY + REL);
    }

    int fork(int entry) {
        return entries.getInt(entry * ENTRY + FORK);
    }

    /**
     * Where the user's ints of the entry begin in {@link #links()}: three, 4 bytes each, never
     * changed here.
     */
    static int userOffset(int entry) {
        return (entry << LINK_SHIFT) + 4;
    }

    UnsafeBuffer links() {
        return links;
    }

    long word(int entry) {
        return entries.getLongVolatile(entry * ENTRY);
    }

    void word(int entry, long word) {
        entries.putLongVolatile(entry * ENTRY, word);
    }

    boolean compareAndSetWord(int entry, long from, long to) {
        return entries.compareAndSetLong(entry * ENTRY, from, to);
    }

    /** Forks that have an entry; for the inspection of a pool at rest. */
    int size() {
        int size = 0;
        for (int bucket = 0; bucket <= mask; bucket++) {
            for (int entry = heads.getInt(bucket << 2) - 1;
                    entry >= 0;
                    entry = links.getInt(entry << LINK_SHIFT) - 1) {
                size++;
                assert size <= capacity : "loop in a chain of forks";
            }
        }
        return size;
    }

    /** Entries ever in use at once, as far as memory tells; for the inspection. */
    int entriesTouched() {
        return highWater.get();
    }

    boolean anyLockHeld() {
        for (int i = 0; i < STRIPES; i++) {
            if (locks.isHeld(i)) {
                return true;
            }
        }
        return false;
    }
}
