package org.pgkernel.recovery;

import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DurabilityGate;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.wal.WalRecord;

/**
 * Redo's buffer access and everything else a resource manager may touch. One thread. Allocates
 * nothing per record but where a page is missing or damaged.
 *
 * <p>The LSN interlock lives here: an image is restored whatever the page says; a page whose LSN is
 * at or past the record's end has the change already. (PostgreSQL: xlogutils.c.)
 */
public final class RedoContext {
    /** Block ids of a record, and a few more for pages without a block reference. */
    private static final int HOLDERS = WalRecord.MAX_BLOCK_ID + 8;

    private static final ForkNumber[] FORKS = ForkNumber.values();

    private final BufferPool pool;
    private final StorageManager smgr;
    private final RecoveredCounters counters;
    private final DurabilityGate gate;
    private final ReplayState state;
    private final MissingPageTable missingPages;
    private final ControlFileKeeper control;
    private final RedoBuffer[] buffers = new RedoBuffer[HOLDERS];
    private final UnsafeBuffer peek = new UnsafeBuffer(0L, 0);
    private SmgrRelation[] dropped = new SmgrRelation[64];

    /**
     * The record that {@link #read} and {@link #init} were last asked about: its end is named when
     * a page is missing.
     */
    private long currentLsn;

    /** The relation of the last {@link #readExtended}. */
    private SmgrRelation relationRead;

    RedoContext(
            BufferPool pool,
            RecoveredCounters counters,
            DurabilityGate gate,
            ReplayState state,
            MissingPageTable missingPages,
            ControlFileKeeper control) {
        this.pool = pool;
        this.smgr = pool.smgr();
        this.counters = counters;
        this.gate = gate;
        this.state = state;
        this.missingPages = missingPages;
        this.control = control;
        for (int i = 0; i < HOLDERS; i++) {
            buffers[i] = new RedoBuffer();
        }
    }

    /**
     * A context without control file, before consistency, whose {@link #flushTo} does nothing: for
     * resource managers' own tests and for tools that apply single records.
     */
    public static RedoContext standalone(BufferPool pool, RecoveredCounters counters) {
        return standalone(pool, counters, lsn -> {});
    }

    /** The same with a gate that {@link #flushTo} asks. */
    public static RedoContext standalone(
            BufferPool pool, RecoveredCounters counters, DurabilityGate gate) {
        return new RedoContext(
                pool, counters, gate, new ReplayState(), new MissingPageTable(), null);
    }

    /** Holders free for a record's use; index {@code i} is usually block id {@code i}. */
    public RedoBuffer buffer(int i) {
        return buffers[i];
    }

    public BufferPool pool() {
        return pool;
    }

    public StorageManager smgr() {
        return smgr;
    }

    public Disk disk() {
        return smgr.disk();
    }

    /** Absolute. */
    public String dataDirectory() {
        return smgr.dataDirectory();
    }

    public RecoveredCounters counters() {
        return counters;
    }

    /**
     * True once a page that is missing is an error at once. In crash recovery that is never before
     * the end of WAL. (PostgreSQL: reachedConsistency.)
     */
    public boolean isConsistent() {
        return state.consistent;
    }

    /** How many missing pages are remembered now. (PostgreSQL: XLogHaveInvalidPages.) */
    public int missingPages() {
        return missingPages.size();
    }

    /**
     * Stops when missing pages are left.
     *
     * @throws DamagedDataException naming them
     */
    public void checkMissingPages() {
        missingPages.check(state.lastReplayedEndLsn);
    }

    /**
     * Called after each record until it says that the data is consistent. (PostgreSQL:
     * CheckRecoveryConsistency.)
     */
    void checkConsistency() {
        if (!state.consistent
                && state.consistencyLsn != Lsn.INVALID
                && Lsn.atOrAfter(state.lastReplayedEndLsn, state.consistencyLsn)) {
            checkMissingPages();
            state.consistent = true;
        }
    }

    ReplayState state() {
        return state;
    }

    MissingPageTable missingPageTable() {
        return missingPages;
    }

    /** Null in a standalone context. */
    ControlFileKeeper control() {
        return control;
    }

    /**
     * The page of block reference {@code id}, pinned and exclusively locked in {@code into} unless
     * NOT_FOUND. (PostgreSQL: XLogReadBufferForRedo.)
     */
    public RedoAction read(WalRecord record, int id, RedoBuffer into) {
        return read(record, id, ReadMode.NORMAL, false, into);
    }

