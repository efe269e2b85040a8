package org.pgkernel.xact;

/** Who is told that ids run out. Called without locks, by the thread that wanted an id. */
public interface WraparoundListener {
    /** One sentence for the log: how many ids are left. (PostgreSQL: xidWarnLimit) */
    void warning(String message);

    /**
     * The database with this oid holds the oldest ids: vacuum it. (PostgreSQL:
     * PMSIGNAL_START_AUTOVAC_LAUNCHER)
     */
    void vacuumNeeded(int database);
}
