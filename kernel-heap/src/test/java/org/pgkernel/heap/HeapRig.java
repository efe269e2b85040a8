package org.pgkernel.heap;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.FreeSpace;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.fsm.FsmRecovery;
import org.pgkernel.recovery.CheckpointParticipant;
import org.pgkernel.recovery.CoreRecoveryModuleProvider;
import org.pgkernel.recovery.RecoveredCounters;
import org.pgkernel.recovery.RecoveryEnvironment;
import org.pgkernel.recovery.RecoveryModule;
import org.pgkernel.recovery.RecoveryModuleProvider;
import org.pgkernel.recovery.RedoContext;
import org.pgkernel.recovery.ResourceManager;
import org.pgkernel.recovery.RmgrIds;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.wal.TimelineHistory;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.wal.WalReader;
import org.pgkernel.wal.WalRecord;
import org.pgkernel.wal.WalRecordBuilder;
import org.pgkernel.xact.LockOptions;
import org.pgkernel.xact.LockParking;
import org.pgkernel.xact.TransactionManager;
import org.pgkernel.xact.TransactionSession;
import org.pgkernel.xact.WraparoundListener;
import org.pgkernel.xact.XactModuleProvider;
import org.pgkernel.xact.XactOptions;
import org.pgkernel.xact.XactWal;

/**
 * A minimal primary in one process, over a {@link SimulatedDisk}: pool, WAL, transactions, and
 * backends that work on heap tables. It can crash (what was not synced is lost, or not, as the
 * disk's outcome says) and comes back by redo of its own WAL; and it can replay its WAL beside
 * itself, on an empty disk, and compare all pages with its own: {@link #checkRedo}.
 *
 * <pre>
 *   try (HeapRig rig = new HeapRig(1)) {
 *       HeapRelation table = rig.table(20000, TupleDescriptor.of(Attribute.of("a", "int4")));
 *       HeapRig.Session session = rig.session();
 *       session.begin();
 *       session.insert(table, 7L);
 *       session.commit();
 *       rig.checkRedo(table);
 *       try (HeapRig after = rig.crash(SimulatedDisk.LOSE_ALL)) { ... after.table(20000, ...) ... }
 *   }
 * </pre>
 */
final class HeapRig implements AutoCloseable {
    static final int SPC = RelFileLocator.DEFAULT_TABLESPACE;
    static final int DB = 5;
    static final String DATA = "/data";
    static final int FIRST_XID = 1000;

    private static final int WAL_SEGMENT = 1 << 20;
    static final long START = WAL_SEGMENT + 40;
    private static final long SYSTEM = 1;
    static final int RING = 1 << 18;

    final SimulatedDisk disk;
    final FsmOptions fsm;
    final StorageManager smgr;
    final BufferPool pool;
    final WalInserter wal;
    final TransactionManager transactions;
    final HeapEnvironment environment;

    private final List<RecoveryModule> modules = new ArrayList<>();
    private final RedoContext context;

    /** Given out by now, and how many more the log allows. */
    private int nextObjectId;

    private int loggedObjectIds;

    private final List<Session> sessions = new ArrayList<>();

    /** Where redo begins, and the counters there: what pg_control would tell. */
    private long redoLsn = START;

    private long redoNextXid = FIRST_XID;
    private int redoNextMulti = 1;
    private int redoNextMultiOffset;
    private int redoNextOid = 100_000;

    /** A new, empty primary of 64 pages. */
    HeapRig(long seed) {
        this(seed, 64);
    }

    HeapRig(long seed, int nbuffers) {
        this(freshDisk(seed), nbuffers, FsmOptions.ALWAYS, null);
    }

    /** Of a disk that {@link #freshDisk} made. */
    HeapRig(SimulatedDisk disk) {
        this(disk, FsmOptions.ALWAYS);
    }

    HeapRig(SimulatedDisk disk, FsmOptions fsm) {
        this(disk, 64, fsm, null);
    }

