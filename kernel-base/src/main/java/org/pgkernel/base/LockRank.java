package org.pgkernel.base;

/**
 * The order in which a thread may take the kernel's locks: never one that ranks before a lock it
 * holds. Buffers' content locks and mapping partitions may be held several at a time, in an order
 * of their own (block order within an operation, partition number).
 *
 * <p>Checked only when assertions are on: {@code assert LockRank.CONTENT.enter()} right after
 * taking a lock and {@code assert LockRank.CONTENT.leave()} right before giving it up, in the same
 * thread.
 *
 * <p>A content lock ranks before a mapping partition, because redo and index code look up one page
 * while they hold another's.
 */
public enum LockRank {
    RELATION_EXTENSION(false),
    CONTENT(true),
    IO_IN_PROGRESS(false),
    MAPPING_PARTITION(true),
    HEADER(false),
    CONTROL_FILE(false);

    private static final int RANKS = 6;
    private static final ThreadLocal<int[]> HELD = ThreadLocal.withInitial(() -> new int[RANKS]);

    private final boolean several;

    LockRank(boolean several) {
        this.several = several;
    }

    /**
     * Notes that this thread took a lock of this rank; fails when that breaks the order. Always
     * true.
     */
    public boolean enter() {
        int[] held = HELD.get();
        for (int rank = ordinal() + (several ? 1 : 0); rank < RANKS; rank++) {
            if (held[rank] != 0) {
                throw new AssertionError(
                        "BASE-9, lock order: " + this + " taken while holding " + values()[rank]);
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
