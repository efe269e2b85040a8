package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.NoFreeBufferException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Gives a block a buffer and takes it away again: the only place where tags and the mapping table
 * change.
 *
 * <p>Order of locks: content lock (try only) and I/O of a victim before any partition lock; one or
 * two partition locks, ascending; header lock last. Nothing waits for the disk under a partition
 * lock. (PostgreSQL: BufferAlloc, InvalidateBuffer.)
 */
final class BufferAllocator {
    /**
     * How long a dropped page may stay pinned by somebody who does not write it, before we call it
     * a bug and stop.
     */
    private static final long PINNED_DROP_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final BufferDescriptors descriptors;
    private final BufferTable table;
    private final PageLookup lookup;
    private final BufferReplacement replacement;

    /** Of a page that was just brought in. */
    private final int firstUses;

    private final BufferIo io;
    private final LockTable content;
    private final PinWaiters pinWaiters;
    private final ResidencyTracker tracker;

    /** False for strategies that keep nothing: then {@link #tracker} is not even called. */
    private final boolean tracks;

    BufferAllocator(
            BufferDescriptors descriptors,
            BufferTable table,
            PageLookup lookup,
            BufferReplacement replacement,
            BufferIo io,
            LockTable content,
            PinWaiters pinWaiters,
            ResidencyTracker tracker) {
        this.descriptors = descriptors;
        this.table = table;
        this.lookup = lookup;
        this.replacement = replacement;
        firstUses = replacement.policy().firstUses();
        this.io = io;
        this.content = content;
        this.pinWaiters = pinWaiters;
        this.tracker = tracker;
        tracks = tracker != Untracked.INSTANCE;
    }

    /**
     * Pins the block's buffer.
     *
     * @return the buffer when its page is valid; {@code ~buffer} when the caller now owns its I/O
     *     and has to fill it
     */
    int allocate(int spc, int db, int rel, int fork, int block) {
        return allocate(spc, db, rel, fork, block, null);
    }

    /**
     * The same.
     *
     * @param ring the caller's own, or null
     */
    int allocate(int spc, int db, int rel, int fork, int block, BufferAccessStrategy ring) {
        int found = find(spc, db, rel, fork, block, ring);
        return isPending(found) ? claim(found & ~PENDING) : found;
    }

    /** In {@link #find}'s answer: the page is not valid and its I/O not ours. */
    private static final int PENDING = PageLookup.PENDING;

    /** True if {@link #find} pinned a buffer into which somebody else reads, or tried to. */
    static boolean isPending(int found) {
        return found >= 0 && (found & PENDING) != 0;
    }

    /** The buffer that {@link #find} pinned, whatever state it is in. */
    static int pinned(int found) {
        return found >= 0 ? found & ~PENDING : ~found;
    }

    /**
     * The same without ever waiting for another's I/O, for who owns the I/O of other blocks: a
     * third answer, for which see {@link #isPending}.
     */
    int find(int spc, int db, int rel, int fork, int block) {
        return find(spc, db, rel, fork, block, null);
    }

    /** The same with a ring, or null. */
    int find(int spc, int db, int rel, int fork, int block, BufferAccessStrategy ring) {
        int hash = BufferTag.hash(spc, db, rel, fork, block);
        int found = lookup.pin(hash, spc, db, rel, fork, block, ring == null ? MAX_USAGE_COUNT : 1);
        return found == PageLookup.ABSENT ? replace(hash, spc, db, rel, fork, block, ring) : found;
    }

    /** {@link #findOrNone}: no buffer is free. No {@code ~buffer} is this small. */
    static final int NO_BUFFER = Integer.MIN_VALUE;

    /** {@link #find}, for who has some buffers already and can do without this one. */
    int findOrNone(SmgrRelation relation, ForkNumber fork, int block, BufferAccessStrategy ring) {
        try {
            return find(
                    relation.spcOid(),
                    relation.dbOid(),
                    relation.relNumber(),
                    fork.ordinal(),
                    block,
                    ring);
        } catch (NoFreeBufferException e) {
            return NO_BUFFER;
        }
    }

    private int replace(
            int hash, int spc, int db, int rel, int fork, int block, BufferAccessStrategy ring) {
        for (; ; ) {
            int victim = replacement.victim(hash, ring);
            if ((descriptors.state(victim) & DIRTY) != 0 && !writeVictim(victim, ring)) {
                continue;
            }
            int result = rename(victim, hash, spc, db, rel, fork, block, ring);
            if (result != GIVEN_UP) {
                return result;
            }
        }
    }

