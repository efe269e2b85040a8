package org.pgkernel.recovery;

/** Numbers and names of PostgreSQL 15's resource managers. (PostgreSQL: rmgrlist.h.) */
public final class RmgrIds {
    public static final int XLOG = 0;
    public static final int TRANSACTION = 1;
    public static final int STORAGE = 2;
    public static final int CLOG = 3;
    public static final int DATABASE = 4;
    public static final int TABLESPACE = 5;
    public static final int MULTIXACT = 6;
    public static final int RELMAP = 7;
    public static final int STANDBY = 8;
    public static final int HEAP2 = 9;
    public static final int HEAP = 10;
    public static final int BTREE = 11;
    public static final int HASH = 12;
    public static final int GIN = 13;
    public static final int GIST = 14;
    public static final int SEQUENCE = 15;
    public static final int SPGIST = 16;
    public static final int BRIN = 17;
    public static final int COMMIT_TS = 18;
    public static final int REPLICATION_ORIGIN = 19;
    public static final int GENERIC = 20;
    public static final int LOGICAL_MESSAGE = 21;

    /** One more than the highest built-in number. */
    public static final int COUNT = 22;

    private static final String[] NAMES = {
        "XLOG",
        "Transaction",
        "Storage",
        "CLOG",
        "Database",
        "Tablespace",
        "MultiXact",
        "RelMap",
        "Standby",
        "Heap2",
        "Heap",
        "Btree",
        "Hash",
        "Gin",
        "Gist",
        "Sequence",
        "SPGist",
        "BRIN",
        "CommitTs",
        "ReplicationOrigin",
        "Generic",
        "LogicalMessage"
    };

    private RmgrIds() {}

    /**
     * As pg_waldump prints it; {@code custom###} for numbers of extensions, {@code UNKNOWN (n)} for
     * others.
     */
    public static String name(int rmid) {
        if (rmid >= 0 && rmid < COUNT) {
            return NAMES[rmid];
        }
        return rmid >= 128 && rmid <= 255
                ? String.format("custom%03d", rmid)
                : "UNKNOWN (" + rmid + ")";
    }
}
