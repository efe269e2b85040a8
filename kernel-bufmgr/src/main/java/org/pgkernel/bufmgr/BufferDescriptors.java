package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BufferTag;
import org.pgkernel.base.LockRank;

/**
 * The descriptors: state words and tags. This class alone changes state words.
 *
 * <p>While the header lock ({@link BufferState#LOCKED}) is held nobody else changes the word;
 * everything else is a CAS that waits for the lock. A tag is written under the header lock
 * <em>and</em> the exclusive lock of its mapping partition, and never while anybody but the writer
 * has a pin; so it may be read under any of the three. The header lock is held for a few
 * instructions: no other lock is taken and nothing waits under it.
 *
 * <p>A state word is 8 bytes and is read and changed as a whole; its upper half, the tag's
 * generation, changes in {@link #setTag} alone. Methods take and return the lower half.
 *
 * <p>Not final: tests come in between two steps of a lookup, and put faults in.
 *
 * <p>(PostgreSQL: BufferDesc, LockBufHdr, PinBuffer, UnpinBuffer.)
 */
class BufferDescriptors {
    private final UnsafeBuffer states;
    private final UnsafeBuffer tags;
    private final DirtyBitmap dirty;

    BufferDescriptors(PoolMemory memory, DirtyBitmap dirty) {
        this.states = memory.states;
        this.tags = memory.tags;
        this.dirty = dirty;
    }

    /** The lower half of the word: pin count, usage count, flags. */
    int state(int buffer) {
        return (int) states.getLongVolatile(buffer << 3);
    }

    /**
     * @return the state, locked
     */
    int lockHeader(int buffer) {
        assert LockRank.HEADER.enter();
        int offset = buffer << 3;
        for (int spins = 0; ; spins++) {
            long word = states.getLongVolatile(offset);
            if ((word & LOCKED) == 0 && states.compareAndSetLong(offset, word, word | LOCKED)) {
                return (int) word | LOCKED;
            }
            pause(spins);
        }
    }

    /** Ends {@link #lockHeader} and makes {@code state}, without the lock bit, the new state. */
    void unlockHeader(int buffer, int state) {
        int offset = buffer << 3;
        long word = states.getLong(offset); // ours while it is locked
        assert (word & LOCKED) != 0 : "header not locked";
        assert LockRank.HEADER.leave();
        states.putLongVolatile(
                offset, word & GENERATION_MASK | Integer.toUnsignedLong(state & ~LOCKED));
    }

    /**
     * Adds a pin, and a use up to the maximum. The caller makes sure that the buffer keeps its tag
     * meanwhile. @return the new state
     */
    int pin(int buffer) {
        return pin(buffer, MAX_USAGE_COUNT);
    }

    /**
     * The same, a use up to {@code most}. 1 for a ring: what it reads does not become popular, but
     * the hand does not take it away at once either. (PostgreSQL: PinBuffer with a strategy.)
     */
    int pin(int buffer, int most) {
        int offset = buffer << 3;
        for (int spins = 0; ; spins++) {
            long word = states.getLongVolatile(offset);
            if ((word & LOCKED) != 0) {
                pause(spins);
                continue;
            }
            long next = pinned(word, most);
            if (states.compareAndSetLong(offset, word, next)) {
                return (int) next;
            }
        }
    }

    /** State and generation. */
    final long word(int buffer) {
        return states.getLongVolatile(buffer << 3);
    }

    /** State and generation, for {@link #pinUnchanged}; waits while the header is locked. */
    long unlockedWord(int buffer) {
        long word = word(buffer);
        for (int spins = 0; (word & LOCKED) != 0; spins++) {
            pause(spins);
            word = word(buffer);
        }
        return word;
    }

    /**
     * Adds a pin, and a use up to {@code most} as {@link #pin(int, int)}, if the word is still
     * {@code word}, in which the header is not locked. What was read of the tag between the two
     * calls is then what the pinned buffer holds: see {@link OptimisticLookup}.
     */
    boolean pinUnchanged(int buffer, long word, int most) {
        VarHandle.acquireFence(); // the reads of the tag come before the CAS
        return states.compareAndSetLong(buffer << 3, word, pinned(word, most));
    }

