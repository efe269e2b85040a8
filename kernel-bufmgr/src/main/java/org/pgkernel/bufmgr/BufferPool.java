package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.VALID;

import java.util.function.Consumer;
import org.agrona.concurrent.NanoClock;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.LockRank;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/**
 * The shared buffer pool. Buffers are numbered from 0. Thread-safe. No method but {@link #open}
 * allocates on its normal path, apart from what a thread needs once for itself and the lists of a
 * checkpoint.
 *
 * <p>A page is used in this order: pin ({@link #read}, {@link #extend}), lock, look or change,
 * {@link #markDirty}, unlock, unpin ({@link #release}). A pin keeps the page in its buffer; a lock
 * keeps its bytes still. Pins are counted per buffer, not per thread: {@link #backend} counts them
 * per backend and owns them in scopes.
 */
public final class BufferPool implements PageBuffers, AutoCloseable {
    public static final int MIN_BUFFERS = 16;
    public static final int MAX_BUFFERS = 1 << 26;

    private static final System.Logger LOG = System.getLogger("org.pgkernel.bufmgr");

    private final int nbuffers;
    private final StorageManager smgr;
    private final boolean checksums;
    private final PoolMemory memory;
    private final DropStatistics dropStatistics = new DropStatistics();
    private final RelationDropper dropper;
    private final WriteOut writeOut;
    private final RelationFlusher flusher;
    private final FlushStatistics flushStatistics = new FlushStatistics();

    // For the inspection too.
    final BufferDescriptors descriptors;
    final DirtyBitmap dirty;
    final BufferTable table;
    final BufferReplacement replacement;
    final LockTable content;
    final BufferIo io;
    final BufferAllocator allocator;
    final ResidencyTracker tracker;
    final PinLimit pinLimit;
    final RelationExtension extension;
    final VectoredReader vectored;
    final PinWaiters pinWaiters;
    final PinRetention retention;
    private final HintBits hints;

    private BufferPool(
            BufferPoolOptions options,
            StorageManager smgr,
            DurabilityGate gate,
            DropParts parts,
            ResidencyTracker tracker) {
        this.nbuffers = options.nbuffers();
        this.smgr = smgr;
        this.checksums = options.checksums();
        this.tracker = tracker;
        int buckets = BufferTable.bucketsFor(nbuffers);
        memory = new PoolMemory(nbuffers, buckets, parts.partitions(), options.replacement());
        dirty = new DirtyBitmap(memory.dirtyBits, nbuffers);
        descriptors = parts.descriptors(memory, dirty);
        table = new BufferTable(memory, descriptors, buckets, parts.partitions());
        WaitTable cleanupWaits = new WaitTable(16);
        retention = parts.retention(options, descriptors, cleanupWaits);
        replacement = parts.replacement(options, memory, descriptors, retention);
        content = new LockTable(memory.contentLocks, 3, new WaitTable(256), LockRank.CONTENT);
        io = new BufferIo(descriptors, smgr, gate, checksums, memory.blocks);
        pinLimit = new PinLimit(nbuffers);
        hints = new HintBits(descriptors, io, smgr, checksums);
        pinWaiters = new PinWaiters(descriptors, content, cleanupWaits, retention);
        allocator =
                new BufferAllocator(
                        descriptors,
                        table,
                        PageLookup.of(options.lookupStyle(), descriptors, table),
                        replacement,
                        io,
                        content,
                        pinWaiters,
                        tracker);
        writeOut = new WriteOut(descriptors, dirty, replacement, allocator, io, content, smgr);
        flusher = parts.flusher(this, writeOut, new DropCosts(nbuffers));
        dropper = parts.dropper(options, tracker, descriptors, allocator, replacement);
        extension = new RelationExtension(descriptors, allocator, io, content);
        vectored = new VectoredReader(allocator, io);
    }

