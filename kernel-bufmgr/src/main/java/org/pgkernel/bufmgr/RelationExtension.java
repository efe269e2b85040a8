package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.VALID;

import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Adds zero pages at a fork's end, in file and pool: one page, or several by one write.
 *
 * <p>In this order, under the relation's {@link ExtensionLock}: where the fork ends is asked of the
 * storage manager; buffers are claimed for the pages (we own their I/O: nobody can see them); the
 * file is looked at, whether it really ends there; it is extended; the pages become valid. Whatever
 * fails before the end takes the claims back, so that no pin, no page and no tag stay. What a write
 * that failed half-way has left in the file counts as far as it is whole blocks; the next extension
 * goes on there, over the fragment.
 *
 * <p>Nobody should be found at the claimed blocks. Two may be there all the same: who reads past
 * the end by mistake and is about to fail; and a page of zeros that somebody read where the file
 * had not grown yet, which is ours once it has. The first block's are waited for, while no I/O is
 * owned (as {@link VectoredReader} explains); those of a later block end the extension before it,
 * which adds fewer pages then. The page of zeros keeps its place and stays valid all the time, so
 * who uses it sees nothing of us; if it is not all zeros it is not ours to overwrite. Its content
 * lock ranks before the extension lock, so here it is only tried. When somebody has it, it is
 * waited for without the extension lock; he may have formatted the page, which is his then, and we
 * add another.
 *
 * <p>(PostgreSQL: ReadBuffer(P_NEW) and, of 16, ExtendBufferedRelShared, bufmgr.c.)
 */
class RelationExtension {
    private static final int LOCKS = 256;

    private final BufferDescriptors descriptors;
    private final BufferAllocator allocator;
    private final BufferIo io;
    private final LockTable content;
    private final ExtensionLock[] locks = new ExtensionLock[LOCKS];

    RelationExtension(
            BufferDescriptors descriptors,
            BufferAllocator allocator,
            BufferIo io,
            LockTable content) {
        this.descriptors = descriptors;
        this.allocator = allocator;
        this.io = io;
        this.content = content;
        for (int i = 0; i < LOCKS; i++) {
            locks[i] = new ExtensionLock();
        }
    }

    ExtensionLock lock(SmgrRelation relation) {
        ExtensionLock lock = lockOf(relation);
        lock.lock(relation);
        return lock;
    }

    /** The relation's lock, which others may have, too. */
    ExtensionLock lockOf(SmgrRelation relation) {
        int hash = (relation.relNumber() * 31 + relation.dbOid()) * 31 + relation.spcOid();
        return locks[(hash * 0x9E3779B9) >>> 24 & LOCKS - 1];
    }

    /** True if anybody holds one; for the inspection. */
    boolean anyLockHeld() {
        for (ExtensionLock lock : locks) {
            if (lock.isHeld()) {
                return true;
            }
        }
        return false;
    }

    /**
     * @param count pages wanted, at least 1
     * @param ring the caller's own, or null; no more of its buffers are pinned than it allows
     * @param buffers gets the buffers, in block order, each pinned
     * @param lockFirst the first one comes exclusively locked
     * @return pages added, at least 1
     */
    int extend(
            SmgrRelation relation,
            ForkNumber fork,
            int count,
            BufferAccessStrategy ring,
            int[] buffers,
            boolean lockFirst) {
        assert count > 0 && count <= buffers.length;
        int most = ring == null ? count : Math.min(count, ring.pinLimit());
        for (; ; ) {
            int added;
            try (ExtensionLock held = lock(relation)) {
                added = extendLocked(relation, fork, most, ring, buffers, lockFirst);
            }
            if (added > 0) {
                return added;
            }
            added = ~added;
            content.lockExclusive(buffers[0]);
            boolean untouched = io.isZeroPage(buffers[0]);
            if (!untouched || !lockFirst) {
                content.unlock(buffers[0]);
            }
            if (untouched) {
                return added;
            }
            for (int i = 0; i < added; i++) {
                allocator.unpin(buffers[i]);
            }
        }
    }

