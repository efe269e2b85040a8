package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * DLIST's bookkeeping: the buffers of each relation fork in a doubly linked list, whose head is
 * found through a hash table. A buffer enters at the head when it is mapped and leaves when it is
 * unmapped, under the lock of the fork's stripe, which is all that a drop needs too.
 *
 * <pre>
 *  word of an entry   63          32 31           0        next, before     0            4     0 at either end
 *                     +-------------+--------------+                        +------------+
 *                     | buffers     | first + 1    |                        | buffer + 1 |
 *                     +-------------+--------------+                        +------------+
 * </pre>
 *
 * (The first patch of pgsql-hackers' thread "Optimize dropping of relation buffers using dlist",
 * 2020; not in PostgreSQL.)
 */
non-sealed class BufferLists implements ResidencyTracker {
    private static final long ONE_BUFFER = 1L << 32;

    private final NativeArrays memory = new NativeArrays();
    private final ForkTable forks;
    private final UnsafeBuffer next;
    private final UnsafeBuffer before;

    BufferLists(int nbuffers) {
        forks = new ForkTable(memory, nbuffers);
        next = memory.reserve((long) nbuffers * 4);
        before = memory.reserve((long) nbuffers * 4);
    }

    ForkTable forks() {
        return forks;
    }

    @Override
    public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            if (entry < 0) {
                entry = forks.take(hash); // its word is 0: the last user's list was empty
                forks.insert(entry, hash, spc, db, rel, fork);
            }
            long word = forks.word(entry);
            int first = (int) word;
            next.putInt(buffer << 2, first);
            before.putInt(buffer << 2, 0);
            if (first != 0) {
                before.putInt(first - 1 << 2, buffer + 1);
            }
            forks.word(entry, (word & -ONE_BUFFER) + ONE_BUFFER | buffer + 1);
        } finally {
            forks.unlock(hash);
        }
    }

    @Override
    public void unmapped(int buffer, int spc, int db, int rel, int fork) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            assert entry >= 0 : "BUF-10: buffer of a fork that has no list";
            long word = forks.word(entry) - ONE_BUFFER;
            int previous = before.getInt(buffer << 2);
            int after = next.getInt(buffer << 2);
            if (previous != 0) {
                next.putInt(previous - 1 << 2, after);
            } else {
                assert (int) word == buffer + 1 : "BUF-10: buffer not in its fork's list";
                word = word & -ONE_BUFFER | after;
            }
            if (after != 0) {
                before.putInt(after - 1 << 2, previous);
            }
            forks.word(entry, word);
            if (word == 0) {
                forks.unlink(hash, entry);
                forks.free(hash, entry);
            }
        } finally {
            forks.unlock(hash);
        }
    }

    /**
     * True if the list reads the same backwards and is as long as it says; for the inspection of a
     * pool at rest.
     */
    boolean isConsistent(int spc, int db, int rel, int fork) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            int previous = 0;
            int length = 0;
            for (int link = entry < 0 ? 0 : (int) forks.word(entry);
                    link != 0;
                    link = next.getInt(link - 1 << 2)) {
                if (before.getInt(link - 1 << 2) != previous) {
                    return false;
                }
                previous = link;
                length++;
            }
            return entry < 0 || length == (int) (forks.word(entry) >>> 32);
        } finally {
            forks.unlock(hash);
        }
    }

    /** Buffers in the fork's list. */
    int length(int spc, int db, int rel, int fork) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            return entry < 0 ? 0 : (int) (forks.word(entry) >>> 32);
        } finally {
            forks.unlock(hash);
        }
    }

    /**
     * Copies the fork's list into the drop's work, since the lock must not be held while buffers
     * are thrown away. Holds all buffers that have a page of the fork, and perhaps some that have
     * just lost it.
     *
     * @return how many
     */
    int copy(int spc, int db, int rel, int fork, DropWork work) {
        int hash = ForkTable.hash(spc, db, rel, fork);
        if (forks.isEmpty(hash)) {
            return 0;
        }
        forks.lock(hash);
        try {
            int entry = forks.find(hash, spc, db, rel, fork);
            if (entry < 0) {
                return 0;
            }
            long word = forks.word(entry);
            work.ensureBuffers((int) (word >>> 32));
            int count = 0;
            for (int buffer = (int) word - 1; buffer >= 0; buffer = next.getInt(buffer << 2) - 1) {
                assert count < word >>> 32 : "BUF-10: loop in a fork's list";
                work.buffers[count++] = buffer;
            }
            return count;
        } finally {
            forks.unlock(hash);
        }
    }

    @Override
    public void release() {
        forks.released();
        memory.release();
    }
}
