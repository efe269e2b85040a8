package org.pgkernel.bufmgr;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.smgr.StorageManager;

/**
 * Pages just written, about which the system is told, some at a time, to start writing them to the
 * disk: so that the sync at the checkpoint's end finds little left to do and nobody is held up by
 * it. Neighbours are told of at once, in the order of the file. Only hints: they do nothing about
 * what is durable. Used by one thread. (PostgreSQL: WritebackContext,
 * ScheduleBufferTagForWriteback, IssuePendingWritebacks.)
 */
final class WriteBackHints {
    /** More are not kept. (WRITEBACK_MAX_PENDING_FLUSHES.) */
    static final int MOST = 256;

    private final StorageManager smgr;
    private final int limit;
    private final int[] spcs;
    private final int[] dbs;
    private final int[] rels;

    /** Fork and block of a page, and its place in the arrays above: sorted when they are told. */
    private final int[] forks;

    private final int[] blocks;
    private final int[] order;
    private int count;

    /**
     * @param limit so many pages are collected; 0: no hints
     */
    WriteBackHints(StorageManager smgr, int limit) {
        assert limit >= 0 && limit <= MOST;
        this.smgr = smgr;
        this.limit = limit;
        spcs = new int[limit];
        dbs = new int[limit];
        rels = new int[limit];
        forks = new int[limit];
        blocks = new int[limit];
        order = new int[limit];
    }

    /** No lock is held, no pin needed: a relation that is gone by now is passed over. */
    void add(int spc, int db, int rel, int fork, int block) {
        if (limit == 0) {
            return;
        }
        spcs[count] = spc;
        dbs[count] = db;
        rels[count] = rel;
        forks[count] = fork;
        blocks[count] = block;
        count++;
        if (count == limit) {
            issue();
        }
    }

    /** Tells what is collected, or as much of it as can be told; nothing is kept. */
    void issue() {
        try {
            tell();
        } catch (DiskException e) {
            // A file that cannot be opened now: whoever has to sync it will say so.
        } finally {
            count = 0;
        }
    }

    private void tell() {
        sort();
        int i = 0;
        while (i < count) {
            int first = order[i];
            int pages = 1;
            int last = first;
            for (i++; i < count && isSameFork(first, order[i]); i++) {
                int next = order[i];
                if (blocks[next] == blocks[last]) {
                    continue;
                }
                if (blocks[next] != blocks[last] + 1) {
                    break;
                }
                pages++;
                last = next;
            }
            smgr.open(spcs[first], dbs[first], rels[first])
                    .startWriteback(ForkNumber.of(forks[first]), blocks[first], pages);
        }
    }

    private boolean isSameFork(int a, int b) {
        return rels[a] == rels[b] && forks[a] == forks[b] && dbs[a] == dbs[b] && spcs[a] == spcs[b];
    }

    /** By insertion: they are few, and nearly sorted when a checkpoint writes them. */
    private void sort() {
        for (int i = 0; i < count; i++) {
            int at = i;
            while (at > 0 && compare(order[at - 1], i) > 0) {
                order[at] = order[at - 1];
                at--;
            }
            order[at] = i;
        }
    }

    private int compare(int a, int b) {
        int c = Integer.compareUnsigned(spcs[a], spcs[b]);
        if (c == 0) {
            c = Integer.compareUnsigned(dbs[a], dbs[b]);
        }
        if (c == 0) {
            c = Integer.compareUnsigned(rels[a], rels[b]);
        }
        if (c == 0) {
            c = Integer.compare(forks[a], forks[b]);
        }
        return c == 0 ? Integer.compareUnsigned(blocks[a], blocks[b]) : c;
    }
}
