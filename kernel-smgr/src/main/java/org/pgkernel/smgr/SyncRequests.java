package org.pgkernel.smgr;

import org.pgkernel.base.disk.Disk;

/**
 * Files to be made durable, and files to be removed, at the next checkpoint: deduplicated, cancelled when the relation goes away.
 * Thread-safe. (PostgreSQL: sync.c.)
 */
public final class SyncRequests {
    public SyncRequests(Disk disk, String dataDirectory) {}

    /** Queues the sync of one segment. */
    public void register(int spcOid, int dbOid, int relNumber, int fork, int segment) {}

    /** Cancels the queued syncs of one fork, all segments. */
    public void forget(int spcOid, int dbOid, int relNumber, int fork) {}

    /** Cancels everything queued for a database, unlinks too. (PostgreSQL: ForgetDatabaseSyncRequests.) */
    public void forgetDatabase(int dbOid) {}

    /** Queues the removal of a kept first segment after the next checkpoint. */
    public void registerUnlink(int spcOid, int dbOid, int relNumber) {}

    /** A checkpoint begins: unlinks queued from here on wait for the next one. (PostgreSQL: SyncPreCheckpoint.) */
    public void preCheckpoint() {}

    /** Syncs every file that was queued before the call. A failure is fatal: it throws KernelStoppedException. (PostgreSQL: ProcessSyncRequests.) @return files synced */
    public int process() {
        throw new AssertionError("stub");
    }

    /** Removes the files queued before {@link #preCheckpoint}. (PostgreSQL: SyncPostCheckpoint.) */
    public void postCheckpoint() {}

    /** How many syncs wait. */
    public int pending() {
        throw new AssertionError("stub");
    }
}