    /**
     * @return pages added; {@code ~pages} when the first is one of zeros that somebody has locked
     */
    private int extendLocked(
            SmgrRelation relation,
            ForkNumber fork,
            int count,
            BufferAccessStrategy ring,
            int[] buffers,
            boolean lockFirst) {
        int block = relation.nblocks(fork);
        int wanted = (int) Math.min(count, room(relation, fork, block));
        int found =
                allocator.allocate(
                        relation.spcOid(),
                        relation.dbOid(),
                        relation.relNumber(),
                        fork.ordinal(),
                        block,
                        ring);
        boolean owned = found < 0;
        boolean locked = !owned && takeOver(relation, found);
        buffers[0] = owned ? ~found : found;
        int claimed = 1;
        boolean extended = false;
        try {
            claimed = claim(relation, fork, block, wanted, ring, buffers);
            refuseWhatIsInTheWay(relation, fork, block, claimed);
            grow(relation, fork, block, claimed);
            for (int i = owned ? 0 : 1; i < claimed; i++) {
                io.zeroPage(buffers[i]);
            }
            extended = true;
        } finally {
            if (!extended) {
                takeBack(buffers, claimed, owned, locked);
            }
        }
        io.counters.extended(claimed);
        publish(buffers, claimed, owned, locked, lockFirst);
        return owned || locked ? claimed : ~claimed;
    }

    private static long room(SmgrRelation relation, ForkNumber fork, int block) {
        if (block == BlockNumber.INVALID) {
            throw new RefusedException(
                    "the fork has all the blocks that a fork can have "
                            + Place.of(
                                    relation.spcOid(),
                                    relation.dbOid(),
                                    relation.relNumber(),
                                    fork.ordinal(),
                                    block));
        }
        return BlockNumber.toLong(BlockNumber.INVALID) - BlockNumber.toLong(block);
    }

    /**
     * A valid page past the fork's end can be a page of zeros whose place in the file was never
     * allocated. Nothing is held when it is something else; the size was wrong then, and is
     * forgotten, so that the next extension asks the file.
     *
     * @return true when its content lock was free, and is ours now
     */
    private boolean takeOver(SmgrRelation relation, int buffer) {
        boolean locked = content.tryLockExclusive(buffer);
        if (io.isZeroPage(buffer)) {
            return locked;
        }
        String place = descriptors.place(buffer);
        if (locked) {
            content.unlock(buffer);
        }
        allocator.unpin(buffer);
        relation.forgetSizes();
        throw new DamagedDataException("the pool holds data past the end of the fork " + place);
    }

    /**
     * Claims buffers for the blocks after the first, as far as they can be had without waiting.
     *
     * @return claimed buffers, the first one's included
     */
    private int claim(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            int wanted,
            BufferAccessStrategy ring,
            int[] to) {
        int claimed = 1;
        boolean ended = false;
        try {
            while (claimed < wanted) {
                int found = allocator.findOrNone(relation, fork, block + claimed, ring);
                if (found >= 0) {
                    allocator.unpin(BufferAllocator.pinned(found));
                    break;
                }
                if (found == BufferAllocator.NO_BUFFER) {
                    break;
                }
                to[claimed++] = ~found;
            }
            ended = true;
            return claimed;
        } finally {
            if (!ended) {
                abandon(to, 1, claimed);
            }
        }
    }

    private void refuseWhatIsInTheWay(
            SmgrRelation relation, ForkNumber fork, int block, int count) {
        int found = relation.firstInTheWay(fork, block, count, BackendScratch.mine().copyAddress());
        if (found != BlockNumber.INVALID) {
            relation.forgetSizes();
            throw new DamagedDataException(
                    "the file holds data past the end of the fork "
                            + Place.of(
                                    relation.spcOid(),
                                    relation.dbOid(),
                                    relation.relNumber(),
                                    fork.ordinal(),
                                    found));
        }
    }

    /** Overridden by tests that plant a fault, as is {@link #abandon}. */
    void grow(SmgrRelation relation, ForkNumber fork, int block, int count) {
        relation.zeroExtend(fork, block, count, false);
    }

    private void takeBack(int[] buffers, int claimed, boolean owned, boolean locked) {
        if (owned) {
            allocator.abandon(buffers[0]);
        } else {
            if (locked) {
                content.unlock(buffers[0]);
            }
            allocator.unpin(buffers[0]);
        }
        abandon(buffers, 1, claimed);
    }

    void abandon(int[] buffers, int from, int to) {
        for (int i = from; i < to; i++) {
            allocator.abandon(buffers[i]);
        }
    }

    /** A new first page is locked before it can be seen, if it is to be. */
    private void publish(
            int[] buffers, int count, boolean owned, boolean locked, boolean lockFirst) {
        if (owned) {
            if (lockFirst) {
                content.lockUnreachable(buffers[0]);
            }
            io.terminate(buffers[0], false, VALID);
        } else if (locked && !lockFirst) {
            content.unlock(buffers[0]);
        }
        for (int i = 1; i < count; i++) {
            io.terminate(buffers[i], false, VALID);
        }
    }
}
