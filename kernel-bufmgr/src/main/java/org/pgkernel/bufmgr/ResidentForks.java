package org.pgkernel.bufmgr;

import java.util.BitSet;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * ADAPTIVE's bookkeeping: for each relation fork with pages in the pool, how many there are and a
 * block number that none of them reaches; the forks of each database in a list; and the buffers'
 * {@link Fingerprints}.
 *
 * <p>The count is what a drop rests on: 0 proves that nothing is left. It is never too low, see
 * {@link ResidencyTracker}. The end makes sizes unnecessary: whatever a file's size may be, or is
 * believed to be, no page at or past the end is here. It rises when a page is mapped, falls when
 * the fork is truncated, and begins anew with the first page after a time without any.
 *
 * <pre>
 *  word of an entry   63          32   31       30      0       user's ints   0      1           2
 *                     +-------------+---------+----------+                    +-----+-----------+-------------+
 *                     | generation  | retired | pages    |                    | end | database's next, before |
 *                     +-------------+---------+----------+                    +-----+-----------+-------------+
 * </pre>
 *
 * A count goes down, and one above 0 up, by one CAS without a lock; going to 0 makes a new
 * generation. From 0 to 1 it goes under the stripe's lock. So who has read a word, then found the
 * fork's name in the entry, and whose CAS on that word succeeds, has counted the right fork: had
 * the entry been reused in between, the generation would be another. And who has counted a page
 * keeps the entry the fork's until that page is unmapped.
 *
 * <p>A fork that loses its last page keeps its entry, in its chain and its database's list, but the
 * entry is retired: the same CAS sets the bit, and if it was not set before, the entry is put on
 * {@link ForkTable}'s stack. When a new fork needs an entry, it takes the one on the stack's top
 * ({@link #reclaim}). If that fork has pages again meanwhile, only the bit is cleared, and the
 * entry is put on the stack anew when it loses them; if not, the entry is taken out of its chain
 * and list, with a new generation. Both under the lock of that fork's stripe, without which no
 * count leaves 0. So an entry is on the stack once at most, each entry without pages is there or on
 * its way, and a drop is not charged for taking its victims out of chain and list.
 *
 * <p>A database has a list a stripe, so that the lock is held already where a fork comes or goes.
 * It ranks after the mapping partitions. (Not in PostgreSQL.)
 */
non-sealed class ResidentForks implements ResidencyTracker {
    /**
     * Databases are told apart by so many lists each stripe has; those that share a list are looked
     * through together.
     */
    private static final int DATABASES = 128;

    /** In a word: the entry is on the stack of retired ones. */
    private static final long RETIRED = 1L << 31;

    // The user's ints of an entry.

    /** Changed by CAS: up by who has counted a page there, down under the stripe's lock. */
    private static final int END = 0;

    /** Under the stripe's lock, as {@link #BEFORE}. */
    private static final int NEXT = 1;

    private static final int BEFORE = 2;

    private final NativeArrays memory = new NativeArrays();
    private final ForkTable forks;
    private final Fingerprints fingerprints;

    /**
     * Lists of each database's forks of each stripe: entry + 1 or 0. Under the stripe's lock, as
     * the lists.
     */
    private final UnsafeBuffer databaseHeads;

    /**
     * @param fingerprintBits 16; tests take fewer, to have collisions
     */
    ResidentForks(int nbuffers, int fingerprintBits) {
        fingerprints = new Fingerprints(memory, nbuffers, fingerprintBits);
        forks = new ForkTable(memory, nbuffers);
        databaseHeads = memory.reserve(DATABASES * ForkTable.STRIPES * 4);
    }

    Fingerprints fingerprints() {
        return fingerprints;
    }

    ForkTable forks() {
        return forks;
    }

    @Override
    public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
        int relationHash = ForkTable.relationHash(spc, db, rel);
        fingerprints.set(buffer, relationHash);
        int hash = ForkTable.hash(relationHash, fork);
        int entry = forks.guess(hash, spc, db, rel, fork);
        while (entry >= 0) {
            long word = forks.word(entry);
            if (pages(word) == 0 || !forks.isOf(entry, spc, db, rel, fork)) {
                break;
            }
            if (forks.compareAndSetWord(entry, word, word + 1)) {
                raiseEnd(entry, block + 1);
                return;
            }
        }
        countLocked(hash, spc, db, rel, fork, block);
    }

    /** With a lock, as the fork has no page or its entry was not found without. */
    private void countLocked(int hash, int spc, int db, int rel, int fork, int block) {
        for (int reclaimed = -1; ; reclaimed = reclaim()) {
            forks.lock(hash);
            try {
                int entry = forks.find(hash, spc, db, rel, fork);
                if (entry < 0) {
                    if (reclaimed < 0 && forks.anyRetired()) {
                        continue; // for which our lock must be given up
                    }
                    entry = reclaimed >= 0 ? reclaimed : forks.take(hash);
                    forks.insert(entry, hash, spc, db, rel, fork);
                    enterDatabase(entry, hash, db);
                } else if (reclaimed >= 0) {
                    forks.free(hash, reclaimed); // somebody was faster
                }
                count(entry, block + 1);
                return;
            } finally {
                forks.unlock(hash);
            }
        }
    }

    /** One page more, under the stripe's lock. */
    void count(int entry, int end) {
        for (; ; ) {
            long word = forks.word(entry);
            if (pages(word) == 0) { // and stays so while we hold the lock
                forks.user(entry, END, end);
            }
            if (forks.compareAndSetWord(entry, word, word + 1)) {
                raiseEnd(entry, end);
                return;
            }
        }
    }

    /**
     * Takes an entry without pages out of its chain and its database's list. Without a lock held of
     * the same rank. @return the entry, now ours, or -1 when none is retired
     */
    private int reclaim() {
        for (; ; ) {
            int entry = forks.takeRetired();
            if (entry < 0) {
                return -1;
            }
            int hash = forks.hash(entry); // nobody else gives it another name
            forks.lock(hash);
            try {
                if (isReclaimed(entry)) {
                    forks.unlink(hash, entry);
                    leaveDatabase(entry, hash, forks.db(entry));
                    return entry;
                }
            } finally {
                forks.unlock(hash);
            }
        }
    }

    /** Under the stripe's lock. @return false when the fork has pages: then it is not retired */
    boolean isReclaimed(int entry) {
        for (; ; ) {
            long word = forks.word(entry);
            long next = pages(word) == 0 ? retired(word) & ~RETIRED : word & ~RETIRED;
            if (forks.compareAndSetWord(entry, word, next)) {
                return pages(word) == 0;
            }
        }
    }

    @Override
    public void unmapped(int buffer, int spc, int db, int rel, int fork) {
        fingerprints.clear(buffer);
        dropped(ForkTable.hash(spc, db, rel, fork), spc, db, rel, fork, 1);
    }

    /**
     * A drop has thrown away so many pages of the fork, and cleared their fingerprints: the count
     * is never too low meanwhile.
     */
    void dropped(int hash, int spc, int db, int rel, int fork, int pages) {
        int entry = forks.guess(hash, spc, db, rel, fork);
        while (entry >= 0) {
            long word = forks.word(entry);
            if (pages(word) < pages || !forks.isOf(entry, spc, db, rel, fork)) {
                break;
            }
            if (discount(entry, word, pages)) {
                return;
            }
        }
        discountLocked(hash, spc, db, rel, fork, pages);
    }

    private void discountLocked(int hash, int spc, int db, int rel, int fork, int gone) {
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            assert entry >= 0 : "BUF-9: page of a fork that was not counted";
            long word;
            do {
                word = forks.word(entry);
                assert pages(word) >= gone : "BUF-9: fork without pages";
            } while (!discount(entry, word, gone));
        } finally {
            forks.unlock(hash);
        }
    }

    /** So many pages less than in the word. @return false when the word is another meanwhile */
    boolean discount(int entry, long word, int gone) {
        if (pages(word) > gone) {
            return forks.compareAndSetWord(entry, word, word - gone);
        }
        if (!forks.compareAndSetWord(entry, word, retired(word))) {
            return false;
        }
        if ((word & RETIRED) == 0) {
            forks.retire(entry);
        }
        return true;
    }

    /** No pages, in a new generation. */
    private static long retired(long word) {
        return generation(word) + 1 << 32 | RETIRED;
    }

    private void raiseEnd(int entry, int end) {
        for (; ; ) {
            int now = forks.user(entry, END);
            if (Integer.compareUnsigned(now, end) >= 0
                    || forks.compareAndSetUser(entry, END, now, end)) {
                return;
            }
        }
    }

    /**
     * Pages of the fork and where they end: no more and no further than this, if nobody maps pages
     * of it meanwhile.
     *
     * @return 0 when there are none; else as {@link #pages} and {@link #end} take it apart
     */
    long residents(int spc, int db, int rel, int fork) {
        return residents(ForkTable.hash(spc, db, rel, fork), spc, db, rel, fork);
    }

    /**
     * The same by the fork's hash. Without a lock: that the entry was the fork's, and its pages and
     * end of one time, is certain if the word's generation is the same after as before. Then 0
     * pages, too, were all at some moment since the call began, in which the entry was in the
     * fork's chain ({@link ForkTable#guess}).
     */
    long residents(int hash, int spc, int db, int rel, int fork) {
        if (forks.isEmpty(hash)) {
            return 0;
        }
        int entry = forks.guess(hash, spc, db, rel, fork);
        if (entry >= 0) {
            long word = forks.word(entry);
            if (forks.isOf(entry, spc, db, rel, fork)) {
                int end = forks.user(entry, END);
                if (generation(forks.word(entry)) == generation(word)) {
                    return pack(pages(word), end);
                }
            }
        }
        forks.lock(hash);
        try {
            entry = forks.find(hash, spc, db, rel, fork);
            return entry < 0 ? 0 : pack(pages(forks.word(entry)), forks.user(entry, END));
        } finally {
            forks.unlock(hash);
        }
    }

    /** True if {@link #residents} is 0 without doubt. */
    boolean certainlyNone(int hash) {
        return forks.isEmpty(hash);
    }

    private static long pack(int pages, int end) {
        return pages == 0 ? 0 : (long) end << 32 | pages;
    }

    /** Of a word, or of {@link #residents}. */
    static int pages(long word) {
        return (int) word & Integer.MAX_VALUE;
    }

    /** Of {@link #residents}: unsigned. */
    static int end(long residents) {
        return (int) (residents >>> 32);
    }

    private static long generation(long word) {
        return word >>> 32;
    }

    /** The fork was truncated and has no page at or past {@code end} (unsigned) any more. */
    void lowerEnd(int spc, int db, int rel, int fork, int end) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            while (entry >= 0) {
                int now = forks.user(entry, END);
                if (Integer.compareUnsigned(now, end) <= 0
                        || forks.compareAndSetUser(entry, END, now, end)) {
                    return;
                }
            }
        } finally {
            forks.unlock(hash);
        }
    }

    /**
     * Adds every fork of the database that has pages here to the drop's work, from its first block
     * on.
     */
    void addDatabase(int db, DropWork work) {
        for (int stripe = 0; stripe < ForkTable.STRIPES; stripe++) {
            int list = listOf(stripe, db);
            forks.lock(stripe);
            try {
                int steps = 0;
                for (int entry = databaseHeads.getInt(list << 2) - 1;
                        entry >= 0;
                        entry = forks.user(entry, NEXT) - 1) {
                    assert steps++ < forks.entriesTouched() : "BUF-12: loop in a database's list";
                    int pages = pages(forks.word(entry));
                    if (pages != 0 && forks.db(entry) == db) {
                        int end = forks.user(entry, END);
                        int spc = forks.spc(entry);
                        int rel = forks.rel(entry);
                        int fork = forks.fork(entry);
                        work.addFork(
                                ForkTable.hash(spc, db, rel, fork),
                                spc,
                                db,
                                rel,
                                fork,
                                0,
                                end,
                                pages);
                    }
                }
            } finally {
                forks.unlock(stripe);
            }
        }
    }

    private static int listOf(int hash, int db) {
        int one = (db * 0x9E3779B1 >>> 16 ^ db) & DATABASES - 1;
        return one * ForkTable.STRIPES + (hash & ForkTable.STRIPES - 1);
    }

    private void enterDatabase(int entry, int hash, int db) {
        int list = listOf(hash, db);
        int first = databaseHeads.getInt(list << 2);
        forks.user(entry, NEXT, first);
        forks.user(entry, BEFORE, 0);
        if (first != 0) {
            forks.user(first - 1, BEFORE, entry + 1);
        }
        databaseHeads.putInt(list << 2, entry + 1);
    }

    void leaveDatabase(int entry, int hash, int db) {
        int before = forks.user(entry, BEFORE);
        int after = forks.user(entry, NEXT);
        if (before != 0) {
            forks.user(before - 1, NEXT, after);
        } else {
            databaseHeads.putInt(listOf(hash, db) << 2, after);
        }
        if (after != 0) {
            forks.user(after - 1, BEFORE, before);
        }
    }

    // For the inspection of a pool at rest.

    /** Entries of forks with pages. */
    int size() {
        return (int)
                forks.chained().stream().filter(entry -> pages(forks.word(entry)) != 0).count();
    }

    /** True if every entry says rightly whether it is retired, and those without pages are. */
    boolean isConsistent() {
        BitSet chained = forks.chained();
        BitSet retired = forks.retired();
        return chained.stream()
                        .allMatch(
                                entry ->
                                        (forks.word(entry) & RETIRED) != 0 == retired.get(entry)
                                                && (retired.get(entry)
                                                        || pages(forks.word(entry)) != 0))
                && retired.stream().allMatch(chained::get);
    }

    boolean anyLockHeld() {
        return forks.anyLockHeld();
    }

    @Override
    public void release() {
        forks.released();
        memory.release();
    }
}