    /** What the disk holds, recovered from where {@code before} would begin; or new for null. */
    private HeapRig(SimulatedDisk disk, int nbuffers, FsmOptions fsm, HeapRig before) {
        this.disk = disk;
        this.fsm = fsm;
        WalInserter[] primary = new WalInserter[1];
        smgr =
                new StorageManager(
                        disk,
                        DATA,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.SHARED,
                        new SyncRequests(disk, DATA));
        pool =
                BufferPool.open(
                        BufferPoolOptions.of(nbuffers).withChecksums(false),
                        smgr,
                        lsn -> {
                            if (primary[0] != null) {
                                primary[0].flush(lsn);
                            }
                        });
        RecoveryEnvironment recovery =
                new RecoveryEnvironment(disk, DATA, smgr, pool, fsm.creationThreshold());
        for (RecoveryModuleProvider provider :
                List.of(
                        new CoreRecoveryModuleProvider(),
                        new XactModuleProvider(),
                        new FsmRecovery(),
                        new HeapRecovery())) {
            modules.add(provider.create(recovery));
        }
        if (before != null) {
            redoLsn = before.redoLsn;
            redoNextXid = before.redoNextXid;
            redoNextOid = before.redoNextOid;
            redoNextMulti = before.redoNextMulti;
            redoNextMultiOffset = before.redoNextMultiOffset;
        }
        counters().nextOid(before == null ? 100_000 : before.redoNextOid);
        context = RedoContext.standalone(pool, counters());
        counters().nextFullXid(redoNextXid);
        counters().oldestXid(900, DB);
        counters().nextMulti(redoNextMulti, redoNextMultiOffset);
        counters().oldestMulti(1, DB);
        primary[0] = recover();
        nextObjectId = counters().nextOid();
        wal = primary[0];
        transactions =
                TransactionManager.start(
                        modules.get(1),
                        XactOptions.DEFAULT,
                        xactWal(wal),
                        new Silent(),
                        this::dropRelations,
                        new AtomicLong(1)::getAndIncrement,
                        new LockOptions(20_000_000, LockParking.THREADS));
        environment =
                new HeapEnvironment(
                        pool, wal, ImageCompression.OFF, transactions, this::nextObjectId);
    }

    /** Few at a time, so that tests cross the end of what was logged. */
    private synchronized int nextObjectId() {
        if (loggedObjectIds == 0) {
            loggedObjectIds = 16;
            counters().nextOid(nextObjectId + loggedObjectIds);
            UnsafeBuffer body = new UnsafeBuffer(new byte[4]);
            body.putInt(0, nextObjectId + loggedObjectIds);
            wal.insert(new WalRecordBuilder().begin(RmgrIds.XLOG, 0x30, 0).data(body, 0, 4));
        }
        loggedObjectIds--;
        return nextObjectId++;
    }

    private static final class Silent implements WraparoundListener {
        @Override
        public void warning(String message) {}

        @Override
        public void vacuumNeeded(int database) {}
    }

    static XactWal xactWal(WalInserter wal) {
        return new XactWal() {
            @Override
            public long insert(WalRecordBuilder record) {
                return wal.insert(record);
            }

            @Override
            public void flush(long lsn) {
                wal.flush(lsn);
            }

            @Override
            public void flushSoon(long lsn) {
                wal.flushLater(lsn);
            }
        };
    }

    private void dropRelations(int[] locators, int count) {
        SmgrRelation[] dropped = new SmgrRelation[count];
        for (int i = 0; i < count; i++) {
            dropped[i] = smgr.open(locators[3 * i], locators[3 * i + 1], locators[3 * i + 2]);
        }
        pool.dropRelations(dropped, count);
        smgr.unlinkAll(dropped, count, false);
    }

