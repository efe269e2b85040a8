package org.pgkernel.base;

/**
 * Where a relation's files live: tablespace, database, relation file number, each an unsigned
 * 32-bit number. (PostgreSQL 16 gave it this name; in 15 it is RelFileNode, relfilenode.h.)
 *
 * @param spcOid tablespace; {@link #DEFAULT_TABLESPACE} is {@code base/}, {@link
 *     #GLOBAL_TABLESPACE} is {@code global/}
 * @param dbOid database, 0 for shared relations
 * @param relNumber relation file number
 */
public record RelFileLocator(int spcOid, int dbOid, int relNumber) {
    public static final int DEFAULT_TABLESPACE = 1663;
    public static final int GLOBAL_TABLESPACE = 1664;

    /**
     * The directory below {@code pg_tblspc/OID}. (PostgreSQL: TABLESPACE_VERSION_DIRECTORY, 15.)
     */
    public static final String TABLESPACE_VERSION_DIRECTORY = "PG_15_202209061";

    /** {@code spc/db/rel}, as PostgreSQL's tools print it. */
    @Override
    public String toString() {
        return Integer.toUnsignedString(spcOid)
                + "/"
                + Integer.toUnsignedString(dbOid)
                + "/"
                + Integer.toUnsignedString(relNumber);
    }

    /**
     * The database's directory, relative to the data directory. (PostgreSQL: GetDatabasePath,
     * relpath.c.)
     */
    public static String databasePath(int spcOid, int dbOid) {
        return switch (spcOid) {
            case GLOBAL_TABLESPACE -> "global";
            case DEFAULT_TABLESPACE -> "base/" + Integer.toUnsignedString(dbOid);
            default ->
                    "pg_tblspc/"
                            + Integer.toUnsignedString(spcOid)
                            + "/"
                            + TABLESPACE_VERSION_DIRECTORY
                            + "/"
                            + Integer.toUnsignedString(dbOid);
        };
    }

    /**
     * The fork's first segment, relative to the data directory. (PostgreSQL: GetRelationPath,
     * relpath.c.)
     */
    public String path(ForkNumber fork) {
        return databasePath(spcOid, dbOid)
                + "/"
                + Integer.toUnsignedString(relNumber)
                + fork.suffix();
    }

    /**
     * The same for a temporary relation, whose name says whose it is: {@code base/5/t3_16385}.
     * (PostgreSQL: GetRelationPath with a backend id.)
     */
    public String temporaryPath(int backend, ForkNumber fork) {
        assert backend >= 0 && spcOid != GLOBAL_TABLESPACE : "not a temporary relation's place";
        return databasePath(spcOid, dbOid)
                + "/t"
                + backend
                + "_"
                + Integer.toUnsignedString(relNumber)
                + fork.suffix();
    }
}
