package org.pgkernel.bufmgr;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.UnsafeApi;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;

/**
 * The relation forks that have pages in the pool, each with a word for its user: a chained hash
 * table whose entries keep their number while they live, and a cache line each.
 *
 * <pre>
 *  entry   0          8      12     16     20     24         28           40        44        64
 *          +----------+------+------+------+------+----------+------------+---------+---------+
 *          | word     | spc  | db   | rel  | fork | next + 1 | 3 x 4 user | retired | unused  |
 *          +----------+------+------+------+------+----------+------------+---------+---------+
 *  bucket = hash &amp; (buckets - 1)     stripe = hash &amp; 127      heads[bucket] = entry + 1 or 0
 * </pre>
 *
 * A chain is changed under its stripe's lock, and looked through under it ({@link #find}) or
 * without ({@link #guess}): entries are reused, so a guess may be wrong or miss, and is confirmed
 * by the word (see {@link ResidentForks}).
 *
 * <p>An entry leaves its chain in one of two ways. {@link BufferLists} takes it out with the fork's
 * last page ({@link #unlink}, {@link #free}). {@link ResidentForks} leaves it where it is and only
 * notes that it has no pages ({@link #retire}): then a drop touches nothing but the entry and the
 * top of the stack of those, and who needs an entry next takes it out ({@link #takeRetired}). There
 * is never a new entry made while one is retired or unused, so memory touched grows with the forks
 * that were there at once, not with the pool: see {@link #capacity}.
 *
 * <p>The tops, the heads and the entries begin in one stretch of memory, so that a small pool's are
 * in one large system page.
 */
final class ForkTable {
    static final int STRIPES = 128;

    /**
     * Entries for forks that have lost their pages to drops that have not come to telling. Such a
     * page's buffer may have got another fork's page already, so they come on top of one a buffer.
     * A drop has {@link DropWork#MOST_UNTOLD} at most: enough for 4,096 drops at once.
     */
    static final int UNTOLD = 4096 * DropWork.MOST_UNTOLD;

    /**
     * Entries that threads have on their way in or out: each has a mapping partition locked, or is
     * a drop and counted above.
     */
    private static final int ON_THE_WAY = BufferTable.PARTITIONS;

    private static final int MOST_BUCKETS = 1 << 20;
    private static final int ENTRY_SHIFT = 6;
    private static final int SPC = 8;
    private static final int DB = 12;
    private static final int REL = 16;
    private static final int FORK = 20;

    /** Next entry + 1 of its chain, or of the unused entries. */
    private static final int NEXT = 24;

    private static final int USER = 28;

    /** Next entry + 1 of the retired ones. */
    private static final int RETIRED = 40;

    /**
     * At {@link #memory}: a stack's top entry + 1, or 0; above it a version, so that a late
     * compare-and-set fails.
     */
    private static final int RETIRED_TOP = 0;

    private static final int UNUSED_TOP = 8;
    private static final int HEADS = 64;

    /** Beside a stripe's lock word: its spare entry + 1, or 0. Under that lock. */
    private static final int SPARE = 8;

    /** A chain is hardly ever longer; a guess that got lost among reused entries stops here. */
    private static final int GUESS_STEPS = 64;

    private final int capacity;
    private final int mask;

    /** Tops of the stacks, then heads of the chains, then entries. 0 once released. */
    private long memory;

    private long entries;

    private final LockTable locks;

    /** The stripes' cache lines: the lock's word, then {@link #SPARE}. */
    private final UnsafeBuffer stripes;

    /** Entries from here on were never used. */
    private final AtomicInteger highWater = new AtomicInteger();

    ForkTable(NativeArrays arrays, int nbuffers) {
        capacity = capacity(nbuffers);
        int buckets = Math.max(STRIPES, Math.min(MOST_BUCKETS, Integer.highestOneBit(nbuffers)));
        mask = buckets - 1;
        long heads = HEADS + buckets * 4L;
        memory = arrays.reserveAddress(heads + ((long) capacity << ENTRY_SHIFT));
        entries = memory + heads;
        stripes = arrays.reserve(STRIPES << PoolMemory.PARTITION_LOCK_SHIFT);
        locks =
                new LockTable(
                        stripes,
                        PoolMemory.PARTITION_LOCK_SHIFT,
                        new WaitTable(STRIPES),
                        LockRank.FORK_STRIPE);
    }

    /** The most entries there can be: each stripe may keep one for itself. */
    static int capacity(int nbuffers) {
        return nbuffers + STRIPES + ON_THE_WAY + UNTOLD;
    }