    /**
     * Reserves the pool lazily; O(1) in {@code nbuffers}.
     *
     * @param nbuffers buffers of 8 KiB, from {@link #MIN_BUFFERS} to {@link #MAX_BUFFERS}
     * @param checksums verify on read, set on write (data_checksum_version is not 0)
     * @throws RefusedException when {@code nbuffers} is out of range, or the system has no address
     *     space for it
     */
    public static BufferPool open(
            int nbuffers,
            StorageManager smgr,
            DurabilityGate gate,
            boolean checksums,
            DropStrategy strategy) {
        return open(
                BufferPoolOptions.of(nbuffers).withChecksums(checksums).withStrategy(strategy),
                smgr,
                gate);
    }

    /** The same. */
    public static BufferPool open(
            BufferPoolOptions options, StorageManager smgr, DurabilityGate gate) {
        return open(options, smgr, gate, new DropParts());
    }

    static BufferPool open(
            BufferPoolOptions options, StorageManager smgr, DurabilityGate gate, DropParts parts) {
        ResidencyTracker tracker = parts.tracker(options.strategy(), options.nbuffers());
        BufferPool pool = null;
        try {
            pool = new BufferPool(options, smgr, gate, parts, tracker);
        } finally {
            if (pool == null) {
                tracker.release();
            }
        }
        return pool;
    }

    public int nbuffers() {
        return nbuffers;
    }

    @Override
    public BufferPool pool() {
        return this;
    }

    public StorageManager smgr() {
        return smgr;
    }

    /**
     * Pins the page, reading it if needed. (PostgreSQL: ReadBufferWithoutRelcache.)
     *
     * @return the buffer, pinned (and locked in the locking modes)
     * @throws org.pgkernel.base.error.NoFreeBufferException when every buffer is pinned
     * @throws DamagedDataException when the page on disk fails its check (not in the zeroing
     *     modes); nothing stays pinned
     * @throws org.pgkernel.base.error.DiskException when the block cannot be read, or a dirty page
     *     that had to make room not be written
     */
    @Override
    public int read(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        return read(relation, fork, block, mode, null);
    }

    /**
     * The same; a page that is not in the pool gets a buffer of the ring. (PostgreSQL:
     * ReadBufferExtended.)
     *
     * @param ring the caller's own, or null
     */
    public int read(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            ReadMode mode,
            BufferAccessStrategy ring) {
        assert isShared(relation);
        int buffer =
                allocator.allocate(
                        relation.spcOid(),
                        relation.dbOid(),
                        relation.relNumber(),
                        fork.ordinal(),
                        block,
                        ring);
        if (buffer >= 0) {
            io.counters.hit();
            if (mode == ReadMode.ZERO_AND_LOCK) {
                content.lockExclusive(buffer); // valid: whatever is in it stays
            } else if (mode == ReadMode.ZERO_AND_CLEANUP_LOCK) {
                cleanupLockOrUnpin(buffer);
            }
            return buffer;
        }
        fill(~buffer, relation, fork, block, mode);
        return ~buffer;
    }

    private void fill(
            int buffer, SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        boolean locking = mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
        boolean filled = false;
        try {
            if (locking) {
                io.zeroPage(buffer);
            } else {
                io.readPage(buffer, relation, fork, block, mode == ReadMode.ZERO_ON_ERROR);
            }
            filled = true;
        } finally {
            if (!filled) {
                allocator.abandon(buffer);
            }
        }
        if (locking) {
            // Before the page becomes valid: nobody may see the zeros. Nobody can look at it yet,
            // so it is a cleanup lock as well.
            content.lockUnreachable(buffer);
        }
        io.terminate(buffer, false, VALID);
    }

    private void cleanupLockOrUnpin(int buffer) {
        boolean locked = false;
        try {
            pinWaiters.lockForCleanup(buffer);
            locked = true;
        } finally {
            if (!locked) {
                allocator.unpin(buffer);
            }
        }
    }

    /**
     * Adds a zero page at the fork's end (in file and pool). (PostgreSQL: ReadBuffer(P_NEW).)
     *
     * @return its buffer, pinned, locked exclusively if {@code lock}
     * @throws DamagedDataException when the pool holds a formatted page at or past the fork's end;
     *     nothing is overwritten
     */
    public int extend(SmgrRelation relation, ForkNumber fork, boolean lock) {
        assert isShared(relation);
        int[] buffers = BackendScratch.mine().buffers;
        extension.extend(relation, fork, 1, null, buffers, lock);
        return buffers[0];
    }

