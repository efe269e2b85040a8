package org.pgkernel.testkit;

/**
 * Kinds of calls on a {@link SimulatedDisk}; {@link #ANY} and {@link #CHANGE} stand for several.
 */
public enum DiskCall {
    /** Every call. */
    ANY(false),
    /** Every call after which a crash may find another disk than before it. */
    CHANGE(false),
    OPEN(false),
    /** Also an {@code openOrCreate} that makes the file. */
    CREATE(true),
    READ(false),
    WRITE(true),
    SIZE(false),
    TRUNCATE(true),
    /** {@code sync} and {@code dataSync}. */
    SYNC(true),
    CLOSE(false),
    UNLINK(true),
    RENAME(true),
    CREATE_DIRECTORY(true),
    REMOVE_DIRECTORY(true),
    SYNC_DIRECTORY(true),
    /** {@code exists}, {@code list}, {@code isDirectory}. */
    LOOK(false);

    private final boolean changes;

    DiskCall(boolean changes) {
        this.changes = changes;
    }

    boolean changes() {
        return changes;
    }

    /** True if this kind, perhaps one that stands for several, covers a call. */
    boolean covers(DiskCall call) {
        return this == call || this == ANY || this == CHANGE && call.changes;
    }

    boolean syncs() {
        return this == SYNC || this == SYNC_DIRECTORY;
    }
}
