package org.pgkernel.base;

/**
 * The forks of a relation, in PostgreSQL's order; {@link #ordinal()} is PostgreSQL's fork number.
 * (PostgreSQL: relpath.h.)
 */
public enum ForkNumber {
    MAIN(""),
    FSM("_fsm"),
    VISIBILITY_MAP("_vm"),
    INIT("_init");

    /** How many forks a relation may have. */
    public static final int COUNT = 4;

    private static final ForkNumber[] ALL = values();

    private final String suffix;

    ForkNumber(String suffix) {
        this.suffix = suffix;
    }

    /** What follows the relation file number in the file's name; empty for the main fork. */
    public String suffix() {
        return suffix;
    }

    /** The fork with this number; allocates nothing. */
    public static ForkNumber of(int number) {
        return ALL[number];
    }
}
