package org.pgkernel.bufmgr;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageVerify;
import org.pgkernel.smgr.SmgrRelation;

/**
 * A relation of the stress beside its model: which version of each page is the newest, and which
 * one its file has. The relation comes and goes, each time with another incarnation.
 *
 * <p>Every page says which relation, incarnation, fork and block it is, how many hints it got, and
 * carries its version in each of its sectors. Versions of a relation are given out once, so a page
 * that is lost, stale, torn or in the wrong buffer shows.
 *
 * <p>Who may touch the model: {@link #use} is held shared by who uses pages, exclusively by who
 * drops or cuts. Version and hints of a page change under its content lock (exclusive; hints
 * shared, by addition), {@link #written} by the page's writer, of whom there is one at a time.
 */
final class StressRelation {
    static final ForkNumber[] FORKS = {ForkNumber.MAIN, ForkNumber.FSM};

    /** Blocks that a fork may have; {@link #MOST} stops who would extend long before. */
    static final int CAPACITY = 240;

    static final int[] MOST = {100, 12};

    static final int SLOT = 4096;
    static final int HINTS = 4136;
    private static final int INCARNATION = 4100;
    private static final int FORK = 4104;
    private static final int BLOCK = 4108;
    private static final int SECTOR = 512;
    private static final int VERSION = 480;

    final int slot;
    final int spc;
    final int db;
    final ReentrantReadWriteLock use = new ReentrantReadWriteLock(true);

    // Changed under the exclusive lock of use.
    volatile SmgrRelation handle;
    volatile int incarnation;

    /** Changes with each drop and cut. */
    volatile int epoch;

    /** A number that it had before, whose file may be there still; 0: none. */
    int retired;

    private final AtomicLong lastVersion = new AtomicLong();
    private final AtomicLongArray[] versions = arrays();
    private final AtomicLongArray[] lsns = arrays();
    private final AtomicLongArray[] written = arrays();
    private final AtomicLongArray[] floors = arrays();
    private final AtomicIntegerArray[] hints = {
        new AtomicIntegerArray(CAPACITY), new AtomicIntegerArray(CAPACITY)
    };
    private final AtomicIntegerArray[] given = {
        new AtomicIntegerArray(CAPACITY), new AtomicIntegerArray(CAPACITY)
    };

    StressRelation(int slot, int spc, int db) {
        this.slot = slot;
        this.spc = spc;
        this.db = db;
    }

    private static AtomicLongArray[] arrays() {
        return new AtomicLongArray[] {new AtomicLongArray(CAPACITY), new AtomicLongArray(CAPACITY)};
    }

    /** The newest version; 0 if the page, when it is there, is all zeros. */
    long version(int fork, int block) {
        return versions[fork].get(block);
    }

    /** The version that the file has. */
    long written(int fork, int block) {
        return written[fork].get(block);
    }

    /** Versions of all pages, to be compared with {@link #written} later. */
    long[][] versions() {
        long[][] copy = new long[FORKS.length][CAPACITY];
        for (int fork = 0; fork < FORKS.length; fork++) {
            for (int block = 0; block < CAPACITY; block++) {
                copy[fork][block] = versions[fork].get(block);
            }
        }
        return copy;
    }

    /** An extension gave the block out. */
    void given(int fork, int block) {
        if (!given[fork].compareAndSet(block, 0, 1)) {
            throw new AssertionError("a block was given out twice " + place(fork, block));
        }
    }

    /**
     * Makes a new version of the page. The caller has it exclusively locked.
     *
     * @param anew the page is zeros, or is to be written as a whole
     * @param markDirty called between the change and its WAL record
     */
    void change(
            UnsafeBuffer page,
            int fork,
            int block,
            boolean anew,
            Runnable markDirty,
            StressWal wal) {
        long version = lastVersion.incrementAndGet();
        if (anew) {
            Page.init(page, 0);
            page.putInt(SLOT, slot);
            page.putInt(INCARNATION, incarnation);
            page.putInt(FORK, fork);
            page.putInt(BLOCK, block);
            page.putInt(HINTS, hints[fork].get(block));
        }
        for (int at = VERSION; at < Page.SIZE; at += SECTOR) {
            page.putLong(at, version);
        }
        markDirty.run();
        long lsn = wal.insert();
        Page.setLsn(page, lsn);
        lsns[fork].set(block, lsn);
        versions[fork].set(block, version); // last: what is seen here was marked dirty
    }

