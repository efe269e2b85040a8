package org.pgkernel.cluster;

import org.pgkernel.heap.HeapRelation;

/**
 * A table as the catalogue describes it at one moment. Immutable.
 *
 * @param tid of its row in the catalogue
 * @param toastOid its TOAST table's, 0 for none
 * @param frozenXid no xid before it is in the table
 * @param minMulti no multixact before it is in the table
 */
record TableEntry(
        int oid,
        String name,
        HeapRelation heap,
        long tid,
        int toastOid,
        boolean vacuumTruncate,
        int frozenXid,
        int minMulti) {}
