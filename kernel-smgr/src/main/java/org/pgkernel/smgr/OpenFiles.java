package org.pgkernel.smgr;

import java.util.Arrays;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DiskException;

/**
 * Bounds the number of descriptors by a clock over the open segment files. Past the cap the hand
 * closes a file that nobody has pinned or used since it last came by. When every open file is
 * pinned the cap gives way, by no more than the number of threads at work. Thread-safe; its lock is
 * held for no system call. (PostgreSQL: the LRU ring of fd.c, max_files_per_process.)
 */
final class OpenFiles {
    /** {@link #openFile}: null when there is no such file. */
    static final int IF_EXISTS = 0;

    /** {@link #openFile}: made when there is no such file. */
    static final int OR_CREATE = 1;

    /** {@link #openFile}: made; an existing one is an error. */
    static final int CREATE = 2;

    private static final int ENFILE = 23;
    private static final int EMFILE = 24;

    private final Disk disk;
    private final int cap;
    private final SyncRequests syncRequests;

    // Guarded by this monitor.
    private SegmentFile[] slots = new SegmentFile[64];
    private int count;
    private int hand;

    OpenFiles(Disk disk, int cap, SyncRequests syncRequests) {
        this.disk = disk;
        this.cap = cap;
        this.syncRequests = syncRequests;
    }

    synchronized int count() {
        return count;
    }

    /** Opens a file; when the system is out of descriptors, closes others first. */
    DiskFile openFile(String path, int how) {
        for (; ; ) {
            try {
                return switch (how) {
                    case IF_EXISTS -> disk.openIfExists(path);
                    case OR_CREATE -> disk.openOrCreate(path);
                    default -> disk.create(path);
                };
            } catch (DiskException e) {
                if (e.errno() != EMFILE && e.errno() != ENFILE || !evictOne()) {
                    throw e;
                }
            }
        }
    }

    /** Closes a file; the system may report a lost write here, which stops the kernel. */
    void closeFile(DiskFile file) {
        syncRequests.close(file);
    }

    /** Enters an open segment into the clock, making room first (SMGR-5). */
    void admit(SegmentFile segment) {
        for (; ; ) {
            SegmentFile victim;
            synchronized (this) {
                victim = count >= cap ? sweep() : null;
                if (victim == null) {
                    append(segment);
                    return;
                }
            }
            victim.closeEvicted();
        }
    }

    /** Takes a segment out of the clock, if it is there. */
    synchronized void remove(SegmentFile segment) {
        int slot = segment.slot;
        if (slot < 0) {
            return;
        }
        assert slots[slot] == segment;
        SegmentFile last = slots[--count];
        slots[count] = null;
        if (last != segment) {
            slots[slot] = last;
            last.slot = slot;
        }
        segment.slot = -1;
    }

    private boolean evictOne() {
        SegmentFile victim;
        synchronized (this) {
            victim = sweep();
        }
        if (victim == null) {
            return false;
        }
        victim.closeEvicted();
        return true;
    }

    private void append(SegmentFile segment) {
        if (count == slots.length) {
            slots = Arrays.copyOf(slots, count * 2);
        }
        slots[count] = segment;
        segment.slot = count++;
    }

    /**
     * The next victim, out of the clock already; null when all are pinned. Twice round clears every
     * mark.
     */
    private SegmentFile sweep() {
        for (int steps = 2 * count; steps > 0; steps--) {
            if (hand >= count) {
                hand = 0;
            }
            SegmentFile candidate = slots[hand];
            if (candidate.recentlyUsed) {
                candidate.recentlyUsed = false;
            } else if (candidate.tryEvict()) {
                remove(candidate);
                return candidate;
            }
            hand++;
        }
        return null;
    }
}
