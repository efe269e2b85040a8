package org.pgkernel.smgr;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.pgkernel.base.disk.Disk;

/**
 * All relations of a data directory. Thread-safe.
 *
 * <p>One manager is one view of the directory: remembered sizes are true only while nobody else
 * changes relation files. Whoever does (a database copied or removed, unlogged relations reset)
 * closes the relations first and again afterwards.
 *
 * <p>Failure of a sync or a close stops {@link SyncRequests} for good.
 */
public final class StorageManager implements AutoCloseable {
    /** Blocks of a segment file: 1 GiB. (PostgreSQL: RELSEG_SIZE.) */
    public static final int SEGMENT_BLOCKS = 131_072;

    /** Sets how many segment files are kept open. (PostgreSQL: max_files_per_process.) */
    public static final String MAX_OPEN_FILES_PROPERTY = "pgkernel.smgr.maxOpenFiles";

    private static final int DEFAULT_MAX_OPEN_FILES = 900;

    private final Disk disk;
    private final String dataDirectory;
    private final int segmentBlocks;
    private final SizePolicy policy;
    private final Supplier<RememberedSize> sizes;
    private final SyncRequests syncRequests;
    private final OpenFiles openFiles;

    /** Read by anybody; changed under this monitor. */
    private final RelationTable relations = new RelationTable();

    private volatile boolean inRecovery;

    /** {@code policy == SHARED || inRecovery}, in one read. */
    private volatile boolean sizesAccurate;

    /**
     * @param dataDirectory absolute path
     * @param segmentBlocks blocks of a segment; {@link #SEGMENT_BLOCKS} but in tests
     */
    public StorageManager(
            Disk disk,
            String dataDirectory,
            int segmentBlocks,
            SizePolicy policy,
            SyncRequests syncRequests) {
        this(
                disk,
                dataDirectory,
                segmentBlocks,
                policy,
                syncRequests,
                Integer.getInteger(MAX_OPEN_FILES_PROPERTY, DEFAULT_MAX_OPEN_FILES));
    }

    /**
     * @param maxOpenFiles segment files kept open; past that the least recently used are closed
     *     until they are needed
     */
    public StorageManager(
            Disk disk,
            String dataDirectory,
            int segmentBlocks,
            SizePolicy policy,
            SyncRequests syncRequests,
            int maxOpenFiles) {
        this(
                disk,
                dataDirectory,
                segmentBlocks,
                policy,
                syncRequests,
                maxOpenFiles,
                RememberedSize::new);
    }

    /**
     * @param sizes makes what remembers a fork's size; another one only in tests, of the tests
     */
    StorageManager(
            Disk disk,
            String dataDirectory,
            int segmentBlocks,
            SizePolicy policy,
            SyncRequests syncRequests,
            int maxOpenFiles,
            Supplier<RememberedSize> sizes) {
        assert segmentBlocks > 0 && segmentBlocks <= SEGMENT_BLOCKS && maxOpenFiles > 0;
        this.disk = disk;
        this.dataDirectory = dataDirectory;
        this.segmentBlocks = segmentBlocks;
        this.policy = policy;
        this.sizes = sizes;
        this.syncRequests = syncRequests;
        this.openFiles = new OpenFiles(disk, maxOpenFiles, syncRequests);
        this.sizesAccurate = policy == SizePolicy.SHARED;
        syncRequests.addManager(this);
    }

    public Disk disk() {
        return disk;
    }

    public String dataDirectory() {
        return dataDirectory;
    }

    public SyncRequests syncRequests() {
        return syncRequests;
    }

    /**
     * Tells whether redo is running; sizes are accurate then under either policy. What was
     * remembered outside recovery, as a hint, is forgotten when recovery begins.
     */
    public void inRecovery(boolean inRecovery) {
        synchronized (this) {
            if (inRecovery && !this.inRecovery && policy == SizePolicy.RECOVERY_ONLY) {
                relations.forEach(SmgrRelation::forgetSizes);
            }
            this.inRecovery = inRecovery;
            sizesAccurate = inRecovery || policy == SizePolicy.SHARED;
        }
    }

    public boolean inRecovery() {
        return inRecovery;
    }

