package org.pgkernel.heap;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.fsm.RelationTruncation;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.recovery.CheckpointDelay;
import org.pgkernel.smgr.SmgrRelation;

/** A {@link HeapRig} with one table of numbers and texts, rows that tests edit, and vacuums. */
final class VacuumRig implements AutoCloseable {
    static final int REL = 20_000;
    static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("id", "int4"), Attribute.of("text", "text"));

    final HeapRig rig;
    final HeapRelation table;
    final CheckpointDelay checkpoints = new CheckpointDelay();
    final Lock lock = new Lock();
    final List<String> messages = new ArrayList<>();
    final FreeSpaceMap freeSpace = new FreeSpaceMap();
    final VisibilityMap map = new VisibilityMap();

    /** The disk crashed or the kernel stopped: sessions cannot end. */
    boolean dead;

    private HeapRig.Session checker;
    RelationHistory history = new RelationHistory(HeapRig.FIRST_XID - 50, 1, 0, -1);

    VacuumRig(long seed) {
        this(new HeapRig(seed, 256));
    }

    VacuumRig(HeapRig rig) {
        this.rig = rig;
        table = rig.table(REL, COLUMNS);
    }

    /** A lock that is to be had as often as a test says, and its own clock. */
    static final class Lock implements TruncationLock {
        /** Attempts that fail before one succeeds. */
        int refusals;

        /** Each look at the clock, or sleep, moves it on. */
        long nanosPerLook;

        boolean waiters;
        boolean held;
        int tries;
        int unlocks;
        long nanos;
        long slept;

        /** Run when it is asked whether somebody waits. */
        Runnable onWaitersAsked = () -> {};

        /** Run when the lock has been got. */
        Runnable onLocked = () -> {};

        @Override
        public boolean tryLock() {
            tries++;
            if (refusals > 0) {
                refusals--;
                return false;
            }
            held = true;
            onLocked.run();
            return true;
        }

        @Override
        public void unlock() {
            held = false;
            unlocks++;
        }

        @Override
        public boolean hasWaiters() {
            assert held;
            onWaitersAsked.run();
            return waiters;
        }

        @Override
        public long nanoTime() {
            nanos += nanosPerLook;
            return nanos;
        }

        @Override
        public void sleep(long forNanos) {
            nanos += forNanos;
            slept += forNanos;
        }
    }

    /** One session with its edits and vacuum. */
    final class Worker {
        final HeapRig.Session session = rig.session();
        final HeapVacuum vacuum =
                new HeapVacuum(
                        session.backend,
                        new HeapTruncation(
                                session.backend,
                                new RelationTruncation(rig.wal, checkpoints),
                                relation -> lock));

        VacuumResult vacuum(VacuumOptions options, IndexCleaner indexes) {
            session.session.begin();
            session.session.vacuums();
            try {
                VacuumResult result = vacuum.vacuum(table, history, options, indexes, listener);
                history =
                        new RelationHistory(
                                result.frozenXid() == 0 ? history.frozenXid() : result.frozenXid(),
                                result.minMulti() == 0 ? history.minMulti() : result.minMulti(),
                                result.pages(),
                                result.liveTuples());
                return result;
            } finally {
                try {
                    session.rollback();
                } catch (RuntimeException e) {
                    dead = true;
                }
            }
        }

        VacuumResult vacuum() {
            return vacuum(VacuumOptions.DEFAULT, null);
        }

        /** Rows 0 to count - 1, committed. */
        List<Long> fill(int count, String text) {
            session.begin();
            List<Long> tids = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                tids.add(session.insert(table, i, text));
            }
            session.commit();
            return tids;
        }

        void delete(List<Long> tids) {
            session.begin();
            for (long tid : tids) {
                if (session.delete(table, tid) != TupleOutcome.OK) {
                    throw new AssertionError(TupleId.format(tid));
                }
            }
            session.commit();
        }

        TreeMap<Long, String> rows() {
            session.begin();
            TreeMap<Long, String> rows = session.rows(table, session.mvcc);
            session.rollback();
            return rows;
        }
    }

    VacuumListener listener =
            new VacuumListener() {
                @Override
                public void message(String text) {
                    messages.add(text);
                }
            };

    Worker worker() {
        return new Worker();
    }

    int blocks() {
        return table.storage().nblocks(ForkNumber.MAIN);
    }

    int bits(int block) {
        return map.status(rig.pool, table.storage(), block);
    }

    int recordedFree(int block) {
        return freeSpace.recordedFree(rig.pool, table.storage(), block);
    }

    /**
     * @return tuples in the table
     */
    int check() {
        return checking(rig.pool, table.storage(), history.frozenXid());
    }

    private int checking(BufferPool pool, SmgrRelation storage, int frozenXid) {
        if (checker == null) {
            checker = rig.session();
        }
        checker.session.begin();
        try {
            return new VacuumChecks(pool, rig.transactions::didCommit, checker.backend.multis)
                    .check(storage, frozenXid);
        } finally {
            checker.rollback();
        }
    }

    /**
     * The invariants hold in what redo makes of any beginning of the WAL, and all of it is ours.
     */
    void checkEveryCut() {
        rig.replayBeside(
                (at, pool) ->
                        checking(
                                pool,
                                pool.smgr().open(HeapRig.SPC, HeapRig.DB, REL),
                                TransactionId.FIRST_NORMAL),
                (at, pool) -> {});
        rig.checkRedo(table);
    }

    @Override
    public void close() {
        if (dead) {
            rig.abandon();
        } else {
            rig.close();
        }
    }
}
