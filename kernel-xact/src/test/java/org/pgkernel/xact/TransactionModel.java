package org.pgkernel.xact;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.pgkernel.base.TransactionId;

/**
 * Sessions that take turns in any order, beside a plain model of what each xid is: the model knows
 * at once who has committed, and a snapshot in it is a set. Whenever a transaction leaves the
 * running table, and after every step, what the kernel tells must be what the model tells.
 */
class TransactionModel {
    enum State {
        RUNNING,
        COMMITTED,
        ABORTED
    }

    private static final int SESSIONS = 4;

    private final Random random;
    private final XactModule module;
    final RunningTransactions running;
    private final TransactionManager manager;
    private final List<Session> sessions = new ArrayList<>();
    private final Map<Integer, State> states = new HashMap<>();
    private final List<Integer> all = new ArrayList<>();

    /** One session and what the model knows of it. */
    private final class Session {
        final TransactionSession kernel;
        final int database;
        final Snapshot snapshot;

        /** Committed when the snapshot was taken; null while there is none. */
        Set<Integer> seen;

        /** For each level its xids, those of committed children too. */
        final List<List<Integer>> levels = new ArrayList<>();

        Session(TransactionSession kernel, int database) {
            this.kernel = kernel;
            this.database = database;
            snapshot = kernel.newSnapshot();
        }

        boolean owns(int xid) {
            return levels.stream().anyMatch(level -> level.contains(xid));
        }
    }

    /** What is tested, or a mutant of it. */
    interface Parts {
        default RunningTransactions table(int slots, int cached, long next) {
            return new RunningTransactions(slots, cached, next);
        }

        default TransactionSession session(TransactionManager manager, int database) {
            return manager.openSession(database);
        }
    }

    TransactionModel(long seed, long nextFullXid, int cachedSubxids, Parts parts) {
        random = new Random(seed);
        module = XactFixture.module(nextFullXid);
        RunningTransactions table = parts.table(SESSIONS, cachedSubxids, nextFullXid);
        running = table;
        XactOptions options = XactFixture.options(SESSIONS, cachedSubxids);
        XactWal wal = new XactFixture.CountingWal();
        manager =
                new TransactionManager(
                        module,
                        options,
                        wal,
                        XactFixture.SILENT,
                        (locators, count) -> {},
                        () -> 1,
                        LockOptions.DEFAULT,
                        table,
                        new XidGenerator(module, table, wal, XactFixture.SILENT, 200_000_000));
        for (int i = 0; i < SESSIONS; i++) {
            int database = 5 + i % 2;
            sessions.add(new Session(parts.session(manager, database), database));
        }
    }

    /** To be called whenever a transaction has left the running table. */
    void whoHasLeftIsDecided() {
        for (int xid : all) {
            if (!manager.isInProgress(xid) && !manager.didCommit(xid) && !manager.didAbort(xid)) {
                throw new AssertionError("neither running nor decided: " + unsigned(xid));
            }
        }
    }

    void run(int steps) {
        for (int i = 0; i < steps; i++) {
            step(sessions.get(random.nextInt(SESSIONS)));
            check();
        }
    }

    private void step(Session session) {
        TransactionSession kernel = session.kernel;
        if (!kernel.inTransaction()) {
            kernel.begin();
            session.levels.add(new ArrayList<>());
            return;
        }
        switch (random.nextInt(10)) {
            case 0, 1, 2 -> assign(session);
            case 3, 4 -> {
                kernel.snapshot(session.snapshot);
                session.seen = new HashSet<>();
                states.forEach(
                        (xid, state) -> {
                            if (state == State.COMMITTED) {
                                session.seen.add(xid);
                            }
                        });
            }
            case 5 -> {
                kernel.savepoint();
                session.levels.add(new ArrayList<>());
            }
            case 6 -> {
                if (kernel.level() > 0) {
                    kernel.release(kernel.level());
                    List<Integer> child = session.levels.removeLast();
                    session.levels.getLast().addAll(child);
                }
            }
            case 7 -> {
                if (kernel.level() > 0) {
                    int to = 1 + random.nextInt(kernel.level());
                    while (session.levels.size() > to) {
                        session.levels.removeLast().forEach(x -> states.put(x, State.ABORTED));
                    }
                    kernel.rollbackTo(to);
                    session.levels.add(new ArrayList<>());
                } else {
                    session.seen = null;
                    kernel.forgetSnapshots();
                }
            }
            default -> end(session, random.nextInt(3) != 0);
        }
    }

