package org.pgkernel.cluster;

/**
 * Where tables are described: our own catalogue, or that of a PostgreSQL cluster. Read as of now,
 * not as of the transaction's snapshot: that one could name files that are gone. (PostgreSQL:
 * GetCatalogSnapshot.)
 */
interface TableCatalog {
    /**
     * The oid of the table with this name, 0 for none. Without a lock on the table the answer may
     * be old when the caller gets it.
     *
     * @throws org.pgkernel.base.error.RefusedException when there is one that cannot be opened
     */
    int find(Backend backend, String name);

    /** The table, under a lock on it; null when there is none any more. */
    TableEntry read(Backend backend, int oid);
}
