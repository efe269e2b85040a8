package org.pgkernel.cluster;

import org.pgkernel.heap.HeapRelation;

/**
 * A table as the catalogue describes it at one moment. Immutable.
 *
 * @param toastOid its TOAST table's, 0 for none
 */
record TableEntry(int oid, String name, HeapRelation heap, int toastOid) {}
