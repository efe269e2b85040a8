package org.pgkernel.heap;

import org.pgkernel.base.Page;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;

/**
 * A heap table: where its pages are and how its rows are stored. Shared by all backends, one for
 * all, so that they share what is known of a TOAST table's chunks; fixed but for that; who gives
 * the table new files (TRUNCATE) makes a new one. What a backend remembers of it is in {@link
 * RelationState}. (PostgreSQL: RelationData.)
 */
public final class HeapRelation {
    /** (PostgreSQL: HEAP_DEFAULT_FILLFACTOR.) */
    public static final int DEFAULT_FILLFACTOR = 100;

    /** (PostgreSQL: HEAP_MIN_FILLFACTOR.) */
    public static final int MIN_FILLFACTOR = 10;

    private final SmgrRelation storage;
    private final int oid;
    private final TupleDescriptor descriptor;
    private final boolean logged;
    private final int fillFactor;
    private final HeapRelation toast;

    /** Of a TOAST table. */
    private final ToastIndex chunks = new ToastIndex();

    /**
     * @param oid the table's, which TOAST pointers name; not the number of its files
     * @param logged it survives a crash; false for an unlogged table, which is empty after one
     * @param fillFactor percent of a page that inserts fill
     * @param toast where long values go, or null
     */
    public HeapRelation(
            SmgrRelation storage,
            int oid,
            TupleDescriptor descriptor,
            boolean logged,
            int fillFactor,
            HeapRelation toast) {
        if (fillFactor < MIN_FILLFACTOR || fillFactor > 100) {
            throw new RefusedException(
                    "a table's fillfactor is from "
                            + MIN_FILLFACTOR
                            + " to 100 fillfactor="
                            + fillFactor);
        }
        this.storage = storage;
        this.oid = oid;
        this.descriptor = descriptor;
        this.logged = logged;
        this.fillFactor = fillFactor;
        this.toast = toast;
    }

    public SmgrRelation storage() {
        return storage;
    }

    public int oid() {
        return oid;
    }

    public TupleDescriptor descriptor() {
        return descriptor;
    }

    /** True if changes are logged. (PostgreSQL: RelationNeedsWAL.) */
    public boolean isLogged() {
        return logged;
    }

    public int fillFactor() {
        return fillFactor;
    }

    /** Bytes of a page that inserts leave to updates. (RelationGetTargetPageFreeSpace) */
    int reservedSpace() {
        return Page.SIZE * (100 - fillFactor) / 100;
    }

    /** The TOAST table, or null. */
    public HeapRelation toast() {
        return toast;
    }

    ToastIndex chunks() {
        return chunks;
    }

    @Override
    public String toString() {
        return storage.toString();
    }
}