    static SimulatedDisk freshDisk(long seed) {
        SimulatedDisk disk =
                new SimulatedDisk(seed)
                        .directories(
                                DATA + "/base/" + DB,
                                DATA + "/pg_wal",
                                DATA + "/pg_xact",
                                DATA + "/pg_subtrans",
                                DATA + "/pg_commit_ts",
                                DATA + "/pg_twophase",
                                DATA + "/pg_multixact/offsets",
                                DATA + "/pg_multixact/members");
        for (String log : List.of("pg_xact", "pg_multixact/offsets", "pg_multixact/members")) {
            ByteBuffer zeros = ByteBuffer.allocateDirect(Page.SIZE);
            try (DiskFile file = disk.create(DATA + "/" + log + "/0000")) {
                file.write(BufferUtil.address(zeros), Page.SIZE, 0);
            }
        }
        disk.syncAll();
        return disk;
    }

    private RecoveredCounters counters() {
        return modules.get(1).counters();
    }

    /** Replays the WAL there is and opens it for more. */
    private WalInserter recover() {
        smgr.inRecovery(true);
        modules.forEach(module -> module.beforeRedo(context));
        long end = START;
        long last = 0;
        try (WalReader reader = reader(disk)) {
            reader.begin(redoLsn);
            end = replay(reader, modules, context, at -> {});
            last = reader.lastRecord();
            if (end == redoLsn && redoLsn != START) {
                throw new AssertionError("nothing behind the redo point: " + reader.end());
            }
        }
        modules.forEach(module -> module.afterRedo(context));
        pool.flushAll();
        modules.forEach(module -> module.afterRecovery(context));
        smgr.inRecovery(false);
        return new WalInserter(
                disk, DATA + "/pg_wal", 1, WAL_SEGMENT, SYSTEM, end, last, 0, redoLsn, RING);
    }

    static WalReader reader(SimulatedDisk disk) {
        return new WalReader(disk, DATA + "/pg_wal", TimelineHistory.of(1), WAL_SEGMENT, SYSTEM);
    }

    /**
     * @return where the last record ended
     */
    static long replay(
            WalReader reader,
            List<RecoveryModule> modules,
            RedoContext context,
            LongConsumer afterEach) {
        ResourceManager[] managers = new ResourceManager[RmgrIds.COUNT];
        for (RecoveryModule module : modules) {
            for (ResourceManager manager : module.resourceManagers()) {
                managers[manager.id()] = manager;
            }
        }
        for (WalRecord record = reader.next(); record != null; record = reader.next()) {
            if (record.xid() != 0) {
                context.counters().advancePastXid(record.xid());
            }
            managers[record.rmid()].redo(record, context);
            afterEach.accept(record.endLsn());
        }
        return reader.endOfLastRecord();
    }

    /** A table's handle; its file is made if there is none. Not logged: redo makes files, too. */
    HeapRelation table(int rel, TupleDescriptor descriptor) {
        return table(rel, descriptor, HeapRelation.DEFAULT_FILLFACTOR, null);
    }

    HeapRelation table(int rel, TupleDescriptor descriptor, int fillFactor, HeapRelation toast) {
        return new HeapRelation(storage(rel), rel, descriptor, true, fillFactor, toast);
    }

    /** A table whose TOAST table has the next number. */
    HeapRelation toasted(int rel, TupleDescriptor descriptor) {
        return table(rel, descriptor, 100, table(rel + 1, ToastStore.COLUMNS));
    }

    SmgrRelation storage(int rel) {
        SmgrRelation storage = smgr.open(SPC, DB, rel);
        if (!storage.exists(ForkNumber.MAIN)) {
            storage.create(ForkNumber.MAIN, false);
        }
        return storage;
    }

    /** A backend, with what tests need around it. */
    final class Session implements AutoCloseable {
        final BackendBuffers buffers;
        final TransactionSession session;
        final HeapBackend backend;
        final HeapInserter inserter;
        final HeapUpdater updater;
        final HeapDeleter deleter;
        final HeapLocker locker;
        final HeapScan scan;
        final HeapFetch fetch;
        final MvccSnapshot snapshot;
        final HeapSnapshot mvcc;
        private final List<String> leaks = new ArrayList<>();

