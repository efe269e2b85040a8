package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.VALID;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Pins neighbouring blocks of a fork. Those that are not in the pool and follow each other, a run,
 * are read by one call of the disk.
 *
 * <p><b>Why it does not deadlock.</b> The reader owns the I/O of all blocks of a run until it is
 * read. Two readers with runs that overlap could each own a block that the other waits for. So who
 * owns a block's I/O never waits for that of another block: a run ends before a block into which
 * somebody else reads; we fill what we own, give that I/O up, and wait then, owning none. What else
 * is waited for while a run is gathered: partition locks, under which nobody waits for I/O; and,
 * when a victim is dirty, its write. The victim had no pin, so nobody reads into it; if somebody
 * else is writing it already, he owns this one I/O, has the lock that he needs, and waits for the
 * gate and the disk only. The victim's content lock is only tried.
 *
 * <p><b>Failure.</b> When a run cannot be read at once, or comes short, its blocks are read one by
 * one, which tells the block that is at fault. Each page of a run becomes valid or is given up by
 * itself, so a damaged neighbour costs a good page nothing, nor who waits for it. The call then
 * fails for the first block at fault, with the others as suppressed errors, and keeps no pin.
 *
 * <p>(PostgreSQL: StartReadBuffers and WaitReadBuffers, of 17; 15 reads block by block.)
 */
class VectoredReader {
    /** Blocks that one call of the disk reads at most: 256 KiB. (PostgreSQL: PG_IOV_MAX.) */
    static final int MAX_RUN = 32;

    private static final int NONE = -1;

    private final BufferAllocator allocator;
    private final BufferIo io;

    VectoredReader(BufferAllocator allocator, BufferIo io) {
        this.allocator = allocator;
        this.io = io;
    }

    /**
     * @param count blocks wanted, at least 1
     * @param ring the caller's own, or null; no more of its buffers are pinned than it allows
     * @param buffers gets the buffers, in block order, each pinned
     * @return blocks pinned: fewer than {@code count} when no more buffers are free, at least 1
     */
    final int read(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            int count,
            ReadMode mode,
            BufferAccessStrategy ring,
            int[] buffers) {
        assert count > 0 && count <= buffers.length && block != BlockNumber.INVALID;
        assert mode != ReadMode.ZERO_AND_LOCK && mode != ReadMode.ZERO_AND_CLEANUP_LOCK
                : "locks are taken block by block";
        long room = BlockNumber.toLong(BlockNumber.INVALID) - BlockNumber.toLong(block);
        int wanted = (int) Math.min(count, room);
        if (ring != null) {
            wanted = Math.min(wanted, ring.pinLimit());
        }
        int done = 0;
        boolean read = false;
        try {
            while (done < wanted) {
                int next = advance(relation, fork, block, mode, ring, buffers, done, wanted);
                if (next == done) {
                    break;
                }
                done = next;
            }
            read = true;
            return done;
        } finally {
            if (!read) {
                unpin(buffers, 0, done);
            }
        }
    }

    /**
     * Pins the next block if it is there; else reads it with its neighbours, and pins the resident
     * one that follows them.
     *
     * @return {@code done} and what was added; {@code done} itself when no buffer is free
     */
    private int advance(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            ReadMode mode,
            BufferAccessStrategy ring,
            int[] buffers,
            int done,
            int wanted) {
        int first = allocateOrNone(relation, fork, block + done, ring, done);
        if (first == BufferAllocator.NO_BUFFER) {
            return done;
        }
        if (first >= 0) {
            io.counters.hit();
            buffers[done] = first;
            return done + 1;
        }
        buffers[done] = ~first;
        int end = done + 1;
        int resident = NONE;
        boolean gathered = false;
        try {
            int limit = Math.min(wanted, done + MAX_RUN);
            while (end < limit && resident == NONE) {
                int found = allocator.findOrNone(relation, fork, block + end, ring);
                if (found == BufferAllocator.NO_BUFFER) {
                    break;
                } else if (BufferAllocator.isPending(found)) {
                    allocator.unpin(BufferAllocator.pinned(found));
                    break;
                } else if (found >= 0) {
                    resident = found;
                } else {
                    buffers[end++] = ~found;
                }
            }
            gathered = true;
        } finally {
            if (!gathered) {
                abandon(buffers, done, end);
            }
        }
        boolean filled = false;
        try {
            fill(relation, fork, block + done, mode == ReadMode.ZERO_ON_ERROR, buffers, done, end);
            filled = true;
        } finally {
            if (!filled && resident != NONE) {
                allocator.unpin(resident);
            }
        }
        if (resident != NONE) {
            io.counters.hit();
            buffers[end++] = resident;
        }
        return end;
    }