    /** {@link #rename} found the victim in use again. No {@code ~buffer} is this small. */
    private static final int GIVEN_UP = Integer.MIN_VALUE;

    private int pin(int buffer, BufferAccessStrategy ring) {
        return descriptors.pin(buffer, ring == null ? MAX_USAGE_COUNT : 1);
    }

    /** A pinned buffer whose page is not valid: somebody reads it, or failed to. */
    private int claim(int buffer) {
        return io.start(buffer, true) ? ~buffer : buffer;
    }

    /**
     * Writes the victim's old page. Waiting for its content lock could deadlock: its holder may
     * wait for a page that we hold.
     *
     * @return false when somebody has it locked, or its ring would rather have another than wait
     *     for WAL; then it is unpinned
     */
    private boolean writeVictim(int victim, BufferAccessStrategy ring) {
        if (!content.tryLockShared(victim)) {
            unpin(victim);
            return false;
        }
        boolean written = false;
        try {
            if (ring != null && io.wouldFlushWal(victim) && ring.reject(victim)) {
                return false;
            }
            io.flush(victim, WriteOrigin.BACKEND);
            written = true;
        } finally {
            content.unlock(victim);
            if (!written) {
                unpin(victim);
            }
        }
        return true;
    }

    private int rename(
            int victim,
            int hash,
            int spc,
            int db,
            int rel,
            int fork,
            int block,
            BufferAccessStrategy ring) {
        boolean hadTag =
                (descriptors.state(victim) & TAG_VALID) != 0; // ours: nobody can take it away
        int oldHash = hadTag ? descriptors.hash(victim) : hash;
        int oldPartition = table.partition(oldHash);
        int partition = table.partition(hash);
        table.lockBoth(oldPartition, partition);

        int other = table.lookup(hash, spc, db, rel, fork, block);
        if (other >= 0) { // another thread brought the block in meanwhile
            int state = pin(other, ring);
            table.unlockBoth(oldPartition, partition);
            giveBack(victim, hadTag);
            return (state & VALID) != 0 ? other : other | PENDING;
        }
        int state = descriptors.lockHeader(victim);
        if (refcount(state) != 1 || (state & DIRTY) != 0) {
            descriptors.unlockHeader(victim, state);
            table.unlockBoth(oldPartition, partition);
            giveBack(victim, hadTag);
            return GIVEN_UP;
        }
        int oldSpc = descriptors.spc(victim);
        int oldDb = descriptors.db(victim);
        int oldRel = descriptors.rel(victim);
        int oldFork = descriptors.fork(victim);
        if (hadTag) {
            table.remove(oldHash, victim);
            io.counters.evicted();
        }
        descriptors.setTag(victim, spc, db, rel, fork, block);
        int clean = state & ~(FLAG_MASK | USAGECOUNT_MASK);
        descriptors.unlockHeader(
                victim, clean | TAG_VALID | PERMANENT | IO_IN_PROGRESS | firstUses);
        table.insert(hash, victim);
        if (tracks) {
            if (hadTag) {
                tracker.unmapped(victim, oldSpc, oldDb, oldRel, oldFork);
            }
            tracker.mapped(victim, spc, db, rel, fork, block);
        }
        table.unlockBoth(oldPartition, partition);
        assert LockRank.READ_IN_PROGRESS.enter(); // ours since its header was unlocked
        return ~victim;
    }

    private void giveBack(int victim, boolean hadTag) {
        unpin(victim);
        if (!hadTag) {
            replacement.free(victim);
        }
    }

    /**
     * Ends a failed read or extension: no pin and no valid page stay; the buffer is freed unless
     * somebody else tries the same block.
     */
    void abandon(int buffer) {
        int spc = descriptors.spc(buffer);
        int db = descriptors.db(buffer);
        int rel = descriptors.rel(buffer);
        int fork = descriptors.fork(buffer);
        int block = descriptors.block(buffer);
        io.terminate(buffer, false, IO_ERROR);
        unpin(buffer);
        int hash = BufferTag.hash(spc, db, rel, fork, block);
        int partition = table.partition(hash);
        table.lockExclusive(partition);
        int state = descriptors.lockHeader(buffer);
        boolean ours =
                descriptors.hasTag(buffer, spc, db, rel, fork, block)
                        && (state & (TAG_VALID | VALID | REFCOUNT_MASK)) == TAG_VALID;
        if (ours) {
            forget(buffer, hash, state, null);
        } else {
            descriptors.unlockHeader(buffer, state);
        }
        table.unlock(partition);
        if (ours) {
            replacement.free(buffer);
        }
    }