        Session(HeapEnvironment environment, FreeSpace freeSpace) {
            buffers = pool.backend("session " + sessions.size(), leaks::add);
            session = transactions.openSession(DB);
            backend = new HeapBackend(environment, buffers, session, DB, freeSpace);
            inserter = new HeapInserter(backend);
            updater = new HeapUpdater(backend);
            deleter = new HeapDeleter(backend);
            locker = new HeapLocker(backend);
            scan = new HeapScan(backend);
            fetch = new HeapFetch(backend);
            snapshot = backend.newSnapshot();
            mvcc = HeapSnapshot.mvcc(snapshot);
        }

        void begin() {
            session.begin();
            backend.snapshot(snapshot);
        }

        /** The next command sees what was done so far. */
        void nextCommand() {
            session.nextCommand();
            backend.snapshot(snapshot);
        }

        void commit() {
            session.commit(true);
            ended();
        }

        void rollback() {
            session.rollback();
            ended();
        }

        private void ended() {
            session.forgetSnapshots();
            backend.endTransaction();
        }

        /** Numbers, texts and nulls. */
        long insert(HeapRelation table, Object... values) {
            return inserter.insert(table, row(table, values));
        }

        /** Does not wait: BEING_MODIFIED instead. */
        TupleOutcome update(HeapRelation table, long tid, Object... values) {
            return updater.update(table, tid, row(table, values), false);
        }

        TupleOutcome delete(HeapRelation table, long tid) {
            return deleter.delete(table, tid, false);
        }

        /** Follows updates, and does not wait: WOULD_BLOCK instead. */
        TupleOutcome lock(HeapRelation table, long tid, RowLock lock) {
            return locker.lock(table, tid, lock, LockWait.SKIP_LOCKED, true);
        }

        /** The rows that a snapshot sees, as {@code [7, text, null]}, by place. */
        TreeMap<Long, String> rows(HeapRelation table, HeapSnapshot sees) {
            TreeMap<Long, String> rows = new TreeMap<>();
            RowValues row = new RowValues(table.descriptor());
            scan.begin(table, sees);
            while (scan.next()) {
                scan.tuple().read(row);
                rows.put(scan.tuple().tid(), text(table, row));
            }
            return rows;
        }

        /** Numbers as they are, other values as text, wherever they are stored. */
        String text(HeapRelation table, RowValues row) {
            List<String> values = new ArrayList<>();
            for (int i = 0; i < row.descriptor().count(); i++) {
                values.add(
                        row.isNull(i)
                                ? "null"
                                : row.descriptor().isByValue(i)
                                        ? Long.toString(row.number(i))
                                        : new String(
                                                backend.toast().value(table, row, i),
                                                StandardCharsets.UTF_8));
            }
            return values.toString();
        }

        @Override
        public void close() {
            scan.close();
            fetch.close();
            session.close();
            backend.endTransaction();
            buffers.close();
            if (!leaks.isEmpty()) {
                throw new AssertionError(leaks.toString());
            }
        }
    }

    static RowValues row(HeapRelation table, Object... values) {
        RowValues row = new RowValues(table.descriptor());
        for (int i = 0; i < values.length; i++) {
            switch (values[i]) {
                case null -> row.setNull(i);
                case Number number -> row.setNumber(i, number.longValue());
                case byte[] bytes -> row.setBytes(i, bytes);
                default -> row.setText(i, values[i].toString());
            }
        }
        return row;
    }

    /** A session; closed with the rig. */
    Session session() {
        return session(environment, fsm.newFreeSpace());
    }

    Session session(HeapEnvironment environment, FreeSpace freeSpace) {
        Session session = new Session(environment, freeSpace);
        sessions.add(session);
        return session;
    }