    /**
     * The relation's handle, the same object for everybody; opens no file; allocates nothing when
     * it is known already.
     */
    public SmgrRelation open(int spcOid, int dbOid, int relNumber) {
        return open(spcOid, dbOid, relNumber, SmgrRelation.SHARED);
    }

    /**
     * The same for a backend's temporary relation, which only that backend uses; its number may be
     * that of another relation, too. (PostgreSQL: smgropen with a backend id.)
     *
     * @param backend the backend's number, or {@link SmgrRelation#SHARED}
     */
    public SmgrRelation open(int spcOid, int dbOid, int relNumber, int backend) {
        SmgrRelation known = relations.find(spcOid, dbOid, relNumber, backend);
        return known != null ? known : enter(spcOid, dbOid, relNumber, backend);
    }

    /**
     * Closes the relation's files and forgets its sizes and its handle. Whoever still has the
     * handle may go on using it: it passes calls on to the relation's new one. (PostgreSQL:
     * smgrclose.)
     */
    public void close(SmgrRelation relation) {
        synchronized (this) {
            SmgrRelation known =
                    relations.find(
                            relation.spcOid(),
                            relation.dbOid(),
                            relation.relNumber(),
                            relation.backend());
            if (known != null) {
                drop(known);
            }
        }
    }

    /** Closes every file and forgets every size and handle. (PostgreSQL: smgrcloseall.) */
    public void closeAll() {
        closeMatching(false, 0);
    }

    /** The same for one database, before its directory is removed or replaced. */
    public void closeDatabase(int dbOid) {
        closeMatching(true, dbOid);
    }

    /**
     * Removes all forks of the first {@code count} relations and closes their handles; the caller
     * has dropped the buffers already. Pending sync requests are forgotten first. Outside redo the
     * first segment of the main fork is truncated and kept until the next checkpoint. In redo it
     * goes at once. A missing file is fine; a file that cannot be removed is a warning, since there
     * is no way back. (PostgreSQL: smgrdounlinkall, mdunlink.)
     */
    public void unlinkAll(SmgrRelation[] relations, int count, boolean isRedo) {
        for (int i = 0; i < count; i++) {
            relations[i].unlink(isRedo);
        }
        for (int i = 0; i < count; i++) {
            close(relations[i]);
        }
    }

    /** Segment files open now; not more than the cap, but for threads at work at once. */
    public int openFileCount() {
        return openFiles.count();
    }

    @Override
    public void close() {
        closeAll();
        syncRequests.removeManager(this);
    }

    OpenFiles openFiles() {
        return openFiles;
    }

    int segmentBlocks() {
        return segmentBlocks;
    }

    /** True if a remembered size is proof: this manager alone changes the files, or redo does. */
    boolean sizesAccurate() {
        return sizesAccurate;
    }

    boolean sharedSizes() {
        return policy == SizePolicy.SHARED;
    }

    /** The checkpointer is about to remove the relation's kept first segment. */
    void closeRemoved(int spcOid, int dbOid, int relNumber) {
        SmgrRelation known = relations.find(spcOid, dbOid, relNumber, SmgrRelation.SHARED);
        if (known != null) {
            close(known);
        }
    }

    private synchronized SmgrRelation enter(int spcOid, int dbOid, int relNumber, int backend) {
        SmgrRelation known = relations.find(spcOid, dbOid, relNumber, backend);
        if (known == null) {
            known = new SmgrRelation(this, spcOid, dbOid, relNumber, backend, sizes);
            relations.add(known);
        }
        return known;
    }

    private void closeMatching(boolean oneDatabase, int dbOid) {
        List<SmgrRelation> matching = new ArrayList<>();
        synchronized (this) {
            relations.forEach(
                    relation -> {
                        if (!oneDatabase || relation.dbOid() == dbOid) {
                            matching.add(relation);
                        }
                    });
            matching.forEach(this::drop);
        }
    }

    /**
     * Out of the table first: whoever sees the handle closed must not find it again. Under this
     * monitor to the end: a new handle, and what it reads of the files, comes after all that the
     * old one was used for.
     */
    private void drop(SmgrRelation relation) {
        boolean removed = relations.remove(relation);
        assert removed;
        relation.close();
    }
}
