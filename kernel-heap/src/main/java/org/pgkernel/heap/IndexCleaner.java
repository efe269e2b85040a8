package org.pgkernel.heap;

/** The indexes of a table, as a vacuum of the table needs them. */
public interface IndexCleaner {
    /**
     * Removes every entry that leads to one of these line pointers, from all indexes. When it
     * returns the line pointers may be used anew. May be called several times. (PostgreSQL:
     * ambulkdelete of each index.)
     */
    void removeEntries(DeadTuples dead);

    /**
     * The table is done. (PostgreSQL: amvacuumcleanup of each index.)
     *
     * @param tuples in the table
     * @param estimated some pages were passed over, so that is a guess
     */
    void cleanUp(double tuples, boolean estimated);
}
