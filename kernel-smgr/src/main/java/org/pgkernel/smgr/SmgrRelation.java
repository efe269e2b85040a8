package org.pgkernel.smgr;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.Supplier;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DiskException;

/**
 * One relation's files. Thread-safe. Block numbers are unsigned; addresses are native, of a whole
 * page.
 *
 * <p>A handle that its {@link StorageManager} has closed stays usable: calls go to the relation's
 * present handle.
 *
 * <p>Errors of all file operations: {@link DiskException} when the system refuses (a missing file
 * is ENOENT), {@link org.pgkernel.base.error.DamagedDataException} when the files are not as they
 * must be or the block is not there.
 */
public final class SmgrRelation {
    /** No backend's own: what {@link #backend()} is for all but temporary relations. */
    public static final int SHARED = -1;

    private final StorageManager manager;
    private final int spcOid;
    private final int dbOid;
    private final int relNumber;

    /** Whose temporary relation it is, or {@link #SHARED}. */
    private final int backend;

    private final ForkFiles main;
    private final ForkFiles freeSpaceMap;
    private final ForkFiles visibilityMap;
    private final ForkFiles init;

    /** Set once, under the manager's monitor, after the handle has left its table. */
    private volatile boolean closed;

    /** See {@link #hint}; anybody's, changed by compare and set. */
    private volatile long hint;

    private static final VarHandle HINT;

