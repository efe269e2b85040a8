package org.pgkernel.base;

/**
 * The order in which a thread may take the kernel's locks: never one that ranks before a lock it
 * holds. Locks of some ranks may be held several at a time, in an order of their own: content locks
 * (block order within an operation), reads in progress (block order within a fork), mapping
 * partitions (by number). Under the last ones, the <em>leaves</em>, nothing is taken at all.
 *
 * <p>Checked only when assertions are on: {@code assert LockRank.CONTENT.enter()} right before
 * taking a lock, so that an inversion is named where it would hang, and {@code assert
 * LockRank.CONTENT.leave()} beside giving it up, in the same thread. Who takes a lock without
 * waiting for it cannot close a circle, and notes it by {@link #enterTried}.
 *
 * <p>Why this order: who found no room in a heap looks at its map again, and adds pages, while he
 * holds the heap's growth lock, so that comes before content. Redo and index code read, and extend
 * a relation, while they hold another page's content lock, so content comes before those. Who reads
 * a block may have to write a victim to make room for the next one, so a read comes before a write;
 * who writes never waits for a read.
 */
public enum LockRank {
    RELATION_GROWTH(false, false),
    CONTENT(true, false),
    RELATION_EXTENSION(false, false),
    READ_IN_PROGRESS(true, false),
    WRITE_IN_PROGRESS(false, false),
    MAPPING_PARTITION(true, false),
    FORK_STRIPE(false, false),
    REPLACEMENT(false, false),
    HEADER(false, true),
    FREE_LIST(false, true),
    CONTROL_FILE(false, true);

    private static final LockRank[] RANKS = values();
    private static final ThreadLocal<int[]> HELD =
            ThreadLocal.withInitial(() -> new int[RANKS.length]);

    private final boolean several;
    private final boolean leaf;

    LockRank(boolean several, boolean leaf) {
        this.several = several;
        this.leaf = leaf;
    }

    /**
     * Notes that this thread takes a lock of this rank; fails when that breaks the order. Always
     * true.
     */
    public boolean enter() {
        int[] held = HELD.get();
        for (LockRank rank : RANKS) {
            if (held[rank.ordinal()] != 0 && !mayFollow(rank)) {
                throw new AssertionError(
                        "BASE-9, lock order: " + this + " taken while holding " + rank);
            }
        }
        held[ordinal()]++;
        return true;
    }

    private boolean mayFollow(LockRank held) {
        return !held.leaf && (held.ordinal() < ordinal() || held == this && several);
    }

    /**
     * Notes that this thread got a lock of this rank without waiting: a try that succeeded, or a
     * lock that nobody else can know yet. Only under a leaf is that an error too. Always true.
     */
    public boolean enterTried() {
        int[] held = HELD.get();
        for (LockRank rank : RANKS) {
            if (held[rank.ordinal()] != 0 && rank.leaf) {
                throw new AssertionError(
                        "BASE-9, lock order: " + this + " tried while holding " + rank);
            }
        }
        held[ordinal()]++;
        return true;
    }

    /** Notes that this thread gives up a lock of this rank. Always true. */
    public boolean leave() {
        int[] held = HELD.get();
        if (held[ordinal()] == 0) {
            throw new AssertionError("lock order: " + this + " given up but not held");
        }
        held[ordinal()]--;
        return true;
    }

    /**
     * True if this thread holds a lock of this rank, by the notes of {@link #enter}; for
     * assertions.
     */
    public boolean isHeld() {
        return HELD.get()[ordinal()] != 0;
    }
}
