package org.pgkernel.xact;

import java.util.Arrays;
import org.agrona.ExpandableArrayBuffer;
import org.pgkernel.base.TransactionId;
import org.pgkernel.base.error.RefusedException;

/**
 * One session and its transaction, used by one thread at a time. Reused from transaction to
 * transaction; nothing is allocated in one once its memory has grown.
 *
 * <p>Xids are assigned when they are first asked for, a parent's before its child's. They stand in
 * one list in the order of assignment, which is their order: each level of the nesting knows where
 * its own xid stands, and what stands after it are its committed children, then the next level. A
 * subtransaction that commits leaves its xids where they are, one that aborts takes them off the
 * end. At the end of the transaction the list is its xid and all its committed subtransactions.
 *
 * <p><b>The order of a commit</b>: record in the WAL, WAL durable (or its position remembered with
 * the pages of pg_xact), pg_xact, running table, locks and files. Durable before pg_xact: nobody
 * sees a commit that a crash undoes, and no page says so on disk. pg_xact before the running table:
 * who no longer finds the xid running asks pg_xact, and would take an undecided one for aborted.
 * From the record to pg_xact a checkpoint waits: its redo point could lie after the record, and its
 * copy of pg_xact lack the status. A failure in between leaves open what the transaction is, so the
 * kernel stops. (PostgreSQL: RecordTransactionCommit, CommitTransaction, xact.c.)
 */
public class TransactionSession implements AutoCloseable {
    private static final int UNASSIGNED = -1;

    final int slot;
    private final TransactionManager manager;
    private final RunningTransactions running;
    private final XactRecordWriter records = new XactRecordWriter();
    private final PendingDrops drops = new PendingDrops();
    private final SessionLocks locks;

    /** Four bytes each, in order. */
    private final ExpandableArrayBuffer xids = new ExpandableArrayBuffer(256);

    private int xidCount;

    /** For each level where its own xid stands; level 0 is the transaction itself. */
    private int[] starts = new int[8];

    private int level;
    private boolean inTransaction;
    private boolean closed;
    private long topFullXid;
    private int commandId;
    private boolean commandUsed;
    private int flags;
    private long lastWal;

    /** Subtransactions that no assignment record has told yet. */
    private final int[] unreported = new int[RunningTransactions.CACHED_SUBXIDS];

    private int unreportedCount;

    /** Only this package makes sessions. */
    TransactionSession(TransactionManager manager, int database) {
        this.manager = manager;
        running = manager.running();
        slot = running.acquireSlot(database);
        locks = manager.locks().open(this);
    }

    /** The session's locks on relations and rows, and its waits for other transactions. */
    public SessionLocks locks() {
        return locks;
    }

    /** Begins a transaction. */
    public void begin() {
        assert !closed && !inTransaction : "a transaction runs already";
        inTransaction = true;
        level = 0;
        starts[0] = UNASSIGNED;
        xidCount = 0;
        topFullXid = 0;
        commandId = 0;
        commandUsed = false;
        flags = 0;
        lastWal = 0;
        unreportedCount = 0;
    }

    public boolean inTransaction() {
        return inTransaction;
    }

    /**
     * The current subtransaction's xid, assigned now if it has none. (PostgreSQL:
     * GetCurrentTransactionId, AssignTransactionId.)
     *
     * @throws RefusedException when no xid can be assigned without danger
     */
    public int xid() {
        assert inTransaction;
        if (starts[level] == UNASSIGNED) {
            int from = level;
            while (from > 0 && starts[from - 1] == UNASSIGNED) {
                from--;
            }
            for (int i = from; i <= level; i++) {
                assign(i);
            }
        }
        return xidAt(starts[level]);
    }

    /**
     * The parent is told before the xid can be met anywhere but in the running table, where it may
     * not have found room.
     */
    private void assign(int of) {
        long full = manager.assign(slot, of > 0);
        int xid = TransactionId.xidOf(full);
        starts[of] = xidCount;
        xids.putInt(xidCount++ * 4, xid);
        if (of == 0) {
            topFullXid = full;
            return;
        }
        manager.subTrans().setParent(xid, xidAt(starts[of - 1]));
        unreported[unreportedCount++] = xid;
        if (unreportedCount == unreported.length) {
            manager.wal()
                    .insert(
                            records.assignment(
                                    xidIfAny(), topXidIfAny(), unreported, unreportedCount));
            unreportedCount = 0;
        }
    }

    private int xidAt(int index) {
        return xids.getInt(index * 4);
    }