    /**
     * The same with a mode, and with a cleanup lock when asked. (PostgreSQL:
     * XLogReadBufferForRedoExtended.)
     *
     * @throws DamagedDataException when the record lacks the block, when its WILL_INIT flag and the
     *     mode disagree, or when its image or the page on disk is damaged
     */
    public RedoAction read(
            WalRecord record, int id, ReadMode mode, boolean cleanupLock, RedoBuffer into) {
        currentLsn = record.endLsn();
        if (!record.hasBlock(id)) {
            throw new DamagedDataException(
                    "WAL record has no block reference "
                            + id
                            + ": rmgr="
                            + record.rmid()
                            + " info="
                            + record.info()
                            + " lsn="
                            + Lsn.format(record.lsn()));
        }
        boolean zeroMode = mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
        if (record.willInit(id) != zeroMode) {
            throw new DamagedDataException(
                    (zeroMode
                                    ? "redo formats a page that its record does not mark as WILL_INIT: "
                                    : "redo reads a page that its record marks as WILL_INIT: ")
                            + place(record, id));
        }
        if (record.applyImage(id)) {
            restore(record, id, cleanupLock, into);
            return RedoAction.RESTORED;
        }
        int buffer =
                readExtended(
                        record.blockSpc(id),
                        record.blockDb(id),
                        record.blockRel(id),
                        record.blockFork(id),
                        record.blockNumber(id),
                        mode);
        if (buffer < 0) {
            return RedoAction.NOT_FOUND;
        }
        if (!zeroMode) {
            if (cleanupLock) {
                pool.lockForCleanup(buffer);
            } else {
                pool.lockExclusive(buffer);
            }
        }
        into.hold(pool, relationRead, record.blockFork(id), buffer);
        return Lsn.atOrAfter(Page.lsn(into.page()), record.endLsn())
                ? RedoAction.DONE
                : RedoAction.NEEDS_REDO;
    }

    /**
     * {@link #read(WalRecord, int, RedoBuffer)} for a record that looks at nothing of the page and
     * carries no image of it when hints are not logged (VISIBLE): a damaged page is remembered as
     * missing, NOT_FOUND, as it may be torn and be cut off later in the WAL. If it is not, recovery
     * stops at its end or at consistency and names it. (PostgreSQL 15 stops here.)
     */
    public RedoAction readUnseen(WalRecord record, int id, RedoBuffer into) {
        try {
            return read(record, id, into);
        } catch (DamagedDataException e) {
            if (!record.hasBlock(id) || record.hasImage(id) || into.isValid()) {
                throw e;
            }
            missingPages.remember(
                    record.blockSpc(id),
                    record.blockDb(id),
                    record.blockRel(id),
                    record.blockFork(id),
                    record.blockNumber(id),
                    true,
                    currentLsn(),
                    state.consistent);
            return RedoAction.NOT_FOUND;
        }
    }

    private void restore(WalRecord record, int id, boolean cleanupLock, RedoBuffer into) {
        ForkNumber fork = record.blockFork(id);
        ReadMode mode = cleanupLock ? ReadMode.ZERO_AND_CLEANUP_LOCK : ReadMode.ZERO_AND_LOCK;
        int buffer =
                readExtended(
                        record.blockSpc(id),
                        record.blockDb(id),
                        record.blockRel(id),
                        fork,
                        record.blockNumber(id),
                        mode);
        into.hold(pool, relationRead, fork, buffer);
        UnsafeBuffer page = into.page();
        record.restoreImage(id, page);
        // A page may be logged before it was formatted; an LSN would make it look used.
        if (!isNew(page)) {
            Page.setLsn(page, record.endLsn());
        }
        into.markDirty();
        // Init forks are copied file to file at the end of recovery: what is on disk must be what
        // is in the pool.
        if (fork == ForkNumber.INIT) {
            pool.flushOne(into.buffer());
        }
    }

    /**
     * The page of a WILL_INIT block, zeroed if it was not in the pool, extending the fork as
     * needed. (PostgreSQL: XLogInitBufferForRedo.)
     */
    public void init(WalRecord record, int id, RedoBuffer into) {
        read(record, id, ReadMode.ZERO_AND_LOCK, false, into);
    }

    /**
     * A page without block reference (visibility map, free space map), pinned, NOT locked; creates
     * the fork, extends it in the ZERO modes; -1 when the page does not exist (NORMAL: remembered
     * as missing). In the ZERO_AND_LOCK modes the buffer comes locked. (PostgreSQL:
     * XLogReadBufferExtended.)
     */
    public int readExtended(int spc, int db, int rel, ForkNumber fork, int block, ReadMode mode) {
        if (block == BlockNumber.INVALID) {
            throw new DamagedDataException(
                    "redo asks for an invalid block number: "
                            + place(spc, db, rel, fork, block, currentLsn()));
        }
        SmgrRelation relation = smgr.open(spc, db, rel);
        relationRead = relation;
        int buffer;
        if (Integer.compareUnsigned(block, existingBlocks(relation, fork)) < 0) {
            buffer = pool.read(relation, fork, block, mode);
        } else if (mode == ReadMode.NORMAL) {
            missingPages.remember(spc, db, rel, fork, block, false, currentLsn(), state.consistent);
            return -1;
        } else if (mode == ReadMode.NORMAL_NO_LOG) {
            return -1;
        } else {
            buffer = extendTo(relation, fork, block, mode);
        }
        if (mode == ReadMode.NORMAL) {
            pool.wrap(buffer, peek);
            if (isNew(peek)) {
                pool.release(buffer);
                missingPages.remember(
                        spc, db, rel, fork, block, true, currentLsn(), state.consistent);
                return -1;
            }
        }
        return buffer;
    }

