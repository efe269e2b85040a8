package org.pgkernel.bufmgr;

/** Who wrote a dirty page; counters tell them apart. (PostgreSQL: pg_stat_bgwriter's buffers_*.) */
public enum WriteOrigin {
    /** A checkpoint. */
    CHECKPOINTER,
    /** The background writer, ahead of the clock hand. */
    BACKGROUND_WRITER,
    /** Who needed the buffer for another page, or wrote its own page by {@code flushOne}. */
    BACKEND,
    /** A flush of relations or of a database. */
    FLUSH
}