    /**
     * Throws the page away, unwritten, and frees the buffer. The caller holds the header lock,
     * which is released. Waits for others' pins: nobody uses a page that is dropped, so they can
     * only be writers.
     *
     * @return false when the buffer got another page meanwhile
     */
    boolean invalidate(int buffer, int locked) {
        int spc = descriptors.spc(buffer);
        int db = descriptors.db(buffer);
        int rel = descriptors.rel(buffer);
        int fork = descriptors.fork(buffer);
        int block = descriptors.block(buffer);
        descriptors.unlockHeader(buffer, locked);
        int hash = BufferTag.hash(spc, db, rel, fork, block);
        return invalidate(buffer, hash, spc, db, rel, fork, block, null);
    }

    /**
     * The same with no lock held, for the page named.
     *
     * @param counted not null when the caller tells the tracker afterwards how many pages went:
     *     then only this is cleared here
     */
    boolean invalidate(
            int buffer,
            int hash,
            int spc,
            int db,
            int rel,
            int fork,
            int block,
            Fingerprints counted) {
        int partition = table.partition(hash);
        long deadline = 0;
        for (; ; ) {
            table.lockExclusive(partition);
            int state = descriptors.lockHeader(buffer);
            if ((state & TAG_VALID) == 0
                    || !descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
                descriptors.unlockHeader(buffer, state);
                table.unlock(partition);
                return false;
            }
            if (refcount(state) == 0) {
                forget(buffer, hash, state, counted);
                table.unlock(partition);
                replacement.free(buffer);
                return true;
            }
            descriptors.unlockHeader(buffer, state);
            table.unlock(partition);
            if (pinWaiters.takeBackIdle(buffer) != 0) {
                continue; // they were kept by backends that do not use the page
            }
            if ((state & IO_IN_PROGRESS) != 0) {
                io.await(buffer);
                deadline = 0;
            } else if (deadline == 0) {
                deadline = System.nanoTime() + PINNED_DROP_NANOS;
            } else if (System.nanoTime() - deadline > 0) {
                throw new KernelStoppedException(
                        "a page that is being dropped stays pinned "
                                + Place.of(spc, db, rel, fork, block));
            } else {
                LockSupport.parkNanos(
                        20_000); // pinned by a writer who has not begun or has just ended
            }
        }
    }

    /**
     * Takes the buffer out of the mapping table, whose lock is held, clears tag, flags and dirty
     * bit and unlocks the header. In this order: once the header is unlocked the clock hand may
     * choose the buffer and chain it elsewhere, through the same link. While a tracker is told, a
     * pin keeps the hand off.
     */
    private void forget(int buffer, int hash, int state, Fingerprints counted) {
        table.remove(hash, buffer);
        if (counted != null) {
            descriptors.setTag(buffer, 0, 0, 0, 0, 0);
            counted.clear(buffer);
            descriptors.cleanAndUnlockHeader(buffer, state & ~(FLAG_MASK | USAGECOUNT_MASK));
            return;
        }
        int spc = descriptors.spc(buffer);
        int db = descriptors.db(buffer);
        int rel = descriptors.rel(buffer);
        int fork = descriptors.fork(buffer);
        descriptors.setTag(buffer, 0, 0, 0, 0, 0);
        int free = state & ~(FLAG_MASK | USAGECOUNT_MASK);
        if (!tracks) {
            descriptors.cleanAndUnlockHeader(buffer, free);
            return;
        }
        descriptors.cleanAndUnlockHeader(buffer, free + REFCOUNT_ONE);
        tracker.unmapped(buffer, spc, db, rel, fork);
        unpin(buffer);
    }

    /** How many blocks {@link #touch} takes at most. */
    static final int TOUCHED_AT_ONCE = 16;

    /**
     * Fetches what the next {@code count} probes, and drops of what they find, will need into the
     * cache, without locks, so that their misses overlap: a compare-and-set waits for every store
     * before it. Decides nothing.
     *
     * @param hashes gets the blocks' hashes
     * @param heads scratch
     * @param counted null when of what is found only tag and dirty bit will be looked at
     */
    void touch(
            int spc,
            int db,
            int rel,
            int fork,
            int block,
            int count,
            int[] hashes,
            int[] heads,
            Fingerprints counted) {
        int read = 0;
        for (int i = 0; i < count; i++) {
            hashes[i] = BufferTag.hash(spc, db, rel, fork, block + i);
            heads[i] = table.headHint(hashes[i]);
            read += table.touchLock(hashes[i]);
        }
        for (int i = 0; i < count; i++) {
            if (heads[i] >= 0) {
                read += counted != null ? touch(heads[i], counted) : look(heads[i]);
            }
        }
        for (int i = 0; i < count; i++) {
            int head = heads[i];
            if (head >= 0
                    && (descriptors.block(head) != block + i || descriptors.rel(head) != rel)) {
                int second = table.nextHint(head);
                if (second >= 0) {
                    read += counted != null ? touch(second, counted) : look(second);
                }
            }
        }
        heads[0] = read; // kept, so that the reads are made
    }