    private void assign(Session session) {
        int xid = session.kernel.xid();
        if (!session.owns(xid)) {
            // Parents were assigned first: their xids come just before.
            int missing = 0;
            while (missing < session.levels.size()
                    && session.levels.get(session.levels.size() - 1 - missing).isEmpty()) {
                missing++;
            }
            int each = xid;
            for (int i = 0; i < missing; i++) {
                session.levels.get(session.levels.size() - 1 - i).add(each);
                states.put(each, State.RUNNING);
                all.add(each);
                each = TransactionId.retreat(each);
            }
        }
    }

    private void end(Session session, boolean commit) {
        if (commit) {
            session.kernel.commit(random.nextBoolean());
        } else {
            session.kernel.rollback();
        }
        State state = commit ? State.COMMITTED : State.ABORTED;
        session.levels.forEach(level -> level.forEach(xid -> states.put(xid, state)));
        session.levels.clear();
        session.seen = null;
    }

    private void check() {
        for (int xid : all) {
            State state = states.get(xid);
            expect(state == State.RUNNING, manager.isInProgress(xid), "in progress", xid, null);
            expect(state == State.COMMITTED, manager.didCommit(xid), "committed", xid, null);
            expect(state == State.ABORTED, manager.didAbort(xid), "aborted", xid, null);
        }
        for (Session session : sessions) {
            for (int xid : all) {
                expect(session.owns(xid), session.kernel.isCurrent(xid), "own", xid, null);
                if (session.seen != null && !session.owns(xid)) {
                    boolean visible = !session.snapshot.isRunning(xid) && manager.didCommit(xid);
                    expect(session.seen.contains(xid), visible, "visible", xid, session.snapshot);
                }
            }
        }
        checkHorizons();
    }

    private void checkHorizons() {
        Horizons horizons = new Horizons();
        for (int database = 5; database <= 6; database++) {
            manager.horizons(database, horizons);
            int data = TransactionId.advance(TransactionId.xidOf(running.latestCompleted()));
            int shared = data;
            for (Session session : sessions) {
                int oldest = session.kernel.inTransaction() ? session.kernel.topXidIfAny() : 0;
                if (session.seen != null) {
                    oldest = RunningTransactions.older(oldest, oldestOf(session));
                }
                shared = RunningTransactions.older(shared, oldest);
                if (session.database == database) {
                    data = RunningTransactions.older(data, oldest);
                }
            }
            expectHorizon(shared, horizons.sharedOldestNonremovable(), "shared");
            expectHorizon(data, horizons.dataOldestNonremovable(), "data");
        }
    }

    /** A session keeps the xmin of the first snapshot that it has not forgotten. */
    private int oldestOf(Session session) {
        return RunningTransactions.older(
                session.snapshot.xmin(), running.xmin(session.kernel.slot));
    }

    private static void expectHorizon(int most, int horizon, String what) {
        if (horizon != most) {
            throw new AssertionError(
                    what + " horizon " + unsigned(horizon) + " expected " + unsigned(most));
        }
    }

    private static void expect(
            boolean model, boolean kernel, String what, int xid, Snapshot snapshot) {
        if (model != kernel) {
            throw new AssertionError(
                    unsigned(xid)
                            + " "
                            + what
                            + ": model "
                            + model
                            + ", kernel "
                            + kernel
                            + (snapshot == null ? "" : " in " + snapshot));
        }
    }

    private static String unsigned(int xid) {
        return Integer.toUnsignedString(xid);
    }
}