    /**
     * Adds up to {@code count} zero pages at the fork's end, by one write; at least one. (As
     * PostgreSQL 16: ExtendBufferedRelBy.)
     *
     * @param ring the caller's own, or null
     * @param buffers gets the buffers, in block order, each pinned
     * @param lockFirst the first one comes exclusively locked
     * @return pages added: fewer than {@code count} when pins or buffers are short, or the fork is
     *     nearly full
     */
    public int extendBy(
            SmgrRelation relation,
            ForkNumber fork,
            int count,
            BufferAccessStrategy ring,
            int[] buffers,
            boolean lockFirst) {
        assert isShared(relation);
        return extension.extend(relation, fork, additionalPins(count), ring, buffers, lockFirst);
    }

    /**
     * The lock under which a relation grows, for who has more to do under it than {@link #extend},
     * which takes it itself. (PostgreSQL: LockRelationForExtension.)
     */
    public ExtensionLock lockForExtension(SmgrRelation relation) {
        return extension.lock(relation);
    }

    /**
     * Pins up to {@code count} neighbouring blocks, reading those that are missing together.
     *
     * @param mode not a locking one
     * @param ring the caller's own, or null
     * @param buffers gets the buffers, in block order, each pinned
     * @return blocks pinned, at least one: fewer than {@code count} when pins or buffers are short
     * @throws org.pgkernel.base.error.KernelException as {@link #read}, for the first block at
     *     fault; nothing stays pinned, and the pages that came well stay in the pool
     */
    public int readMany(
            SmgrRelation relation,
            ForkNumber fork,
            int block,
            int count,
            ReadMode mode,
            BufferAccessStrategy ring,
            int[] buffers) {
        assert isShared(relation);
        return vectored.read(relation, fork, block, additionalPins(count), mode, ring, buffers);
    }

    /**
     * Tells the system that these blocks will be read soon, those that are not in the pool.
     * (PostgreSQL: PrefetchBuffer.)
     *
     * @return how many are not in the pool
     */
    public int prefetch(SmgrRelation relation, ForkNumber fork, int block, int count) {
        return vectored.prefetch(relation, fork, block, count);
    }

    /** A temporary relation's pages are in its backend's {@link LocalBufferPool}. */
    private static boolean isShared(SmgrRelation relation) {
        if (relation.isTemporary()) {
            throw new AssertionError("a temporary relation in the shared pool " + relation);
        }
        return true;
    }

    /** A backend that counts its own pins and owns them in scopes; leaks are logged by name. */
    public BackendBuffers backend(String name) {
        return backend(name, leak -> LOG.log(System.Logger.Level.WARNING, leak));
    }

    /** The same with somebody else to tell of leaks, one line each. */
    public BackendBuffers backend(String name, Consumer<String> leaks) {
        return new BackendBuffers(this, name, leaks);
    }

    /** How many backends share the pool, at most: so much each may pin beyond its need. */
    public void maxBackends(int most) {
        pinLimit.backends(most);
    }

    /** {@link BackendBuffers#additionalPins} for who has no pins of its own but one or two. */
    public int additionalPins(int wanted) {
        return pinLimit.grant(wanted, 0);
    }

    /** One more pin on a buffer that the caller has pinned. (PostgreSQL: IncrBufferRefCount.) */
    public void pinAgain(int buffer) {
        descriptors.pin(buffer);
    }

    /** Gives up a pin; a lock must have been released before. */
    @Override
    public void release(int buffer) {
        assert BufferState.refcount(descriptors.state(buffer)) > 1
                        || !content.heldExclusivelyByMe(buffer)
                : "last pin released before the lock";
        allocator.unpin(buffer);
    }

    @Override
    public void lockShared(int buffer) {
        content.lockShared(buffer);
    }

    @Override
    public void lockExclusive(int buffer) {
        content.lockExclusive(buffer);
    }

    public boolean tryLockShared(int buffer) {
        return content.tryLockShared(buffer);
    }