    /** Changes a page behind everybody's back. */
    void change(HeapRelation table, int block, Consumer<UnsafeBuffer> change) {
        int buffer = pool.read(table.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
        UnsafeBuffer view = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, view);
        pool.lockExclusive(buffer);
        change.accept(view);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    /** See {@link Settling}. */
    void settle(HeapRelation table, int bits) {
        Settling.settle(this, sessions.getFirst(), table, bits);
    }

    /** Everything before is on disk and redo begins here. No transaction may run. */
    void checkpoint() {
        long redo = wal.moveRedo();
        long nextXid = counters().nextFullXid();
        int nextOid = counters().nextOid();
        int nextMulti = counters().nextMulti();
        int nextMultiOffset = counters().nextMultiOffset();
        for (RecoveryModule module : modules) {
            for (CheckpointParticipant participant : module.checkpointParticipants()) {
                participant.checkpoint(redo);
            }
        }
        pool.flushAll();
        smgr.syncRequests().preCheckpoint();
        smgr.syncRequests().process();
        smgr.syncRequests().postCheckpoint();
        // Something must stand behind the redo point.
        wal.flush(wal.insert(new WalRecordBuilder().begin(RmgrIds.XLOG, 0x20, 0)));
        redoLsn = redo;
        redoNextXid = nextXid;
        redoNextOid = nextOid;
        redoNextMulti = nextMulti;
        redoNextMultiOffset = nextMultiOffset;
    }

    /**
     * The process dies; what was not synced is lost, or not, as the outcome says. This rig is of no
     * more use.
     *
     * @param outcome {@link SimulatedDisk#LOSE_ALL}, {@link SimulatedDisk#KEEP_ALL}, or any number
     * @return what recovery makes of the disk
     */
    HeapRig crash(long outcome) {
        return recovered(disk.restart(outcome));
    }

    /** This primary as recovery from such a disk makes it. */
    HeapRig recovered(SimulatedDisk found) {
        return new HeapRig(found, pool.nbuffers(), fsm, this);
    }

    /** A copy of a page as the pool has it. */
    UnsafeBuffer page(SmgrRelation storage, ForkNumber fork, int block) {
        return page(pool, storage, fork, block);
    }

    static UnsafeBuffer page(BufferPool pool, SmgrRelation storage, ForkNumber fork, int block) {
        int buffer = pool.read(storage, fork, block, ReadMode.NORMAL);
        byte[] copy = new byte[Page.SIZE];
        UnsafeBuffer view = new UnsafeBuffer(0L, 0);
        pool.wrap(buffer, view);
        view.getBytes(0, copy);
        pool.release(buffer);
        return new UnsafeBuffer(copy);
    }

    /** See {@link RedoBeside}. */
    void checkRedo(HeapRelation... tables) {
        new RedoBeside(this).check(tables);
    }

    /** See {@link RedoBeside}. */
    void replayBeside(RedoBeside.Replay afterEach, RedoBeside.Replay atEnd) {
        new RedoBeside(this).replay(afterEach, atEnd);
    }

    /** All records from the beginning on. */
    void forEachRecord(Consumer<WalRecord> look) {
        wal.flush(wal.insertLsn());
        try (WalReader reader = reader(disk)) {
            reader.begin(START);
            for (WalRecord record = reader.next(); record != null; record = reader.next()) {
                look.accept(record);
            }
        }
    }

    @Override
    public void close() {
        sessions.forEach(Session::close);
        abandon();
        if (pool.pinnedBuffers() != 0) {
            throw new AssertionError(pool.pinnedBuffers() + " buffers stay pinned");
        }
    }

    /** Frees the memory after a crash, asking nothing. */
    void abandon() {
        // The pool's memory is given back by the collector: sessions may still show pages.
        modules.forEach(RecoveryModule::close);
    }
}