    /**
     * The fork's size, the fork made when it is not there: a record may well write to a relation
     * whose drop comes later in the WAL, and the file may have been lost in the crash.
     */
    private static int existingBlocks(SmgrRelation relation, ForkNumber fork) {
        long size = relation.rememberedSize(fork);
        if (ForkSize.isAccurate(size)) {
            return ForkSize.blocks(size);
        }
        relation.create(fork, true);
        return relation.nblocks(fork);
    }

    /** Adds zero pages up to and including {@code block}, one by one, each through the pool. */
    private int extendTo(SmgrRelation relation, ForkNumber fork, int block, ReadMode mode) {
        boolean locking = mode == ReadMode.ZERO_AND_LOCK || mode == ReadMode.ZERO_AND_CLEANUP_LOCK;
        int buffer = pool.extend(relation, fork, false);
        int at = pool.block(buffer);
        while (Integer.compareUnsigned(at, block) < 0) {
            pool.release(buffer);
            buffer = pool.extend(relation, fork, false);
            at = pool.block(buffer);
        }
        if (at != block) {
            pool.release(buffer);
            return pool.read(relation, fork, block, mode);
        }
        if (locking) {
            // Nobody else knows the new page yet, so an exclusive lock is a cleanup lock.
            pool.lockExclusive(buffer);
        }
        return buffer;
    }

    private long currentLsn() {
        return state.replayEndLsn == Lsn.INVALID ? currentLsn : state.replayEndLsn;
    }

    private static boolean isNew(UnsafeBuffer page) {
        return page.getShort(Page.PD_UPPER) == 0;
    }

    public SmgrRelation relation(int spc, int db, int rel) {
        return smgr.open(spc, db, rel);
    }

    /**
     * Makes the minimum recovery point durable up to {@code lsn}; call before files shrink or
     * vanish. (PostgreSQL: XLogFlush in recovery.)
     */
    public void flushTo(long lsn) {
        gate.beforeWrite(lsn);
    }

    /**
     * Forgets missing pages of a relation fork from {@code firstBlock} on. (PostgreSQL:
     * XLogTruncateRelation.)
     */
    public void forgetMissingPages(int spc, int db, int rel, ForkNumber fork, int firstBlock) {
        missingPages.forget(spc, db, rel, fork, firstBlock);
    }

    /**
     * Forgets missing pages of a database. (PostgreSQL: XLogDropDatabase, without its smgr part.)
     */
    public void forgetMissingPages(int db) {
        missingPages.forgetDatabase(db);
    }

    /**
     * Drops relations as a commit or abort record lists them: missing pages forgotten, buffers
     * dropped in one pass, files removed at once. The caller has called {@link #flushTo}.
     * (PostgreSQL: DropRelationFiles with isRedo.)
     *
     * @param locators triples spc, db, rel, {@code count} of them
     */
    public void dropRelations(int[] locators, int count) {
        if (count > dropped.length) {
            dropped = new SmgrRelation[Math.max(count, dropped.length * 2)];
        }
        for (int i = 0; i < count; i++) {
            int spc = locators[3 * i];
            int db = locators[3 * i + 1];
            int rel = locators[3 * i + 2];
            for (ForkNumber fork : FORKS) {
                missingPages.forget(spc, db, rel, fork, 0);
            }
            dropped[i] = smgr.open(spc, db, rel);
        }
        pool.dropRelations(dropped, count);
        smgr.unlinkAll(dropped, count, true);
        for (int i = 0; i < count; i++) {
            smgr.close(dropped[i]);
        }
        Arrays.fill(dropped, 0, count, null);
    }

    /**
     * After a failure in the middle of a record: every held buffer goes back to what its file
     * holds, then is let go. A page half changed must not reach the disk; its older version is as
     * good as any to replay over.
     */
    public void abandonHeldBuffers() {
        for (RedoBuffer buffer : buffers) {
            if (buffer.isValid()) {
                buffer.revert();
                buffer.release();
            }
        }
    }

    /** Asserted after each record. */
    boolean holdsNothing() {
        for (RedoBuffer buffer : buffers) {
            if (buffer.isValid()) {
                return false;
            }
        }
        return true;
    }

    /** Text of the place for messages: {@code rel=… fork=… block=… lsn=…}. */
    public String place(WalRecord record, int blockId) {
        if (!record.hasBlock(blockId)) {
            return "lsn=" + Lsn.format(record.lsn());
        }
        return place(
                record.blockSpc(blockId),
                record.blockDb(blockId),
                record.blockRel(blockId),
                record.blockFork(blockId),
                record.blockNumber(blockId),
                record.lsn());
    }

    private static String place(int spc, int db, int rel, ForkNumber fork, int block, long lsn) {
        return "rel="
                + new RelFileLocator(spc, db, rel)
                + " fork="
                + fork
                + " block="
                + BlockNumber.toString(block)
                + " lsn="
                + Lsn.format(lsn);
    }
}