    /** The word with one more pin, and one more use unless it has the most: one change for both. */
    private static long pinned(long word, int most) {
        assert refcount((int) word) != REFCOUNT_MASK : "too many pins";
        return word
                + (usageCount((int) word) < most ? REFCOUNT_ONE + USAGECOUNT_ONE : REFCOUNT_ONE);
    }

    /** Adds a pin, but no use, and unlocks the header. (PostgreSQL: PinBuffer_Locked.) */
    void pinAndUnlockHeader(int buffer, int state) {
        unlockHeader(buffer, state + REFCOUNT_ONE);
    }

    /** Takes a pin away. @return true when somebody waits for being the last and now is */
    boolean unpin(int buffer) {
        int offset = buffer << 3;
        for (int spins = 0; ; spins++) {
            long word = states.getLongVolatile(offset);
            if ((word & LOCKED) != 0) {
                pause(spins);
                continue;
            }
            assert refcount((int) word) > 0 : "pin released that nobody holds";
            long next = word - REFCOUNT_ONE;
            if (states.compareAndSetLong(offset, word, next)) {
                return (next & PIN_COUNT_WAITER) != 0 && refcount((int) next) == 1;
            }
        }
    }

    /** {@link #unpinUnlessContended}: the pin is gone. */
    static final int GONE = 0;

    /** The pin is gone; somebody waits for being the last, and now is. */
    static final int LAST_BUT_WAITER = 1;

    /** The pin is there: somebody else changed the word at the same moment. */
    static final int CONTENDED = 2;

    /** {@link #unpin} that gives up at once when it meets somebody else, save a header lock. */
    int unpinUnlessContended(int buffer) {
        int offset = buffer << 3;
        long word = states.getLongVolatile(offset);
        if ((word & LOCKED) != 0) {
            return unpin(buffer) ? LAST_BUT_WAITER : GONE;
        }
        assert refcount((int) word) > 0 : "pin released that nobody holds";
        long next = word - REFCOUNT_ONE;
        if (!states.compareAndSetLong(offset, word, next)) {
            return CONTENDED;
        }
        return (next & PIN_COUNT_WAITER) != 0 && refcount((int) next) == 1 ? LAST_BUT_WAITER : GONE;
    }

    /** Sets the dirty flags, then the bit. The order matters: see {@link DirtyBitmap}. */
    void markDirty(int buffer) {
        int offset = buffer << 3;
        for (int spins = 0; ; spins++) {
            long word = states.getLongVolatile(offset);
            if ((word & LOCKED) != 0) {
                pause(spins);
                continue;
            }
            assert refcount((int) word) > 0 && (word & VALID) != 0
                    : "page marked dirty without a pin";
            if (states.compareAndSetLong(offset, word, word | DIRTY | JUST_DIRTIED)) {
                break;
            }
        }
        // Also when it was dirty already: whoever made it so may not have come to its bit yet.
        dirty.set(buffer);
    }

    /** The same for who has locked the header, and unlocks it. */
    void markDirtyAndUnlockHeader(int buffer, int state) {
        assert refcount(state) > 0 && (state & VALID) != 0 : "page marked dirty without a pin";
        unlockHeader(buffer, state | DIRTY | JUST_DIRTIED);
        dirty.set(buffer);
    }

    /** Takes the dirty flags away and unlocks the header. */
    void cleanAndUnlockHeader(int buffer, int state) {
        dirty.clear(buffer);
        unlockHeader(buffer, state & ~(DIRTY | JUST_DIRTIED | CHECKPOINT_NEEDED));
    }

    /** False if the buffer is clean, or became dirty a moment ago: see {@link DirtyBitmap}. */
    boolean mayBeDirty(int buffer) {
        return dirty.isSet(buffer);
    }

    int spc(int buffer) {
        return tags.getInt(buffer * BufferTag.LENGTH + BufferTag.SPC_OFFSET);
    }

    int db(int buffer) {
        return tags.getInt(buffer * BufferTag.LENGTH + BufferTag.DB_OFFSET);
    }