    public boolean tryLockExclusive(int buffer) {
        return content.tryLockExclusive(buffer);
    }

    /**
     * Exclusive, and nobody else has a pin. The caller has one pin, not two. (PostgreSQL:
     * LockBufferForCleanup.)
     *
     * @throws RefusedException when another thread waits for the same page's cleanup lock
     */
    public void lockForCleanup(int buffer) {
        pinWaiters.lockForCleanup(buffer);
    }

    /** The same without waiting. (PostgreSQL: ConditionalLockBufferForCleanup.) */
    public boolean tryLockForCleanup(int buffer) {
        return pinWaiters.tryLockForCleanup(buffer);
    }

    @Override
    public void unlock(int buffer) {
        content.unlock(buffer);
    }

    /** Address of the page's first byte. */
    public long pageAddress(int buffer) {
        return io.address(buffer);
    }

    /** Points {@code view} at the page. */
    public void wrap(int buffer, UnsafeBuffer view) {
        view.wrap(io.address(buffer), Page.SIZE);
    }

    /** Block number of a pinned buffer. */
    public int block(int buffer) {
        return descriptors.block(buffer);
    }

    /** The caller holds pin and exclusive lock. (PostgreSQL: MarkBufferDirty.) */
    @Override
    public void markDirty(int buffer) {
        assert content.heldExclusivelyByMe(buffer) : "page marked dirty without its exclusive lock";
        descriptors.markDirty(buffer);
    }

    /**
     * The change need not survive; a shared lock is enough. With checksums (or wal_log_hints) an
     * image of the page goes to {@link #hintImageLog} first; in recovery, and without a log, such a
     * page is not marked dirty at all. (PostgreSQL: MarkBufferDirtyHint.)
     *
     * @param standardPage what lies between pd_lower and pd_upper means nothing
     */
    @Override
    public void markDirtyHint(int buffer, boolean standardPage) {
        assert content.isHeld(buffer) : "hint set without a content lock";
        hints.markDirty(buffer, standardPage);
    }

    /** Where images of pages go that hints make dirty; {@link HintImageLog#NONE} at first. */
    public void hintImageLog(HintImageLog log) {
        hints.log(log);
    }

    /**
     * The page's LSN, for who has only a shared lock while others may log hints. (PostgreSQL:
     * BufferGetLSNAtomic.)
     */
    public long pageLsn(int buffer) {
        return hints.pageLsn(buffer);
    }

    /** True if pages carry checksums. (PostgreSQL: DataChecksumsEnabled.) */
    public boolean checksums() {
        return checksums;
    }

    /** True if checksums or wal_log_hints are on. (PostgreSQL: XLogHintBitIsNeeded.) */
    public boolean hintsAreLogged() {
        return hints.areLogged();
    }

    /** pg_control says wal_log_hints or checksums: see {@link #markDirtyHint}. */
    public void hintsAreLogged(boolean logged) {
        hints.walLogHints(logged);
    }

    /** Writes one pinned, locked buffer if dirty. (PostgreSQL: FlushOneBuffer.) */
    public void flushOne(int buffer) {
        assert content.isHeld(buffer) : "page written without a content lock";
        io.flush(buffer, WriteOrigin.BACKEND);
    }

    /**
     * Writes every dirty buffer, sorted by tablespace, relation, fork, block; syncs nothing.
     * (PostgreSQL: BufferSync.) @return buffers written
     */
    public int flushAll() {
        return writeOut.all();
    }

    /**
     * A checkpoint's write-out, to be driven step by step. What is dirty at its first step reaches
     * the files; the pace is {@code schedule}'s, the rests are timed by {@code clock}.
     *
     * @param flushAfterPages after so many pages the system is told to write them to the disk; 0:
     *     never; 256 at most (checkpoint_flush_after)
     */
    public CheckpointWrite beginCheckpoint(
            CheckpointSchedule schedule, NanoClock clock, int flushAfterPages) {
        return writeOut.checkpoint(schedule, clock, flushAfterPages);
    }

