package org.pgkernel.cluster;

import java.util.concurrent.ConcurrentHashMap;
import org.pgkernel.heap.TupleDescriptor;

/**
 * What all backends remember of our catalogue. Thread-safe.
 *
 * <p><b>Entries</b> are put in by who holds a lock on the table and has not changed it himself, and
 * taken out by who has, right before he commits, while he still holds the lock that keeps everybody
 * else out. So an entry that is found under a lock is what has committed. Names, rows' places and
 * columns are hints: who uses one looks whether it is true. (PostgreSQL: relcache.c, inval.c.)
 */
final class TableNames {
    /** By oid. */
    private final ConcurrentHashMap<Integer, TableEntry> entries = new ConcurrentHashMap<>();

    private final ConcurrentHashMap<String, Integer> names = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<Integer, Long> rows = new ConcurrentHashMap<>();

    /** A table's columns do not change. */
    private final ConcurrentHashMap<Integer, TupleDescriptor> columns = new ConcurrentHashMap<>();

    TableEntry entry(int oid) {
        return entries.get(oid);
    }

    void put(TableEntry entry) {
        entries.put(entry.oid(), entry);
    }

    void invalidate(int oid) {
        entries.remove(oid);
    }

    /** 0 when unknown. */
    int oid(String name) {
        return names.getOrDefault(name, 0);
    }

    void name(String name, int oid) {
        names.put(name, oid);
    }

    /** 0 when unknown. */
    long row(int oid) {
        return rows.getOrDefault(oid, 0L);
    }

    void row(int oid, long tid) {
        rows.put(oid, tid);
    }

    TupleDescriptor columns(int oid) {
        return columns.get(oid);
    }

    void columns(int oid, TupleDescriptor descriptor) {
        columns.put(oid, descriptor);
    }

    /** The table is gone for good. */
    void forget(int oid, String name) {
        entries.remove(oid);
        rows.remove(oid);
        columns.remove(oid);
        names.remove(name, oid);
    }
}
