package org.pgkernel.recovery;

import org.pgkernel.wal.WalRecord;

/**
 * Redo of one resource manager's records. Called by one thread. (PostgreSQL: RmgrData, rmgrlist.h.)
 */
public interface ResourceManager {
    /** PostgreSQL's resource manager number. */
    int id();

    /** PostgreSQL's name, as pg_waldump prints it: {@code Heap2}. */
    String name();

    /**
     * The record type's name as pg_waldump prints it, {@code INSERT+INIT}, or null when this
     * manager does not know the type.
     *
     * @param info the whole info byte
     */
    String identify(int info);

    /**
     * True if {@link #redo} can apply records of this type; a type that is not covered makes
     * recovery refuse the WAL before it begins.
     */
    boolean covers(int info);

    /** The same with the record at hand, for types that are covered in part. */
    default boolean covers(WalRecord record) {
        return covers(record.info());
    }

    /** Applies the record. Leaves no buffer held in {@code context}. */
    void redo(WalRecord record, RedoContext context);
}