    private long address(int entry) {
        assert Integer.compareUnsigned(entry, capacity) < 0 : "no such entry";
        return entries + ((long) entry << ENTRY_SHIFT);
    }

    /** All ways to an entry begin here, so who comes after the release gets an error, no crash. */
    private long head(int hash) {
        if (memory == 0) {
            throw new IndexOutOfBoundsException("the pool is closed");
        }
        return memory + HEADS + ((hash & mask) << 2);
    }

    /** The memory is given back. */
    void released() {
        memory = 0;
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
        return UnsafeApi.getIntVolatile(null, head(hash)) == 0;
    }

    /**
     * Which of a relation's forks have chains that are not empty: for each a bit, that of the
     * fork's number exclusive or {@code relationHash & 3}. Forks without a bit are certainly not
     * here.
     */
    int present(int relationHash) {
        long heads = head(relationHash & -ForkNumber.COUNT);
        long low = UnsafeApi.getLongVolatile(null, heads);
        long high = UnsafeApi.getLongVolatile(null, heads + 8);
        return ((int) low == 0 ? 0 : 1)
                | (low >>> 32 == 0 ? 0 : 2)
                | ((int) high == 0 ? 0 : 4)
                | (high >>> 32 == 0 ? 0 : 8);
    }

    /** Under the stripe's lock. @return the fork's entry, or -1 */
    int find(int hash, int spc, int db, int rel, int fork) {
        assert locks.heldExclusivelyByMe(hash & STRIPES - 1) : "forks searched without the lock";
        int entry = UnsafeApi.getInt(head(hash)) - 1;
        while (entry >= 0 && !isOf(entry, spc, db, rel, fork)) {
            entry = UnsafeApi.getInt(address(entry) + NEXT) - 1;
        }
        return entry;
    }

    /**
     * Without a lock. @return an entry that looked like the fork's, or -1, which proves nothing. It
     * was in a chain at some moment since the call began, though perhaps under another name.
     */
    int guess(int hash, int spc, int db, int rel, int fork) {
        int entry = UnsafeApi.getIntVolatile(null, head(hash)) - 1;
        for (int steps = 0; entry >= 0 && steps < GUESS_STEPS; steps++) {
            if (isOf(entry, spc, db, rel, fork)) {
                return entry;
            }
            entry = UnsafeApi.getIntVolatile(null, address(entry) + NEXT) - 1;
        }
        return -1;
    }

    /**
     * Under the stripe's lock: gives a fork that has none this entry, which nobody else has. Its
     * word is what its last user left.
     */
    void insert(int entry, int hash, int spc, int db, int rel, int fork) {
        long address = address(entry);
        UnsafeApi.putInt(address + SPC, spc);
        UnsafeApi.putInt(address + DB, db);
        UnsafeApi.putInt(address + REL, rel);
        UnsafeApi.putInt(address + FORK, fork);
        long head = head(hash);
        UnsafeApi.putIntVolatile(null, address + NEXT, UnsafeApi.getInt(head));
        UnsafeApi.putIntVolatile(null, head, entry + 1);
    }

    /** Under the stripe's lock: takes the entry out of its chain. Nobody else has it then. */
    void unlink(int hash, int entry) {
        int after = UnsafeApi.getInt(address(entry) + NEXT);
        long head = head(hash);
        int link = UnsafeApi.getInt(head);
        if (link == entry + 1) {
            UnsafeApi.putIntRelease(null, head, after);
            return;
        }
        int before = link - 1;
        while ((link = UnsafeApi.getInt(address(before) + NEXT)) != entry + 1) {
            assert link != 0 : "fork not in its chain";
            before = link - 1;
        }
        UnsafeApi.putIntRelease(null, address(before) + NEXT, after);
    }

    /**
     * Under a stripe's lock: the entry, which is in no chain, may be used for another fork. Each
     * stripe keeps one to itself: forks of one page come and go without a compare-and-set more.
     */
    void free(int hash, int entry) {
        int spare = spare(hash);
        int before = stripes.getInt(spare) - 1;
        stripes.putInt(spare, entry + 1);
        if (before >= 0) {
            push(UNUSED_TOP, NEXT, before);
        }
    }

    /** Under a stripe's lock: an entry that is in no chain, and now nobody else's. */
    int take(int hash) {
        int spare = spare(hash);
        int entry = stripes.getInt(spare) - 1;
        if (entry >= 0) {
            stripes.putInt(spare, 0);
            return entry;
        }
        entry = pop(UNUSED_TOP, NEXT);
        if (entry < 0) {
            entry = highWater.getAndIncrement();
            assert entry < capacity : "more forks than buffers";
        }
        return entry;
    }