    /** Sets a hint in a page that the caller has locked, shared at least; then notes it. */
    void hint(UnsafeBuffer page, int fork, int block, Runnable markDirtyHint) {
        // A full fence, so that the look at the dirty flags comes after the hint, and a page whose
        // write has begun is marked again.
        page.getAndAddInt(HINTS, 1);
        markDirtyHint.run();
        hints[fork].incrementAndGet(block);
    }

    /**
     * What is wrong with a page that the caller has locked; null if it is the newest.
     *
     * @param still nobody may set a hint now
     */
    String fault(DirectBuffer page, int fork, int block, boolean still) {
        long version = versions[fork].get(block);
        if (version == 0) {
            return PageVerify.isAllZero(page) ? null : "data where zeros should be: " + text(page);
        }
        String what = strange(page, fork, block);
        if (what != null) {
            return what;
        }
        if (page.getLong(VERSION) != version) {
            return "not version " + version + ": " + text(page);
        }
        if (Page.lsn(page) < lsns[fork].get(block) && still) {
            return "an LSN before its change's: " + text(page);
        }
        return still && page.getInt(HINTS) != hints[fork].get(block)
                ? "not " + hints[fork].get(block) + " hints: " + text(page)
                : null;
    }

    /** What shows that these are not the bytes of this block, whatever the version. */
    private String strange(DirectBuffer page, int fork, int block) {
        if (page.getInt(SLOT) != slot
                || page.getInt(INCARNATION) != incarnation
                || page.getInt(FORK) != fork
                || page.getInt(BLOCK) != block) {
            return "another page: " + text(page);
        }
        for (int at = VERSION + SECTOR; at < Page.SIZE; at += SECTOR) {
            if (page.getLong(at) != page.getLong(VERSION)) {
                return "half changed at " + at + ": " + text(page);
            }
        }
        return null;
    }

    /** What shows that the page must not be written here; null if it may. */
    String whyNotWritten(DirectBuffer page, int fork, int block) {
        if (PageVerify.isAllZero(page)) {
            return versions[fork].get(block) == 0 ? null : "zeros over a page";
        }
        String what = strange(page, fork, block);
        if (what != null) {
            return what;
        }
        long version = page.getLong(VERSION);
        return version < written[fork].get(block) || version <= floors[fork].get(block)
                ? "older than what is in the file, or cut off: " + text(page)
                : null;
    }

    void wasWritten(DirectBuffer page, int fork, int block) {
        written[fork].set(block, page.getLong(VERSION));
    }

    /** The fork is cut, or dropped when {@code first} is 0; {@link #use} is held exclusively. */
    void cut(int fork, int first) {
        epoch++;
        for (int block = first; block < CAPACITY; block++) {
            floors[fork].set(block, lastVersion.get());
            versions[fork].set(block, 0);
            lsns[fork].set(block, 0);
            written[fork].set(block, 0);
            hints[fork].set(block, 0);
            given[fork].set(block, 0);
        }
    }

    String place(int fork, int block) {
        return "rel=" + handle + " fork=" + FORKS[fork] + " block=" + block;
    }

    private static String text(DirectBuffer page) {
        return "slot="
                + page.getInt(SLOT)
                + " incarnation="
                + page.getInt(INCARNATION)
                + " fork="
                + page.getInt(FORK)
                + " block="
                + page.getInt(BLOCK)
                + " version="
                + page.getLong(VERSION)
                + " hints="
                + page.getInt(HINTS)
                + " lsn="
                + Page.lsn(page);
    }
}