    /**
     * The same for buffers that will be looked at, and thrown away most likely: then their buckets,
     * too, will be needed.
     */
    void touchBuffers(int[] buffers, int count, int[] hashes, int[] heads, Fingerprints counted) {
        int read = 0;
        for (int i = 0; i < count; i++) {
            read += touch(buffers[i], counted);
        }
        for (int i = 0; i < count; i++) {
            hashes[i] = descriptors.hash(buffers[i]);
            heads[i] = table.headHint(hashes[i]);
            read += table.touchLock(hashes[i]);
        }
        for (int i = 0; i < count; i++) { // the way to the buffer in its chain
            if (heads[i] >= 0 && heads[i] != buffers[i]) {
                read += table.link(heads[i]);
            }
        }
        hashes[0] = read;
    }

    /** A tag may lie in two cache lines. @return something made of all that was read */
    private int look(int buffer) {
        return descriptors.spc(buffer)
                + descriptors.block(buffer)
                + (descriptors.mayBeDirty(buffer) ? 1 : 0);
    }

    /** What a drop needs. */
    private int touch(int buffer, Fingerprints counted) {
        return descriptors.spc(buffer)
                + descriptors.block(buffer)
                + descriptors.state(buffer)
                + table.link(buffer)
                + replacement.link(buffer)
                + counted.get(buffer);
    }

    /**
     * Looks the block up and throws its page away, unwritten. @return false when no buffer holds it
     */
    boolean drop(int spc, int db, int rel, int fork, int block) {
        int buffer = probe(spc, db, rel, fork, block);
        if (buffer < 0) {
            return false;
        }
        // Somebody may have given the buffer to another page since the probe.
        int state = descriptors.lockHeader(buffer);
        if ((state & TAG_VALID) != 0 && descriptors.hasTag(buffer, spc, db, rel, fork, block)) {
            return invalidate(buffer, state);
        }
        descriptors.unlockHeader(buffer, state);
        return false;
    }

    /**
     * The same for a drop that counts, see {@link ResidentForks#dropped}, and expects to find most
     * of its blocks: the partition is locked once, exclusively. An empty bucket needs no lock:
     * nobody maps pages of a fork that is dropped.
     */
    boolean dropCounted(
            int hash, int spc, int db, int rel, int fork, int block, Fingerprints counted) {
        if (table.isEmptyBucket(hash)) {
            return false;
        }
        int partition = table.partition(hash);
        table.lockExclusive(partition);
        int buffer = table.lookup(hash, spc, db, rel, fork, block);
        if (buffer < 0) {
            table.unlock(partition);
            return false;
        }
        int state = descriptors.lockHeader(buffer);
        if (refcount(state) == 0) {
            forget(buffer, hash, state, counted);
            table.unlock(partition);
            replacement.free(buffer);
            return true;
        }
        descriptors.unlockHeader(buffer, state);
        table.unlock(partition); // wakes, so after the header
        return invalidate(buffer, hash, spc, db, rel, fork, block, counted);
    }

    /**
     * The buffer that holds the block, or -1; unpinned, so it may hold another when the caller
     * looks. One probe.
     */
    int probe(int spc, int db, int rel, int fork, int block) {
        return probe(BufferTag.hash(spc, db, rel, fork, block), spc, db, rel, fork, block);
    }

    /** The same by the block's hash. A bucket seen empty held no page at that instant. */
    int probe(int hash, int spc, int db, int rel, int fork, int block) {
        if (table.isEmptyBucket(hash)) {
            return -1;
        }
        int partition = table.partition(hash);
        table.lockShared(partition);
        int buffer = table.lookup(hash, spc, db, rel, fork, block);
        table.unlock(partition);
        return buffer;
    }

    void unpin(int buffer) {
        if (descriptors.unpin(buffer)) {
            pinWaiters.wake(buffer);
        }
    }
}
