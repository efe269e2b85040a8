package org.pgkernel.cluster;

import java.util.HashSet;
import java.util.Set;

/**
 * The tables that a backend's transaction has created, dropped, or given other files: until it ends
 * it asks the catalogue for them, and when it commits everybody else has to. One thread.
 */
final class ChangedTables {
    private final Set<Integer> oids = new HashSet<>();

    void add(int oid) {
        oids.add(oid);
    }

    boolean hasChanged(int oid) {
        return !oids.isEmpty() && oids.contains(oid);
    }

    /** Right before the commit, while this transaction's locks keep everybody else out. */
    void invalidate(TableNames known) {
        for (int oid : oids) {
            known.invalidate(oid);
        }
    }

    void clear() {
        oids.clear();
    }
}
