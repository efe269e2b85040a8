package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.error.DeadlockException;
import org.pgkernel.testkit.SimulatedDisk;

/** Sessions on threads of their own that update, delete and lock the same rows, and wait. */
@Timeout(300)
class HeapConcurrencyTest {
    private static final TupleDescriptor COLUMNS =
            new TupleDescriptor(
                    List.of(
                            Attribute.of("id", "int4"),
                            Attribute.of("amount", "int8"),
                            Attribute.of("filler", "text")),
                    Set.of("id"),
                    Set.of("id"));
    private static final int ID = 0;
    private static final int AMOUNT = 1;
    private static final int ACCOUNTS = 8;
    private static final int START = 1000;

    private final HeapRig rig = new HeapRig(1, 256);
    private final HeapRelation table = rig.table(20000, COLUMNS);

    /** For each account the places that an index would have. */
    private final List<List<Long>> index = new ArrayList<>();

    private final AtomicInteger deadlocks = new AtomicInteger();
    private final AtomicInteger lockers = new AtomicInteger();
    private final AtomicInteger followed = new AtomicInteger();
    private final AtomicBoolean done = new AtomicBoolean();

    private void open(HeapRig.Session session) {
        session.begin();
        for (int i = 0; i < ACCOUNTS; i++) {
            long tid = session.insert(table, i, START, "");
            index.add(new CopyOnWriteArrayList<>(List.of(tid)));
        }
        session.commit();
    }

    private final class Client {
        final HeapRig.Session session = rig.session();
        final Random random;
        final RowValues row = new RowValues(COLUMNS);

        Client(int seed) {
            random = new Random(seed);
        }

        /** The version that the snapshot sees. */
        long find(int account) {
            for (long root : index.get(account)) {
                if (session.fetch.fetchHot(table, root, session.mvcc)) {
                    session.fetch.tuple().read(row);
                    if (row.number(ID) == account) {
                        return session.fetch.tuple().tid();
                    }
                }
            }
            throw new AssertionError("account " + account + " is lost");
        }

        /** As READ COMMITTED does: the newest version is changed. */
        void add(int account, long amount) {
            long at = find(account);
            for (; ; ) {
                long balance = row.number(AMOUNT);
                RowValues changed =
                        HeapRig.row(
                                table, account, balance + amount, "f".repeat(random.nextInt(700)));
                session.fetch.close();
                TupleOutcome outcome = session.updater.update(table, at, changed, true);
                if (outcome == TupleOutcome.OK) {
                    if (!session.updater.isHot()) {
                        index.get(account).add(session.updater.newTid());
                    }
                    return;
                }
                assertEquals(TupleOutcome.UPDATED, outcome);
                followed.incrementAndGet();
                at = session.updater.conflict().nextTid();
                assertTrue(session.fetch.fetch(table, at, HeapSnapshot.ANY));
                TupleView next = session.fetch.tuple();
                assertEquals(
                        session.updater.conflict().xmax(),
                        HeapTupleHeader.xmin(next.page(), next.at()));
                next.read(row);
                assertEquals(account, row.number(ID));
            }
        }

        Object transfers(int count) {
            for (int i = 0; i < count; i++) {
                session.begin();
                try {
                    int amount = random.nextInt(100);
                    add(random.nextInt(ACCOUNTS), -amount);
                    session.nextCommand();
                    int savepoint = session.session.savepoint();
                    if (random.nextInt(4) == 0) {
                        add(random.nextInt(ACCOUNTS), 1_000_000);
                        session.session.rollbackTo(savepoint);
                        session.nextCommand();
                    }
                    add(random.nextInt(ACCOUNTS), amount);
                    if (random.nextInt(8) == 0) {
                        session.rollback();
                    } else {
                        session.commit();
                    }
                } catch (DeadlockException e) {
                    deadlocks.incrementAndGet();
                    session.rollback();
                }
            }
            return null;
        }

