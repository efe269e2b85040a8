package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.MAX_USAGE_COUNT;

import java.util.Arrays;
import org.pgkernel.base.BufferTag;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Descriptors, lookup and clock of a {@link LocalBufferPool}: plain arrays of one thread. A buffer
 * without a tag is free; one with a tag is in the hash table and holds a page, but for the moment
 * between {@link #rename} and the end of the read, when it is pinned.
 *
 * <p>The backend is no part of the tag: all relations here are one backend's.
 */
final class LocalBuffers {
    private static final int NONE = -1;

    private final int nbuffers;
    private final int mask;

    /** First buffer of each bucket's chain, and the next one of each buffer, or {@link #NONE}. */
    private final int[] heads;

    private final int[] next;
    private final int[] pins;
    private final byte[] uses;
    private final boolean[] tagged;
    private final boolean[] dirty;
    private final int[] spcs;
    private final int[] dbs;
    private final int[] rels;
    private final int[] forks;
    private final int[] blocks;

    private int hand;

    /** Buffers from here on were never used. */
    private int used;

    LocalBuffers(int nbuffers) {
        this.nbuffers = nbuffers;
        int buckets = Math.max(16, Integer.highestOneBit(nbuffers) << 1);
        mask = buckets - 1;
        heads = new int[buckets];
        Arrays.fill(heads, NONE);
        next = new int[nbuffers];
        pins = new int[nbuffers];
        uses = new byte[nbuffers];
        tagged = new boolean[nbuffers];
        dirty = new boolean[nbuffers];
        spcs = new int[nbuffers];
        dbs = new int[nbuffers];
        rels = new int[nbuffers];
        forks = new int[nbuffers];
        blocks = new int[nbuffers];
    }

    int used() {
        return used;
    }

    int spc(int index) {
        return spcs[index];
    }

    int db(int index) {
        return dbs[index];
    }

    int rel(int index) {
        return rels[index];
    }

    int fork(int index) {
        return forks[index];
    }

    int block(int index) {
        return blocks[index];
    }

    boolean isPinned(int index) {
        return pins[index] != 0;
    }

    boolean isDirty(int index) {
        return dirty[index];
    }

    void setDirty(int index, boolean now) {
        dirty[index] = now;
    }

    boolean isOf(int index, SmgrRelation relation) {
        return tagged[index]
                && rels[index] == relation.relNumber()
                && dbs[index] == relation.dbOid()
                && spcs[index] == relation.spcOid();
    }

    /**
     * @param fork negative for any
     */
    boolean isOf(int index, SmgrRelation relation, int fork, int firstBlock) {
        return isOf(index, relation)
                && (fork < 0 || forks[index] == fork)
                && Integer.compareUnsigned(blocks[index], firstBlock) >= 0;
    }

    /** The buffer that holds the block, or a negative number. */
    int find(SmgrRelation relation, int fork, int block) {
        int hash =
                BufferTag.hash(
                        relation.spcOid(), relation.dbOid(), relation.relNumber(), fork, block);
        for (int index = heads[hash & mask]; index != NONE; index = next[index]) {
            if (blocks[index] == block && forks[index] == fork && isOf(index, relation)) {
                return index;
            }
        }
        return NONE;
    }

    /** A use counts when it is the first of several at once. (PostgreSQL: LocalBufferAlloc.) */
    void pin(int index) {
        if (pins[index]++ == 0 && uses[index] < MAX_USAGE_COUNT) {
            uses[index]++;
        }
    }

    void pinAgain(int index) {
        assert pins[index] > 0 : "pinned again without a pin";
        pins[index]++;
    }

    void unpin(int index) {
        assert pins[index] > 0 : "pin released that nobody holds";
        pins[index]--;
    }

    /** An unpinned buffer, chosen by the clock; negative when all are pinned. */
    int victim() {
        for (int tries = nbuffers; tries > 0; ) {
            int index = hand;
            hand = hand + 1 == nbuffers ? 0 : hand + 1;
            if (pins[index] != 0) {
                tries--;
            } else if (uses[index] > 0) {
                uses[index]--;
                tries = nbuffers;
            } else {
                return index;
            }
        }
        return NONE;
    }

    /** Gives a clean victim another tag, one use, and one pin. */
    void rename(int index, SmgrRelation relation, int fork, int block) {
        assert pins[index] == 0 && !dirty[index] : "not a clean victim";
        unlink(index);
        spcs[index] = relation.spcOid();
        dbs[index] = relation.dbOid();
        rels[index] = relation.relNumber();
        forks[index] = fork;
        blocks[index] = block;
        tagged[index] = true;
        int bucket = hash(index) & mask;
        next[index] = heads[bucket];
        heads[bucket] = index;
        uses[index] = 1;
        pins[index] = 1;
        used = Math.max(used, index + 1);
    }

    /** Ends a failed claim: the page goes, unless it was here and pinned before. */
    void giveUp(int index) {
        if (pins[index] > 1) {
            pins[index]--;
        } else {
            forget(index);
        }
    }

    /** Throws the page away, with its pin if it has one. */
    void forget(int index) {
        unlink(index);
        pins[index] = 0;
        uses[index] = 0;
        dirty[index] = false;
    }

    private void unlink(int index) {
        if (!tagged[index]) {
            return;
        }
        int bucket = hash(index) & mask;
        if (heads[bucket] == index) {
            heads[bucket] = next[index];
        } else {
            int before = heads[bucket];
            while (next[before] != index) {
                before = next[before];
            }
            next[before] = next[index];
        }
        tagged[index] = false;
    }

    private int hash(int index) {
        return BufferTag.hash(spcs[index], dbs[index], rels[index], forks[index], blocks[index]);
    }

    /** BUF-18: a page is in the table exactly once; what has no tag is clean and unpinned. */
    void check() {
        int chained = 0;
        for (int bucket = 0; bucket <= mask; bucket++) {
            for (int index = heads[bucket]; index != NONE; index = next[index]) {
                chained++;
                require(tagged[index] && (hash(index) & mask) == bucket, "wrong chain", index);
                require(chained <= nbuffers, "loop in a chain", index);
            }
        }
        int tags = 0;
        for (int index = 0; index < nbuffers; index++) {
            if (tagged[index]) {
                tags++;
                require(index < used, "used without being counted", index);
            } else {
                require(!dirty[index] && pins[index] == 0, "no page, but in use", index);
            }
            require(pins[index] >= 0 && uses[index] <= MAX_USAGE_COUNT, "count", index);
        }
        require(tags == chained, "tagged but not chained", -1);
    }

    private static void require(boolean holds, String what, int index) {
        if (!holds) {
            throw new AssertionError("BUF-18: " + what + " local buffer=" + ~index);
        }
    }
}