    /** The caller owns no I/O, so this may wait for another's. */
    private int allocateOrNone(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            BufferAccessStrategy ring,
            int done) {
        try {
            return allocator.allocate(
                    relation.spcOid(),
                    relation.dbOid(),
                    relation.relNumber(),
                    fork.ordinal(),
                    block,
                    ring);
        } catch (NoFreeBufferException e) {
            if (done == 0) {
                throw e;
            }
            return BufferAllocator.NO_BUFFER;
        }
    }

    /** Reads and checks the run in {@code buffers[from]} to {@code buffers[to - 1]}. */
    private void fill(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            boolean zeroOnError,
            int[] buffers,
            int from,
            int to) {
        int at = from;
        boolean filled = false;
        try {
            int whole = to - from == 1 ? 0 : readRun(relation, fork, block, buffers, from, to);
            KernelException failure = null;
            while (at < to) {
                KernelException next =
                        settle(
                                relation,
                                fork,
                                block + at - from,
                                zeroOnError,
                                buffers,
                                at,
                                at - from < whole);
                at++;
                if (failure == null) {
                    failure = next;
                } else if (next != null) {
                    failure.addSuppressed(next);
                }
            }
            if (failure != null) {
                throw failure;
            }
            filled = true;
        } finally {
            if (!filled) {
                unpin(buffers, from, at);
                abandon(buffers, at, to);
            }
        }
    }

    /** Makes one page valid, or gives its buffer up. @return why, or null */
    private KernelException settle(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            boolean zeroOnError,
            int[] buffers,
            int at,
            boolean isThere) {
        int buffer = buffers[at];
        try {
            if (isThere) {
                check(buffer, block, zeroOnError);
            } else {
                io.readPage(buffer, relation, fork, block, zeroOnError);
            }
        } catch (KernelException e) {
            buffers[at] = NONE;
            allocator.abandon(buffer);
            return e;
        }
        io.terminate(buffer, false, VALID);
        return null;
    }

    /** Overridden by tests that plant a fault. */
    void check(int buffer, int block, boolean zeroOnError) {
        io.checkPage(buffer, block, zeroOnError);
    }

    /** Reads a run by one call, if it can be. @return blocks that came, from the first on */
    int readRun(
            SmgrRelation relation, ForkNumber fork, int block, int[] buffers, int from, int to) {
        long[] addresses = BackendScratch.mine().addresses;
        for (int i = from; i < to; i++) {
            addresses[i - from] = io.address(buffers[i]);
        }
        try {
            return relation.readMany(fork, block, addresses, 0, to - from);
        } catch (DiskException e) {
            return 0; // one by one, then: some may be readable, and the error will name the block
        }
    }

    /** Gives the pins of finished pages up. */
    void unpin(int[] buffers, int from, int to) {
        for (int i = from; i < to; i++) {
            if (buffers[i] != NONE) {
                allocator.unpin(buffers[i]);
            }
        }
    }

    /** Gives up pages whose I/O we own. */
    void abandon(int[] buffers, int from, int to) {
        for (int i = from; i < to; i++) {
            allocator.abandon(buffers[i]);
        }
    }

    /**
     * Tells the system which blocks will be read, those that are not in the pool. Pins nothing: a
     * block may come or go meanwhile, which costs a hint or a wait. (PostgreSQL: PrefetchBuffer.)
     *
     * @return how many are not in the pool
     */
    final int prefetch(SmgrRelation relation, ForkNumber fork, int block, int count) {
        int missing = 0;
        int run = 0;
        for (int i = 0; i <= count; i++) {
            if (i < count && !isResident(relation, fork, block + i)) {
                run++;
            } else if (run > 0) {
                relation.prefetch(fork, block + i - run, run);
                missing += run;
                run = 0;
            }
        }
        return missing;
    }

    private boolean isResident(SmgrRelation relation, ForkNumber fork, int block) {
        return allocator.probe(
                        relation.spcOid(),
                        relation.dbOid(),
                        relation.relNumber(),
                        fork.ordinal(),
                        block)
                >= 0;
    }
}