        /** Locks that share rows with updates and with each other. */
        Object locks() {
            while (!done.get()) {
                session.begin();
                try {
                    for (int i = random.nextInt(3); i >= 0; i--) {
                        long at = find(random.nextInt(ACCOUNTS));
                        session.fetch.close();
                        RowLock lock = RowLock.values()[random.nextInt(3)];
                        TupleOutcome outcome =
                                session.locker.lock(table, at, lock, LockWait.WAIT, true);
                        assertTrue(
                                outcome == TupleOutcome.OK || outcome == TupleOutcome.UPDATED,
                                outcome::toString);
                        lockers.incrementAndGet();
                        Thread.yield();
                        session.nextCommand();
                    }
                    session.commit();
                } catch (DeadlockException e) {
                    deadlocks.incrementAndGet();
                    session.rollback();
                }
            }
            return null;
        }

        /** Every snapshot sees the same sum. */
        Object sums() {
            while (!done.get()) {
                session.begin();
                assertEquals(ACCOUNTS * START, sum(session));
                assertEquals(ACCOUNTS * START, sum(session), "the same snapshot again");
                session.commit();
            }
            return null;
        }
    }

    private long sum(HeapRig.Session session) {
        long sum = 0;
        int rows = 0;
        RowValues row = new RowValues(COLUMNS);
        session.scan.begin(table, session.mvcc);
        while (session.scan.next()) {
            session.scan.tuple().read(row);
            sum += row.number(AMOUNT);
            rows++;
        }
        assertEquals(ACCOUNTS, rows);
        return sum;
    }

    @Test
    void nothingIsLostBetweenAccountsAndEverySnapshotSeesTheSameSum() throws Exception {
        try (rig) {
            open(rig.session());
            List<Callable<Object>> work = new ArrayList<>();
            CountDownLatch writers = new CountDownLatch(3);
            for (int i = 0; i < 3; i++) {
                Client client = new Client(i);
                work.add(
                        () -> {
                            client.transfers(800);
                            writers.countDown();
                            if (writers.getCount() == 0) {
                                done.set(true);
                            }
                            return null;
                        });
            }
            Client locker = new Client(10);
            Client other = new Client(11);
            Client reader = new Client(12);
            work.add(locker::locks);
            work.add(other::locks);
            work.add(reader::sums);
            try {
                Together.run(work.toArray(new Callable<?>[0]));
            } finally {
                done.set(true);
            }
            assertTrue(followed.get() > 20, followed + " versions followed");
            assertTrue(lockers.get() > 100, lockers + " locks");
            rig.checkRedo(table);
            try (HeapRig after = rig.recovered(rig.disk.found(SimulatedDisk.LOSE_ALL))) {
                HeapRig.Session session = after.session();
                HeapRelation found = after.table(20000, COLUMNS);
                session.begin();
                TreeMap<Long, String> rows = session.rows(found, session.mvcc);
                assertEquals(ACCOUNTS, rows.size());
                session.commit();
            }
        }
    }

    /** Of many who want one row each gets it once, whoever came first before the others. */
    @Test
    void whoDeletesARowDeletesItAlone() throws Exception {
        try (rig) {
            HeapRig.Session setup = rig.session();
            List<Client> clients = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                clients.add(new Client(i));
            }
            for (int round = 0; round < 50; round++) {
                setup.begin();
                long tid = setup.insert(table, round, 0, "");
                setup.commit();
                AtomicInteger deleted = new AtomicInteger();
                AtomicInteger tooLate = new AtomicInteger();
                List<Callable<Object>> work = new ArrayList<>();
                boolean firstRollsBack = round % 2 == 0;
                AtomicInteger order = new AtomicInteger();
                for (Client client : clients) {
                    work.add(
                            () -> {
                                client.session.begin();
                                TupleOutcome outcome =
                                        client.session.deleter.delete(table, tid, true);
                                if (outcome == TupleOutcome.DELETED) {
                                    tooLate.incrementAndGet();
                                    client.session.commit();
                                } else if (firstRollsBack && order.getAndIncrement() < 2) {
                                    client.session.rollback();
                                } else {
                                    assertEquals(TupleOutcome.OK, outcome);
                                    deleted.incrementAndGet();
                                    client.session.commit();
                                }
                                return null;
                            });
                }
                Together.run(work.toArray(new Callable<?>[0]));
                assertEquals(1, deleted.get());
                assertEquals(firstRollsBack ? 1 : 3, tooLate.get());
            }
            rig.checkRedo(table);
        }
    }
}
