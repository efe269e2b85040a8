package org.pgkernel.bufmgr;

/** What {@link PoolCounters} counts, since the pool was opened. */
public enum PoolCounter {
    /** Reads that found their page in the pool, by neighbour and private pin, too. */
    HITS("hits", "pages"),
    /** Pages that came from files, sound or not. (PostgreSQL: blks_read.) */
    READS("reads", "pages"),
    /** Pages added at a fork's end. */
    EXTENSIONS("extensions", "pages"),
    /** Pages that left their buffer to another page; a drop is none. */
    EVICTIONS("evictions", "pages"),
    WRITES_BY_CHECKPOINTER("writes by checkpointer", "pages"),
    WRITES_BY_BACKGROUND_WRITER("writes by background writer", "pages"),
    /** To make room, or by {@code flushOne}. */
    WRITES_BY_BACKENDS("writes by backends", "pages"),
    /** By flushes of relations and databases. */
    WRITES_BY_FLUSHES("writes by flushes", "pages"),
    DROPS_BY_FULL_SCAN("drops by full scan", "calls"),
    DROPS_BY_LOOKUP("drops by lookup", "calls"),
    DROPS_BY_FINGERPRINT_SCAN("drops by fingerprint scan", "calls"),
    DROPS_BY_LIST_WALK("drops by list walk", "calls"),
    DROPS_OF_NOTHING("drops of nothing resident", "calls"),
    DROPPED("dropped", "pages"),
    /** Files and directories made durable; the storage manager's, whoever uses it. */
    SYNCS("syncs", "calls");

    private final String text;
    private final String unit;

    PoolCounter(String text, String unit) {
        this.text = text;
        this.unit = unit;
    }

    /** The counter's name for people and programs. */
    public String text() {
        return text;
    }

    public String unit() {
        return unit;
    }

    static PoolCounter of(WriteOrigin origin) {
        return switch (origin) {
            case CHECKPOINTER -> WRITES_BY_CHECKPOINTER;
            case BACKGROUND_WRITER -> WRITES_BY_BACKGROUND_WRITER;
            case BACKEND -> WRITES_BY_BACKENDS;
            case FLUSH -> WRITES_BY_FLUSHES;
        };
    }

    static PoolCounter of(DropPath path) {
        return switch (path) {
            case FULL_SCAN -> DROPS_BY_FULL_SCAN;
            case LOOKUP -> DROPS_BY_LOOKUP;
            case FINGERPRINT_SCAN -> DROPS_BY_FINGERPRINT_SCAN;
            case LIST_WALK -> DROPS_BY_LIST_WALK;
            case NOTHING_RESIDENT -> DROPS_OF_NOTHING;
        };
    }
}