    int rel(int buffer) {
        return tags.getInt(buffer * BufferTag.LENGTH + BufferTag.REL_OFFSET);
    }

    int fork(int buffer) {
        return tags.getInt(buffer * BufferTag.LENGTH + BufferTag.FORK_OFFSET);
    }

    int block(int buffer) {
        return tags.getInt(buffer * BufferTag.LENGTH + BufferTag.BLOCK_OFFSET);
    }

    boolean hasTag(int buffer, int spc, int db, int rel, int fork, int block) {
        return BufferTag.matches(tags, buffer * BufferTag.LENGTH, spc, db, rel, fork, block);
    }

    boolean isOfRelation(int buffer, int spc, int db, int rel) {
        int offset = buffer * BufferTag.LENGTH;
        return tags.getInt(offset + BufferTag.REL_OFFSET) == rel
                && tags.getInt(offset + BufferTag.DB_OFFSET) == db
                && tags.getInt(offset + BufferTag.SPC_OFFSET) == spc;
    }

    /**
     * The first buffer from {@code from} on whose tag, read without any lock, names the relation;
     * {@code end} if none does.
     */
    int nextOfRelation(int from, int end, int spc, int db, int rel) {
        int buffer = from;
        while (buffer < end && !isOfRelation(buffer, spc, db, rel)) {
            buffer++;
        }
        return buffer;
    }

    /** The same for any of the first {@code count} relations, compared one after the other. */
    int nextOfAny(int from, int end, int[] spcs, int[] dbs, int[] rels, int count) {
        for (int buffer = from; buffer < end; buffer++) {
            int rel = rel(buffer);
            for (int i = 0; i < count; i++) {
                if (rels[i] == rel && isOfRelation(buffer, spcs[i], dbs[i], rel)) {
                    return buffer;
                }
            }
        }
        return end;
    }

    /** The same by binary search: the relations are sorted by {@code rels}, signed. */
    int nextOfSorted(int from, int end, int[] spcs, int[] dbs, int[] rels, int count) {
        for (int buffer = from; buffer < end; buffer++) {
            int rel = rel(buffer);
            int low = 0;
            int high = count;
            while (low < high) {
                int middle = low + high >>> 1;
                if (rels[middle] < rel) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            // The same number may be in several databases or tablespaces.
            for (; low < count && rels[low] == rel; low++) {
                if (isOfRelation(buffer, spcs[low], dbs[low], rel)) {
                    return buffer;
                }
            }
        }
        return end;
    }

    int nextOfDatabase(int from, int end, int db) {
        int buffer = from;
        while (buffer < end && db(buffer) != db) {
            buffer++;
        }
        return buffer;
    }

    /**
     * Under the header lock and the partition lock. Begins a new generation, which {@link
     * #unlockHeader} publishes together with the tag; the fence keeps the tag behind the lock bit
     * for whoever reads tags without a lock.
     */
    void setTag(int buffer, int spc, int db, int rel, int fork, int block) {
        nextGeneration(buffer);
        VarHandle.storeStoreFence();
        BufferTag.put(tags, buffer * BufferTag.LENGTH, spc, db, rel, fork, block);
    }

    /** A part of {@link #setTag}. */
    void nextGeneration(int buffer) {
        long word = states.getLong(buffer << 3); // ours while it is locked
        assert (word & LOCKED) != 0 : "tag changed without its header lock";
        states.putLong(buffer << 3, word + GENERATION_ONE);
    }

    int hash(int buffer) {
        return BufferTag.hash(spc(buffer), db(buffer), rel(buffer), fork(buffer), block(buffer));
    }

    /** The place of a pinned buffer's page, for messages. */
    String place(int buffer) {
        return Place.of(spc(buffer), db(buffer), rel(buffer), fork(buffer), block(buffer));
    }

    /** Header locks are held for nanoseconds, unless their holder lost its processor. */
    static void pause(int spins) {
        if (spins < 100) {
            Thread.onSpinWait();
        } else if (spins < 200) {
            Thread.yield();
        } else {
            LockSupport.parkNanos(50_000);
        }
    }
}