    /** The current subtransaction's xid, 0 if it has none. */
    public int xidIfAny() {
        boolean hasNone = !inTransaction || starts[level] == UNASSIGNED;
        return hasNone ? TransactionId.INVALID : xidAt(starts[level]);
    }

    /** The transaction's xid, 0 if it has none. */
    public int topXidIfAny() {
        return !inTransaction || xidCount == 0 ? TransactionId.INVALID : xidAt(0);
    }

    /** The same with its epoch. */
    public long topFullXidIfAny() {
        return inTransaction ? topFullXid : 0;
    }

    /**
     * True for xids of this transaction and of its subtransactions that have not aborted.
     * (PostgreSQL: TransactionIdIsCurrentTransactionId.)
     */
    public boolean isCurrent(int xid) {
        int low = 0;
        int high = inTransaction ? xidCount - 1 : -1;
        while (low <= high) {
            int middle = low + high >>> 1;
            int at = xidAt(middle);
            if (at == xid) {
                return true;
            }
            if (TransactionId.precedes(at, xid)) {
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        return false;
    }

    /**
     * The command that runs now.
     *
     * @param used it marks rows: the next command has another number (PostgreSQL:
     *     GetCurrentCommandId)
     */
    public int commandId(boolean used) {
        commandUsed |= used;
        return commandId;
    }

    /**
     * Lets later snapshots see what was done so far. (PostgreSQL: CommandCounterIncrement.)
     *
     * @throws RefusedException when there are no more numbers
     */
    public void nextCommand() {
        if (commandUsed) {
            if (commandId == -2) {
                throw new RefusedException(
                        "a transaction cannot have more than 2^32-2 commands; xid="
                                + Integer.toUnsignedString(topXidIfAny()));
            }
            commandId++;
            commandUsed = false;
        }
    }

    /** An empty snapshot for this session. */
    public Snapshot newSnapshot() {
        return manager.newSnapshot();
    }

    /** Fills a snapshot of this session with what has ended up to now. */
    public void snapshot(Snapshot snapshot) {
        assert inTransaction;
        running.snapshot(slot, snapshot);
        snapshot.curcid = commandId;
    }

    /**
     * No snapshot of this session is used any more until it is filled again. (PostgreSQL:
     * SnapshotResetXmin.)
     */
    public void forgetSnapshots() {
        running.forgetXmin(slot);
    }

    /**
     * The transaction only vacuums and puts its xid in no row; told before its first snapshot and
     * xid.
     */
    public void vacuums() {
        running.vacuuming(slot);
    }

    /** The transaction inserted a record that ends there, which asks for no xid. */
    public void wroteWal(long lsn) {
        lastWal = Math.max(lastWal, lsn);
    }

    /** Its commit is made durable however it is asked for. (PostgreSQL: ForceSyncCommit.) */
    public void forceSyncCommit() {
        flags |= XactRecord.FORCE_SYNC_COMMIT;
    }

    /** It locked a relation against everybody. (XACT_FLAGS_ACQUIREDACCESSEXCLUSIVELOCK) */
    public void lockedExclusively() {
        flags |= XactRecord.HAS_AE_LOCKS;
    }

    /** The relation's files go when the transaction has committed. (RelationDropStorage) */
    public void dropAtCommit(int spc, int db, int rel) {
        assert inTransaction;
        xid();
        drops.add(spc, db, rel, level, true);
    }

    /** The relation was created: its files go if this is rolled back. (RelationCreateStorage) */
    public void dropAtAbort(int spc, int db, int rel) {
        assert inTransaction;
        xid();
        drops.add(spc, db, rel, level, false);
    }

    /**
     * Begins a subtransaction.
     *
     * @return its level, which names it
     */
    public int savepoint() {
        assert inTransaction;
        level++;
        if (level == starts.length) {
            starts = Arrays.copyOf(starts, level * 2);
        }
        starts[level] = UNASSIGNED;
        return level;
    }

    /** Nesting of the current subtransaction, 0 for none. */
    public int level() {
        return level;
    }

    /** Commits a subtransaction into its parent, those within it too. (RELEASE SAVEPOINT) */
    public void release(int savepoint) {
        assert savepoint > 0 && savepoint <= level : "no such savepoint";
        while (level >= savepoint) {
            drops.commitLevel(level);
            locks.commitLevel(level);
            level--;
        }
    }

    /** Undoes a subtransaction, those within it too, and begins it anew. (ROLLBACK TO) */
    public void rollbackTo(int savepoint) {
        abortLevels(savepoint);
        savepoint();
    }

    private void abortLevels(int savepoint) {
        assert savepoint > 0 && savepoint <= level + 1 : "no such savepoint";
        while (level >= savepoint) {
            int start = starts[level];
            if (start != UNASSIGNED) {
                recordAbort(start);
                running.endSubtransactions(slot, xids, start * 4, xidCount - start);
                locks.ended(xids, start * 4, xidCount - start);
                xidCount = start;
            }
            locks.endLevel(level);
            drops.execute(level, false, manager.dropper());
            level--;
        }
    }

    /**
     * Commits.
     *
     * @param synchronous return only once the commit is durable. Otherwise a crash may undo it, but
     *     not in part, and not while a later one survives
     * @throws org.pgkernel.base.error.KernelStoppedException when it failed half-way: recovery will
     *     tell whether it is committed
     */
    public void commit(boolean synchronous) {
        assert inTransaction;
        if (level > 0) {
            release(1);
        }
        if (xidCount == 0) {
            endWithoutXid();
            return;
        }
        manager.checkUsable();
        running.enterCommit(slot);
        try {
            recordCommit(synchronous);
        } catch (RuntimeException | Error e) {
            throw manager.stop("commit of transaction " + Integer.toUnsignedString(xidAt(0)), e);
        }
        leave();
        drops.execute(0, true, manager.dropper());
    }

    private void endWithoutXid() {
        if (lastWal != 0) {
            manager.wal().flushSoon(lastWal);
        }
        inTransaction = false;
        manager.multiXacts().endTransaction(slot);
        running.endWithoutXid(slot);
        locks.endLevel(0);
    }

    /** Record, durability, pg_xact. */
    void recordCommit(boolean synchronous) {
        long time = manager.time();
        int children = xidCount - 1;
        long lsn =
                manager.wal()
                        .insert(
                                records.end(
                                        true, xidAt(0), time, flags, xids, 4, children, drops, 0));
        manager.commitTimes(xidAt(0), xids, 4, children, time);
        boolean mustFlush =
                synchronous
                        || (flags & XactRecord.FORCE_SYNC_COMMIT) != 0
                        || drops.count(0, true) > 0;
        if (mustFlush) {
            manager.wal().flush(lsn);
        } else {
            manager.wal().flushSoon(lsn);
        }
        markCommitted(mustFlush ? 0 : lsn);
        running.leaveCommit(slot);
    }

    /**
     * @param lsn that the pages wait for, 0 if the record is durable
     */
    void markCommitted(long lsn) {
        manager.commitLog()
                .setTreeStatus(xidAt(0), xids, 4, xidCount - 1, CommitLog.COMMITTED, lsn);
    }

    /** The last one to be assigned is the latest. */
    void leave() {
        inTransaction = false;
        manager.multiXacts().endTransaction(slot);
        running.end(slot, xidAt(xidCount - 1));
        locks.ended(xids, 0, xidCount);
        locks.endLevel(0);
    }

    /** Undoes the transaction. Does nothing if there is none. (PostgreSQL: AbortTransaction.) */
    public void rollback() {
        if (!inTransaction) {
            return;
        }
        abortLevels(1);
        if (xidCount == 0) {
            endWithoutXid();
        } else {
            recordAbort(0);
            leave();
        }
        drops.execute(0, false, manager.dropper());
    }

    /**
     * Nothing waits for an abort record: who is not known to have committed has aborted.
     * (PostgreSQL: RecordTransactionAbort.)
     */
    private void recordAbort(int start) {
        manager.checkUsable();
        int xid = xidAt(start);
        int offset = (start + 1) * 4;
        int children = xidCount - start - 1;
        int locks = flags & XactRecord.HAS_AE_LOCKS;
        try {
            long lsn =
                    manager.wal()
                            .insert(
                                    records.end(
                                            false,
                                            xid,
                                            manager.time(),
                                            locks,
                                            xids,
                                            offset,
                                            children,
                                            drops,
                                            level));
            if (start == 0) {
                manager.wal().flushSoon(lsn);
            }
            manager.commitLog().setTreeStatus(xid, xids, offset, children, CommitLog.ABORTED);
        } catch (RuntimeException | Error e) {
            throw manager.stop("abort of transaction " + Integer.toUnsignedString(xid), e);
        }
    }

    /** Gives the slot back, after undoing a transaction that still runs. */
    @Override
    public void close() {
        if (!closed) {
            rollback();
            closed = true;
            locks.close();
            running.releaseSlot(slot);
        }
    }
}
