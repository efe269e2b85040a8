package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;

/** The shared buffer pool. Buffers are numbered from 0. Thread-safe. No method but {@link #open} allocates on its normal path. */
public final class BufferPool implements AutoCloseable {
    public static final int MIN_BUFFERS = 16;
    public static final int MAX_BUFFERS = 1 << 26;

    private BufferPool() {}

    /**
     * Reserves the pool lazily; O(1) in {@code nbuffers}.
     *
     * @param checksums verify on read, set on write (data_checksum_version is not 0)
     * @throws org.pgkernel.base.error.RefusedException when {@code nbuffers} is out of range
     */
    public static BufferPool open(int nbuffers, StorageManager smgr, DurabilityGate gate, boolean checksums, DropStrategy strategy) {
        throw new AssertionError("stub");
    }

    public int nbuffers() {
        throw new AssertionError("stub");
    }

    public StorageManager smgr() {
        throw new AssertionError("stub");
    }

    /** Pins the page, reading it if needed. @return the buffer, pinned (and locked in the locking modes) */
    public int read(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        throw new AssertionError("stub");
    }

    /** Adds a zero page at the fork's end (in file and pool). @return its buffer, pinned, locked exclusively if {@code lock}. (PostgreSQL: ReadBuffer(P_NEW).) */
    public int extend(SmgrRelation relation, ForkNumber fork, boolean lock) {
        throw new AssertionError("stub");
    }

    /** One more pin on a buffer that the caller has pinned. */
    public void pinAgain(int buffer) {
        throw new AssertionError("stub");
    }

    /** Gives up a pin; a lock must have been released before. */
    public void release(int buffer) {
        throw new AssertionError("stub");
    }

    public void lockShared(int buffer) {
        throw new AssertionError("stub");
    }

    public void lockExclusive(int buffer) {
        throw new AssertionError("stub");
    }

    public boolean tryLockExclusive(int buffer) {
        throw new AssertionError("stub");
    }

    /** Exclusive, and nobody else has a pin. (PostgreSQL: LockBufferForCleanup.) */
    public void lockForCleanup(int buffer) {
        throw new AssertionError("stub");
    }

    public void unlock(int buffer) {
        throw new AssertionError("stub");
    }

    /** Address of the page's first byte. */
    public long pageAddress(int buffer) {
        throw new AssertionError("stub");
    }

    /** Points {@code view} at the page. */
    public void wrap(int buffer, UnsafeBuffer view) {
        throw new AssertionError("stub");
    }

    /** Block number of a pinned buffer. */
    public int block(int buffer) {
        throw new AssertionError("stub");
    }

    /** The caller holds pin and exclusive lock. (PostgreSQL: MarkBufferDirty.) */
    public void markDirty(int buffer) {
        throw new AssertionError("stub");
    }

    /**
     * The change need not survive. In recovery with checksums (or wal_log_hints) the page is not marked dirty at all, as in PostgreSQL.
     * (PostgreSQL: MarkBufferDirtyHint.)
     */
    public void markDirtyHint(int buffer) {
        throw new AssertionError("stub");
    }

    /** True if pages carry checksums. (PostgreSQL: DataChecksumsEnabled.) */
    public boolean checksums() {
        throw new AssertionError("stub");
    }

    /** True if checksums or wal_log_hints are on. (PostgreSQL: XLogHintBitIsNeeded.) */
    public boolean hintsAreLogged() {
        throw new AssertionError("stub");
    }

    /** pg_control says wal_log_hints or checksums: see {@link #markDirtyHint}. */
    public void hintsAreLogged(boolean logged) {
        throw new AssertionError("stub");
    }

    /** Writes one pinned, locked buffer if dirty. (PostgreSQL: FlushOneBuffer.) */
    public void flushOne(int buffer) {
        throw new AssertionError("stub");
    }

    /** Writes every dirty buffer, sorted by tablespace, relation, fork, block; syncs nothing. (PostgreSQL: BufferSync.) @return buffers written */
    public int flushAll() {
        throw new AssertionError("stub");
    }

    /** Writes a database's dirty buffers. (PostgreSQL: FlushDatabaseBuffers.) */
    public void flushDatabase(int dbOid) {
        throw new AssertionError("stub");
    }

    /** Writes a relation's dirty buffers. (PostgreSQL: FlushRelationBuffers.) */
    public void flushRelation(SmgrRelation relation) {
        throw new AssertionError("stub");
    }

    /** Throws away, unwritten, the buffers of each fork from its first block on. (PostgreSQL: DropRelFileNodeBuffers.) */
    public void dropRelationForks(SmgrRelation relation, ForkNumber[] forks, int[] firstBlocks, int count) {
        throw new AssertionError("stub");
    }

    /** Throws away, unwritten, all buffers of the first {@code count} relations, in one pass. (PostgreSQL: DropRelFileNodesAllBuffers.) */
    public void dropRelations(SmgrRelation[] relations, int count) {
        throw new AssertionError("stub");
    }

    /** Throws away, unwritten, a database's buffers. (PostgreSQL: DropDatabaseBuffers.) */
    public void dropDatabase(int dbOid) {
        throw new AssertionError("stub");
    }

    /** What the drops did since the pool was opened. */
    public DropStatistics dropStatistics() {
        throw new AssertionError("stub");
    }

    @Override
    public void close() {}
}