    private static int spare(int hash) {
        return ((hash & STRIPES - 1) << PoolMemory.PARTITION_LOCK_SHIFT) + SPARE;
    }

    /**
     * Without a lock: the entry stays in its chain, but who needs another may have it. Not twice
     * before it was given to somebody.
     */
    void retire(int entry) {
        push(RETIRED_TOP, RETIRED, entry);
    }

    boolean anyRetired() {
        return (int) UnsafeApi.getLongVolatile(null, memory + RETIRED_TOP) != 0;
    }

    /**
     * Without a lock: the entry retired last, still in its chain, which nobody else takes out of it
     * now; or -1.
     */
    int takeRetired() {
        return pop(RETIRED_TOP, RETIRED);
    }

    private void push(int top, int field, int entry) {
        for (; ; ) {
            long now = UnsafeApi.getLongVolatile(null, memory + top);
            UnsafeApi.putIntRelease(null, address(entry) + field, (int) now);
            if (UnsafeApi.compareAndSetLong(null, memory + top, now, version(now) | entry + 1)) {
                return;
            }
        }
    }

    private int pop(int top, int field) {
        for (; ; ) {
            long now = UnsafeApi.getLongVolatile(null, memory + top);
            int entry = (int) now - 1;
            if (entry < 0) {
                return -1;
            }
            int next = UnsafeApi.getIntVolatile(null, address(entry) + field);
            if (UnsafeApi.compareAndSetLong(null, memory + top, now, version(now) | next)) {
                return entry;
            }
        }
    }

    private static long version(long top) {
        return (top >>> 32) + 1 << 32;
    }

    boolean isOf(int entry, int spc, int db, int rel, int fork) {
        long address = address(entry);
        return UnsafeApi.getInt(address + REL) == rel
                && UnsafeApi.getInt(address + FORK) == fork
                && UnsafeApi.getInt(address + DB) == db
                && UnsafeApi.getInt(address + SPC) == spc;
    }

    int spc(int entry) {
        return UnsafeApi.getInt(address(entry) + SPC);
    }

    int db(int entry) {
        return UnsafeApi.getInt(address(entry) + DB);
    }

    int rel(int entry) {
        return UnsafeApi.getInt(address(entry) + REL);
    }

    int fork(int entry) {
        return UnsafeApi.getInt(address(entry) + FORK);
    }

    int hash(int entry) {
        return hash(spc(entry), db(entry), rel(entry), fork(entry));
    }

    /** The user's ints are number 0 to 2, and never changed here. */
    int user(int entry, int number) {
        return UnsafeApi.getIntVolatile(null, address(entry) + USER + number * 4);
    }

    void user(int entry, int number, int value) {
        UnsafeApi.putIntRelease(null, address(entry) + USER + number * 4, value);
    }

    boolean compareAndSetUser(int entry, int number, int from, int to) {
        return UnsafeApi.compareAndSetInt(null, address(entry) + USER + number * 4, from, to);
    }

    long word(int entry) {
        return UnsafeApi.getLongVolatile(null, address(entry));
    }

    void word(int entry, long word) {
        UnsafeApi.putLongVolatile(null, address(entry), word);
    }

    boolean compareAndSetWord(int entry, long from, long to) {
        return UnsafeApi.compareAndSetLong(null, address(entry), from, to);
    }

    // For the inspection of a pool at rest.

    /** The entries in chains. */
    BitSet chained() {
        BitSet entries = new BitSet();
        for (int bucket = 0; bucket <= mask; bucket++) {
            for (int entry = UnsafeApi.getInt(head(bucket)) - 1;
                    entry >= 0;
                    entry = UnsafeApi.getInt(address(entry) + NEXT) - 1) {
                assert !entries.get(entry) : "a fork's entry is in two chains, or twice in one";
                entries.set(entry);
            }
        }
        return entries;
    }

    /** The retired entries. */
    BitSet retired() {
        BitSet entries = new BitSet();
        for (int entry = (int) UnsafeApi.getLongVolatile(null, memory + RETIRED_TOP) - 1;
                entry >= 0;
                entry = UnsafeApi.getInt(address(entry) + RETIRED) - 1) {
            assert !entries.get(entry) : "a fork's entry was retired twice";
            entries.set(entry);
        }
        return entries;
    }

    /** Entries that were ever used: as many as were needed at once. */
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
