package org.pgkernel.recovery;

import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.wal.WalRecord;

/** Redo's buffer access and everything else a resource manager may touch. One thread. Allocates nothing per record. (PostgreSQL: xlogutils.c.) */
public final class RedoContext {
    /** Holders free for a record's use; index {@code i} is usually block id {@code i}. */
    public RedoBuffer buffer(int i) {
        throw new AssertionError("stub");
    }

    public BufferPool pool() {
        throw new AssertionError("stub");
    }

    public StorageManager smgr() {
        throw new AssertionError("stub");
    }

    public Disk disk() {
        throw new AssertionError("stub");
    }

    /** Absolute. */
    public String dataDirectory() {
        throw new AssertionError("stub");
    }

    public RecoveredCounters counters() {
        throw new AssertionError("stub");
    }

    /** The page of block reference {@code id}, pinned and exclusively locked in {@code into} unless NOT_FOUND. (PostgreSQL: XLogReadBufferForRedo.) */
    public RedoAction read(WalRecord record, int id, RedoBuffer into) {
        throw new AssertionError("stub");
    }

    /** The same with a mode, and with a cleanup lock when asked. (PostgreSQL: XLogReadBufferForRedoExtended.) */
    public RedoAction read(WalRecord record, int id, ReadMode mode, boolean cleanupLock, RedoBuffer into) {
        throw new AssertionError("stub");
    }

    /** The page of a WILL_INIT block, zeroed if it was not in the pool, extending the fork as needed. (PostgreSQL: XLogInitBufferForRedo.) */
    public void init(WalRecord record, int id, RedoBuffer into) {
        throw new AssertionError("stub");
    }

    /**
     * A page without block reference (visibility map, free space map), pinned, NOT locked; creates the fork, extends it in the ZERO modes;
     * -1 when the page does not exist (NORMAL: remembered as missing). In the ZERO_AND_LOCK modes the buffer comes locked. (PostgreSQL: XLogReadBufferExtended.)
     */
    public int readExtended(int spc, int db, int rel, ForkNumber fork, int block, ReadMode mode) {
        throw new AssertionError("stub");
    }

    public SmgrRelation relation(int spc, int db, int rel) {
        return smgr().open(spc, db, rel);
    }

    /** Makes the minimum recovery point durable up to {@code lsn}; call before files shrink or vanish. (PostgreSQL: XLogFlush in recovery.) */
    public void flushTo(long lsn) {
        throw new AssertionError("stub");
    }

    /** Forgets missing pages of a relation fork from {@code firstBlock} on. (PostgreSQL: XLogTruncateRelation.) */
    public void forgetMissingPages(int spc, int db, int rel, ForkNumber fork, int firstBlock) {
        throw new AssertionError("stub");
    }

    /** Forgets missing pages of a database. (PostgreSQL: XLogDropDatabase, without its smgr part.) */
    public void forgetMissingPages(int db) {
        throw new AssertionError("stub");
    }

    /**
     * Drops relations as a commit or abort record lists them: missing pages forgotten, buffers dropped in one pass, files removed at
     * once. The caller has called {@link #flushTo}. (PostgreSQL: DropRelationFiles with isRedo.)
     *
     * @param locators triples spc, db, rel, {@code count} of them
     */
    public void dropRelations(int[] locators, int count) {
        throw new AssertionError("stub");
    }

    /** Text of the place for messages: {@code rel=… fork=… block=… lsn=…}. */
    public String place(WalRecord record, int blockId) {
        throw new AssertionError("stub");
    }
}