    static {
        try {
            HINT = MethodHandles.lookup().findVarHandle(SmgrRelation.class, "hint", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    SmgrRelation(
            StorageManager manager,
            int spcOid,
            int dbOid,
            int relNumber,
            int backend,
            Supplier<RememberedSize> sizes) {
        this.manager = manager;
        this.spcOid = spcOid;
        this.dbOid = dbOid;
        this.relNumber = relNumber;
        this.backend = backend;
        main = new ForkFiles(this, ForkNumber.MAIN, sizes.get());
        freeSpaceMap = new ForkFiles(this, ForkNumber.FSM, sizes.get());
        visibilityMap = new ForkFiles(this, ForkNumber.VISIBILITY_MAP, sizes.get());
        init = new ForkFiles(this, ForkNumber.INIT, sizes.get());
    }

    public int spcOid() {
        return spcOid;
    }

    public int dbOid() {
        return dbOid;
    }

    public int relNumber() {
        return relNumber;
    }

    /** The backend whose temporary relation it is, or {@link #SHARED}. */
    public int backend() {
        return backend;
    }

    /**
     * True for a backend's temporary relation: its files bear the backend's number and are never
     * synced, and its pages are no other backend's business. (PostgreSQL: SmgrIsTemp.)
     */
    public boolean isTemporary() {
        return backend != SHARED;
    }

    /** A new locator; allocates. */
    public RelFileLocator locator() {
        return new RelFileLocator(spcOid, dbOid, relNumber);
    }

    /**
     * The fork's first segment, relative to the data directory; allocates. (PostgreSQL:
     * relpathbackend.)
     */
    public String path(ForkNumber fork) {
        return isTemporary() ? locator().temporaryPath(backend, fork) : locator().path(fork);
    }

    /**
     * True if the fork's first segment exists; so does the one that a drop keeps until the next
     * checkpoint. In recovery, or with shared sizes, an open fork answers without a system call;
     * else the file is closed and looked for anew. (PostgreSQL: smgrexists, mdexists.)
     */
    public boolean exists(ForkNumber fork) {
        return files(fork).exists();
    }

    /**
     * Creates the fork, empty, and queues its sync; makes the database's directory in its
     * tablespace when that is missing. In redo an existing fork is fine, an open one costs nothing,
     * and all missing directories are made. (PostgreSQL: smgrcreate, mdcreate,
     * TablespaceCreateDbspace.)
     *
     * @throws DiskException EEXIST outside redo when the file exists
     */
    public void create(ForkNumber fork, boolean isRedo) {
        files(fork).create(isRedo);
    }

    /**
     * The remembered size, or the file's when nothing accurate is remembered; the answer is
     * remembered. Blocks. (PostgreSQL: smgrnblocks.)
     */
    public int nblocks(ForkNumber fork) {
        return files(fork).nblocks();
    }

    /**
     * The remembered size and whether it is accurate now, see {@link ForkSize}; touches no file.
     * (PostgreSQL: smgrnblocks_cached.)
     */
    public long rememberedSize(ForkNumber fork) {
        return files(fork).rememberedSize();
    }

    /** Forgets remembered sizes, of all forks, and which forks are known to be missing. */
    public void forgetSizes() {
        for (int fork = 0; fork < ForkNumber.COUNT; fork++) {
            files(ForkNumber.of(fork)).forget();
        }
    }

    /**
     * Writes a page at the fork's end or beyond (a hole reads as zeros), under the fork's extension
     * lock. On failure the size on disk is asked anew. (PostgreSQL: smgrextend.)
     */
    public void extend(ForkNumber fork, int block, long address, boolean skipSync) {
        files(fork).extend(block, address, skipSync);
    }

    /**
     * Adds {@code count} zero pages from {@code block} on; they are written, so that a full disk
     * shows here.
     */
    public void zeroExtend(ForkNumber fork, int block, int count, boolean skipSync) {
        files(fork).zeroExtend(block, count, skipSync);
    }

    /**
     * Reads a page. A block at or past the end, or cut off in the middle, is an error that names
     * it; in recovery it reads as zeros, and lower segments that are missing are made. (PostgreSQL:
     * smgrread, mdread.)
     */
    public void read(ForkNumber fork, int block, long address) {
        files(fork).read(block, address);
    }

    /**
     * Reads neighbouring pages, each to an address of its own, as many at a time as lie in one
     * segment. Says nothing about what is missing: {@link #read} of the first block that did not
     * come does. (PostgreSQL: smgrreadv, of 17.)
     *
     * @param addresses of pages; the first block goes to {@code addresses[first]}
     * @return blocks read; fewer than {@code count} when the file, or what this handle may open of
     *     it without making segments, ends before
     */
    public int readMany(ForkNumber fork, int block, long[] addresses, int first, int count) {
        return ForkRuns.read(files(fork), block, addresses, first, count);
    }

    /**
     * Looks whether the file really ends before {@code block}, where the caller is about to add
     * pages: whoever trusts a wrong size would overwrite live ones. A piece of a block, and whole
     * blocks of zeros, are nobody's.
     *
     * @param count how many blocks are to be added
     * @param address of a page that the look may overwrite
     * @return the first of these blocks that is in the file and not empty, or {@link
     *     org.pgkernel.base.BlockNumber#INVALID}
     */
    public int firstInTheWay(ForkNumber fork, int block, int count, long address) {
        return ForkRuns.firstInTheWay(files(fork), block, count, address);
    }

    /**
     * Writes an existing page and queues a sync unless told not to. Does not check that the block
     * exists; in recovery missing lower segments are made. (PostgreSQL: smgrwrite.)
     */
    public void write(ForkNumber fork, int block, long address, boolean skipSync) {
        files(fork).write(block, address, skipSync);
    }

    /**
     * Tells the system that the page will be read; a hint, a missing segment is passed over.
     * (PostgreSQL: smgrprefetch.)
     */
    public void prefetch(ForkNumber fork, int block) {
        ForkRuns.prefetch(files(fork), block, 1);
    }

    /** The same for {@code count} neighbouring pages. */
    public void prefetch(ForkNumber fork, int block, int count) {
        ForkRuns.prefetch(files(fork), block, count);
    }

    /**
     * Starts write-out of {@code count} blocks; segments not open are passed over. (PostgreSQL:
     * smgrwriteback.)
     */
    public void startWriteback(ForkNumber fork, int block, int count) {
        files(fork).startWriteback(block, count);
    }

    /**
     * Cuts one fork to {@code blocks}; the caller has dropped the buffers and keeps writers away.
     * Segments past the end stay, empty. More blocks than there are is an error outside recovery,
     * nothing to do in it. (PostgreSQL: smgrtruncate, mdtruncate.)
     */
    public void truncate(ForkNumber fork, int blocks) {
        files(fork).truncate(blocks);
    }

    /**
     * Makes the fork durable now, every segment, inactive ones too. (PostgreSQL: smgrimmedsync.)
     *
     * @throws org.pgkernel.base.error.KernelStoppedException when a sync fails
     */
    public void immediateSync(ForkNumber fork) {
        files(fork).immediateSync();
    }

    /**
     * Eight bytes about the relation that all backends share; their meaning is the free space
     * map's. They are lost with the handle, 0 when nothing is known, and may be wrong: whoever uses
     * them looks.
     */
    public long hint() {
        return live().hint;
    }

    /**
     * Changes {@link #hint} if it is still as the caller saw it.
     *
     * @return false when another was quicker
     */
    public boolean replaceHint(long seen, long changed) {
        return HINT.compareAndSet(live(), seen, changed);
    }

    /** {@code spc/db/rel}; {@code spc/db/tBACKEND_rel} when temporary. */
    @Override
    public String toString() {
        return isTemporary()
                ? Integer.toUnsignedString(spcOid)
                        + "/"
                        + Integer.toUnsignedString(dbOid)
                        + "/t"
                        + backend
                        + "_"
                        + Integer.toUnsignedString(relNumber)
                : locator().toString();
    }

    StorageManager manager() {
        return manager;
    }

    boolean is(int spcOid, int dbOid, int relNumber, int backend) {
        return this.relNumber == relNumber
                && this.dbOid == dbOid
                && this.spcOid == spcOid
                && this.backend == backend;
    }

    int hash() {
        return RelationTable.hash(spcOid, dbOid, relNumber);
    }

    /**
     * Ends the handle's use, fork by fork, and waits for those who change the files. The caller
     * holds the manager's monitor, without which no new handle comes to be, and has taken this one
     * out of its table.
     */
    void close() {
        closed = true;
        main.close();
        freeSpaceMap.close();
        visibilityMap.close();
        init.close();
    }

    /** The main fork last, since its kept segment guards the number for the others, too. */
    void unlink(boolean isRedo) {
        for (int fork = ForkNumber.COUNT - 1; fork >= 0; fork--) {
            files(ForkNumber.of(fork)).unlink(isRedo);
        }
    }

    /** The fork of the relation's present handle (SMGR-6). */
    ForkFiles files(ForkNumber fork) {
        SmgrRelation live = live();
        return switch (fork) {
            case MAIN -> live.main;
            case FSM -> live.freeSpaceMap;
            case VISIBILITY_MAP -> live.visibilityMap;
            case INIT -> live.init;
        };
    }

    private SmgrRelation live() {
        return closed ? manager.open(spcOid, dbOid, relNumber, backend) : this;
    }

    /** The database's directory in the relation's tablespace. */
    String databaseDirectory() {
        return manager.dataDirectory() + "/" + RelFileLocator.databasePath(spcOid, dbOid);
    }

    /**
     * Makes {@link #databaseDirectory}, in redo with all that is missing above it, and makes its
     * name durable: only names below it are queued for a checkpoint. (PostgreSQL:
     * TablespaceCreateDbspace; it leaves the name alone.)
     */
    void createDatabaseDirectory(boolean isRedo) {
        String path = databaseDirectory();
        try {
            createDirectory(path);
        } catch (DiskException e) {
            if (e.errno() != DiskException.ENOENT || !isRedo) {
                throw e;
            }
            for (int end = path.indexOf('/', manager.dataDirectory().length() + 1);
                    end > 0;
                    end = path.indexOf('/', end + 1)) {
                createDirectory(path.substring(0, end));
            }
            createDirectory(path);
        }
    }

    private void createDirectory(String path) {
        Disk disk = manager.disk();
        if (disk.createDirectory(path)) {
            try {
                disk.syncDirectory(path.substring(0, path.lastIndexOf('/')));
            } catch (DiskException e) {
                throw manager.syncRequests().stop("a directory could not be synced", e);
            }
        }
    }
}