    /** A background writer for this pool, to be driven by one thread. One is enough. */
    public BackgroundWriter backgroundWriter(BackgroundWriterOptions options, NanoClock clock) {
        return new BackgroundWriter(descriptors, replacement, writeOut, nbuffers, options, clock);
    }

    /** Writes a database's dirty buffers. (PostgreSQL: FlushDatabaseBuffers.) */
    public void flushDatabase(int dbOid) {
        flusher.database(dbOid, flushStatistics);
    }

    /** Writes a relation's dirty buffers. (PostgreSQL: FlushRelationBuffers.) */
    public void flushRelation(SmgrRelation relation) {
        flushRelations(new SmgrRelation[] {relation}, 1);
    }

    /**
     * Writes the dirty buffers of the first {@code count} relations, sorted, and no other.
     * Everything dirty when the call begins is in the files when it returns; nothing is synced.
     * (PostgreSQL: FlushRelationsAllBuffers.)
     */
    public void flushRelations(SmgrRelation[] relations, int count) {
        if (count != 0) {
            flusher.relations(relations, count, flushStatistics);
        }
    }

    /** What the flushes of relations and databases did since the pool was opened. */
    public FlushStatistics flushStatistics() {
        return flushStatistics;
    }

    /**
     * Throws away, unwritten, the buffers of each fork from its first block on. The caller makes
     * sure that nobody reads such pages in meanwhile, and has no pin on one. (PostgreSQL:
     * DropRelFileNodeBuffers.)
     */
    public void dropRelationForks(
            SmgrRelation relation, ForkNumber[] forks, int[] firstBlocks, int count) {
        assert isShared(relation);
        long start = System.nanoTime();
        DropWork work = DropWork.begin();
        account(
                DropKind.FORKS,
                work,
                dropper.dropForks(relation, forks, firstBlocks, count, work),
                start);
    }

    /**
     * Throws away, unwritten, all buffers of the first {@code count} relations, in one pass.
     * (PostgreSQL: DropRelFileNodesAllBuffers.)
     */
    public void dropRelations(SmgrRelation[] relations, int count) {
        if (count == 0) {
            return;
        }
        for (int i = 0; i < count; i++) {
            assert isShared(relations[i]);
        }
        long start = System.nanoTime();
        DropWork work = DropWork.begin();
        account(DropKind.RELATIONS, work, dropper.dropRelations(relations, count, work), start);
    }

    /**
     * Throws away, unwritten, a database's buffers; every strategy but ADAPTIVE scans all tags for
     * it. (PostgreSQL: DropDatabaseBuffers.)
     */
    public void dropDatabase(int dbOid) {
        long start = System.nanoTime();
        DropWork work = DropWork.begin();
        account(DropKind.DATABASE, work, dropper.dropDatabase(dbOid, work), start);
    }

    private void account(DropKind kind, DropWork work, int dropped, long start) {
        long nanos = System.nanoTime() - start;
        io.counters.dropped(work.path, dropped);
        synchronized (dropStatistics) {
            dropStatistics.add(kind, work, dropped, nanos);
        }
    }

    /** How the relation would be dropped if it were dropped now, and why: a line for people. */
    public String explainDrop(SmgrRelation relation) {
        return dropper.explain(relation);
    }

    /** What the pool did since it was opened, in numbers that anybody may read at any time. */
    public PoolCounters counters() {
        return io.counters;
    }

    /** What the pool holds, while others use it. (PostgreSQL: pg_buffercache.) */
    public PoolSnapshot snapshot() {
        return new PoolSnapshot(descriptors, replacement, retention, nbuffers);
    }

    /** What the drops did since the pool was opened. */
    public DropStatistics dropStatistics() {
        return dropStatistics;
    }

    /**
     * Buffers that somebody has pinned; walks all that were ever used, so for tests and shutdown
     * checks only.
     */
    public int pinnedBuffers() {
        return snapshot().pinned();
    }

    /**
     * Gives the memory back, writing nothing. Nobody may use the pool any more, nor any page of it.
     */
    @Override
    public void close() {
        retention.takeBackAll(); // before the words go, for backends that are closed later
        tracker.release();
        memory.release();
    }
}
