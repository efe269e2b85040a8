package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * ADAPTIVE's bookkeeping: for each relation fork with pages in the pool, how many there are and a
 * block number that none of them reaches; the forks of each database in a list; and the buffers'
 * {@link Fingerprints}.
 *
 * <p>The count is what a drop rests on: 0 proves that nothing is left. It is never too low, see
 * {@link ResidencyTracker}. The end makes sizes unnecessary: whatever a file's size may be, or is
 * believed to be, no page at or past the end is here. It rises when a page is mapped, falls when
 * the fork is truncated, and goes with the entry when the last page goes.
 *
 * <pre>
 *  word of an entry   63          32 31           0       beside its link   0        4           8             12
 *                     +-------------+--------------+                        +--------+-----------+-------------+
 *                     | generation  | pages        |                        | end    | database's next, before |
 *                     +-------------+--------------+                        +--------+-----------+-------------+
 * </pre>
 *
 * A count above 1 goes down, and one above 0 up, by one CAS without a lock. 0 to 1 and 1 to 0
 * happen under the stripe's lock, where the entry is put into its chain and its database's list, or
 * taken out; going to 0 makes a new generation. So who has read a word, then found the fork's name
 * in the entry, and whose CAS on that word succeeds, has counted the right fork: had the entry been
 * reused in between, the generation would be another. And who has counted a page keeps the entry
 * alive until that page is unmapped.
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

    private final NativeArrays memory = new NativeArrays();
    private final ForkTable forks;
    private final Fingerprints fingerprints;

    /**
     * What is kept of an entry beside its link: its end, and its neighbours in its database's list.
     */
    private final UnsafeBuffer links;

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
        links = forks.links();
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

    private void countLocked(int hash, int spc, int db, int rel, int fork, int block) {
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            if (entry >= 0) { // has a page at least, and keeps it while we hold the lock
                add(entry, 1);
                raiseEnd(entry, block + 1);
                return;
            }
            entry = forks.insert(hash, spc, db, rel, fork);
            links.putIntVolatile(end(entry), block + 1);
            forks.word(entry, forks.word(entry) + 1);
            enterDatabase(entry, hash, db);
        } finally {
            forks.unlock(hash);
        }
    }

    @Override
    public void unmapped(int buffer, int spc, int db, int rel, int fork) {
        fingerprints.clear(buffer);
        int hash = ForkTable.hash(spc, db, rel, fork);
        int entry = forks.guess(hash, spc, db, rel, fork);
        while (entry >= 0) {
            long word = forks.word(entry);
            if (pages(word) <= 1 || !forks.isOf(entry, spc, db, rel, fork)) {
                break;
            }
            if (forks.compareAndSetWord(entry, word, word - 1)) {
                return;
            }
        }
        discountLocked(hash, spc, db, rel, fork, 1);
    }

    /**
     * A drop has thrown away so many pages of the fork, and cleared their fingerprints: the count
     * is never too low meanwhile.
     */
    void dropped(int hash, int spc, int db, int rel, int fork, int pages) {
        discountLocked(hash, spc, db, rel, fork, pages);
    }

    private void discountLocked(int hash, int spc, int db, int rel, int fork, int gone) {
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            assert entry >= 0 : "BUF-9: page of a fork that was not counted";
            for (; ; ) {
                long word = forks.word(entry);
                assert pages(word) >= gone : "BUF-9: fork without pages";
                if (pages(word) > gone) {
                    if (forks.compareAndSetWord(entry, word, word - gone)) {
                        return;
                    }
                } else if (forks.compareAndSetWord(entry, word, generation(word) + 1 << 32)) {
                    forks.unlink(hash, entry);
                    leaveDatabase(entry, hash, db);
                    forks.free(hash, entry);
                    return;
                }
            }
        } finally {
            forks.unlock(hash);
        }
    }

    /** Changed by CAS: up by who has counted a page there, down under the stripe's lock. */
    private static int end(int entry) {
        return ForkTable.userOffset(entry);
    }

    /** Under the stripe's lock, as {@link #databaseBefore}. */
    private static int databaseNext(int entry) {
        return ForkTable.userOffset(entry) + 4;
    }

    private static int databaseBefore(int entry) {
        return ForkTable.userOffset(entry) + 8;
    }

    private void add(int entry, int pages) {
        long word;
        do {
            word = forks.word(entry);
        } while (!forks.compareAndSetWord(entry, word, word + pages));
    }

    private void raiseEnd(int entry, int end) {
        for (; ; ) {
            int now = links.getIntVolatile(end(entry));
            if (Integer.compareUnsigned(now, end) >= 0
                    || links.compareAndSetInt(end(entry), now, end)) {
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

    /** The same by the fork's hash. */
    long residents(int hash, int spc, int db, int rel, int fork) {
        if (forks.isEmpty(hash)) {
            return 0;
        }
        int entry = forks.first(hash); // chains are hardly ever longer
        if (entry >= 0) {
            long word = forks.word(entry);
            if (pages(word) != 0 && forks.isOf(entry, spc, db, rel, fork)) {
                int end = links.getIntVolatile(end(entry));
                if (generation(forks.word(entry)) == generation(word)) {
                    return pack(pages(word), end);
                }
            }
        }
        forks.lock(hash);
        try {
            entry = forks.find(hash, spc, db, rel, fork);
            return entry < 0 ? 0 : pack(pages(forks.word(entry)), links.getIntVolatile(end(entry)));
        } finally {
            forks.unlock(hash);
        }
    }

    /** True if {@link #residents} is 0 without doubt. */
    boolean certainlyNone(int hash) {
        return forks.isEmpty(hash);
    }

    private static long pack(int pages, int end) {
        return (long) end << 32 | pages;
    }

    /** Of a word, or of {@link #residents}. */
    static int pages(long word) {
        return (int) word;
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
                int now = links.getIntVolatile(end(entry));
                if (Integer.compareUnsigned(now, end) <= 0
                        || links.compareAndSetInt(end(entry), now, end)) {
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
                for (int entry = databaseHeads.getInt(list << 2) - 1;
                        entry >= 0;
                        entry = links.getInt(databaseNext(entry)) - 1) {
                    int pages = pages(forks.word(entry));
                    if (forks.db(entry) == db) {
                        int end = links.getIntVolatile(end(entry));
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
        links.putInt(databaseNext(entry), first);
        links.putInt(databaseBefore(entry), 0);
        if (first != 0) {
            links.putInt(databaseBefore(first - 1), entry + 1);
        }
        databaseHeads.putInt(list << 2, entry + 1);
    }

    private void leaveDatabase(int entry, int hash, int db) {
        int before = links.getInt(databaseBefore(entry));
        int after = links.getInt(databaseNext(entry));
        if (before != 0) {
            links.putInt(databaseNext(before - 1), after);
        } else {
            databaseHeads.putInt(listOf(hash, db) << 2, after);
        }
        if (after != 0) {
            links.putInt(databaseBefore(after - 1), before);
        }
    }

    /** For the inspection. */
    boolean anyLockHeld() {
        return forks.anyLockHeld();
    }

    @Override
    public void release() {
        memory.release();
    }
}
