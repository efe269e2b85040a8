package org.pgkernel.xact;

/**
 * The strengths of a lock, in PostgreSQL's order and with its conflicts. (PostgreSQL: lockdefs.h,
 * LockConflicts, lock.c.)
 */
public enum LockMode {
    ACCESS_SHARE(0b1000_0000),
    ROW_SHARE(0b1100_0000),
    ROW_EXCLUSIVE(0b1111_0000),
    SHARE_UPDATE_EXCLUSIVE(0b1111_1000),
    SHARE(0b1110_1100),
    SHARE_ROW_EXCLUSIVE(0b1111_1100),
    EXCLUSIVE(0b1111_1110),
    ACCESS_EXCLUSIVE(0b1111_1111);

    static final int COUNT = 8;
    private static final LockMode[] MODES = values();

    /** Bit of an ordinal for each mode that this one conflicts with. */
    final int conflicts;

    LockMode(int conflicts) {
        this.conflicts = conflicts;
    }

    static LockMode of(int ordinal) {
        return MODES[ordinal];
    }

    int bit() {
        return 1 << ordinal();
    }

    /** True if two sessions cannot hold a lock in these modes at a time. */
    public boolean conflictsWith(LockMode other) {
        return (conflicts & other.bit()) != 0;
    }
}
