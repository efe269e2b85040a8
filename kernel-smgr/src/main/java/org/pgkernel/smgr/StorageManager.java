package org.pgkernel.smgr;

import org.pgkernel.base.disk.Disk;

/** All relations of a data directory. Thread-safe. */
public final class StorageManager implements AutoCloseable {
    /** Blocks of a segment file: 1 GiB. (PostgreSQL: RELSEG_SIZE.) */
    public static final int SEGMENT_BLOCKS = 131_072;

    /**
     * @param dataDirectory absolute path
     * @param segmentBlocks blocks of a segment; {@link #SEGMENT_BLOCKS} but in tests
     */
    public StorageManager(Disk disk, String dataDirectory, int segmentBlocks, SizePolicy policy, SyncRequests syncRequests) {}

    public Disk disk() {
        throw new AssertionError("stub");
    }

    public String dataDirectory() {
        throw new AssertionError("stub");
    }

    public SyncRequests syncRequests() {
        throw new AssertionError("stub");
    }

    /** Tells whether redo is running; sizes are accurate then under either policy. */
    public void inRecovery(boolean inRecovery) {}

    public boolean inRecovery() {
        throw new AssertionError("stub");
    }

    /** The relation's handle, the same object for everybody; opens no file; allocates nothing when it is known already. */
    public SmgrRelation open(int spcOid, int dbOid, int relNumber) {
        throw new AssertionError("stub");
    }

    /** Closes the relation's files and forgets its sizes and its handle. (PostgreSQL: smgrclose.) */
    public void close(SmgrRelation relation) {}

    /** Closes every file and forgets every size and handle. (PostgreSQL: smgrcloseall.) */
    public void closeAll() {}

    /** The same for one database, before its directory is removed or replaced. */
    public void closeDatabase(int dbOid) {}

    /**
     * Removes all forks of the first {@code count} relations, whose buffers the caller has dropped already; pending sync requests are
     * forgotten first. Outside redo the first segment of the main fork is truncated and kept until the next checkpoint. In redo it goes
     * at once. (PostgreSQL: smgrdounlinkall, mdunlink.)
     */
    public void unlinkAll(SmgrRelation[] relations, int count, boolean isRedo) {}

    @Override
    public void close() {}
}
