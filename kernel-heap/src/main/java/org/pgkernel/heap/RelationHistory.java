package org.pgkernel.heap;

/**
 * What the catalogue says of a relation before a vacuum.
 *
 * @param frozenXid no unfrozen id in it is older (relfrozenxid)
 * @param minMulti no multixact either (relminmxid)
 * @param pages blocks that it had when it was last counted, unsigned (relpages)
 * @param tuples live tuples that it had then, -1 if it never was counted (reltuples)
 */
public record RelationHistory(int frozenXid, int minMulti, int pages, double tuples) {}
