package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.pgkernel.base.TransactionId;

/**
 * Sessions on threads. A clock ticks before and after each commit and each snapshot; a transaction
 * that had committed before a snapshot began is seen by it, one that began to commit after it ended
 * is not, and one in between is seen whole or not at all (XACT-8, XACT-9, XACT-10).
 */
class ConcurrentHistoryProperties {
    private static final int THREADS = 3;
    private static final int TRANSACTIONS = 60;

    private static final class Transaction {
        final List<Integer> committed = new ArrayList<>();
        final List<Integer> aborted = new ArrayList<>();
        volatile long commitBegan = Long.MAX_VALUE;
        volatile long commitEnded = Long.MAX_VALUE;
    }

    private record Seen(Transaction transaction, boolean visible, long began, long ended) {}

    private static final class History {
        final TransactionManager manager;
        final AtomicLong clock = new AtomicLong();
        final AtomicInteger count = new AtomicInteger();
        final AtomicReferenceArray<Transaction> all =
                new AtomicReferenceArray<>(THREADS * TRANSACTIONS);

        History(long next, int cachedSubxids) {
            manager =
                    XactFixture.manager(
                            XactFixture.module(next),
                            new XactFixture.CountingWal(),
                            XactFixture.options(THREADS + 1, cachedSubxids));
        }

        /** One session's life. @return what its snapshots saw */
        List<Seen> session(long seed) {
            Random random = new Random(seed);
            List<Seen> seen = new ArrayList<>();
            Horizons horizons = new Horizons();
            try (TransactionSession session = manager.openSession(5)) {
                Snapshot snapshot = session.newSnapshot();
                for (int i = 0; i < TRANSACTIONS; i++) {
                    session.begin();
                    Transaction own = work(session, random);
                    all.set(count.getAndIncrement(), own);
                    manager.horizons(5, horizons);
                    int before = horizons.dataOldestNonremovable();
                    long began = clock.incrementAndGet();
                    session.snapshot(snapshot);
                    long ended = clock.incrementAndGet();
                    assertTrue(
                            TransactionId.precedesOrEquals(before, snapshot.xmin()),
                            "a horizon had passed the snapshot");
                    look(session, snapshot, own, began, ended, seen);
                    Thread.yield();
                    look(session, snapshot, own, began, ended, seen);
                    manager.horizons(5, horizons);
                    assertTrue(
                            TransactionId.precedesOrEquals(
                                    horizons.dataOldestNonremovable(), snapshot.xmin()),
                            "a horizon passes a snapshot in use");
                    if (random.nextInt(4) == 0) {
                        session.rollback();
                    } else {
                        own.commitBegan = clock.incrementAndGet();
                        session.commit(random.nextBoolean());
                        own.commitEnded = clock.incrementAndGet();
                    }
                }
            }
            return seen;
        }

        private static Transaction work(TransactionSession session, Random random) {
            Transaction own = new Transaction();
            own.committed.add(session.xid());
            for (int s = random.nextInt(5); s > 0; s--) {
                int savepoint = session.savepoint();
                int xid = session.xid();
                if (random.nextInt(4) == 0) {
                    session.rollbackTo(savepoint);
                    own.aborted.add(xid);
                } else {
                    own.committed.add(xid);
                }
                session.release(savepoint);
            }
            return own;
        }

        private void look(
                TransactionSession session,
                Snapshot snapshot,
                Transaction own,
                long began,
                long ended,
                List<Seen> seen) {
            int known = count.get();
            for (int i = Math.max(0, known - 12); i < known; i++) {
                Transaction other = all.get(i);
                if (other == null || other == own) {
                    continue;
                }
                int visible = 0;
                for (int xid : other.committed) {
                    visible += isVisible(snapshot, xid) ? 1 : 0;
                }
                assertTrue(
                        visible == 0 || visible == other.committed.size(),
                        () -> "half of a transaction is seen: " + other.committed + snapshot);
                for (int xid : other.aborted) {
                    assertFalse(isVisible(snapshot, xid), "an aborted subtransaction is seen");
                }
                seen.add(new Seen(other, visible > 0, began, ended));
            }
        }

        private boolean isVisible(Snapshot snapshot, int xid) {
            return !snapshot.isRunning(xid) && manager.didCommit(xid);
        }
    }

    @Property(tries = 25)
    void aSnapshotSeesWhatCommittedBeforeItAndNoHalves(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 4) int cachedSubxids)
            throws Exception {
        History history = new History(seed % 2 == 0 ? 0x5_FFFF_FF00L : 1000, cachedSubxids);
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<List<Seen>>> sessions = new ArrayList<>();
            for (int t = 0; t < THREADS; t++) {
                long own = seed + t;
                sessions.add(threads.submit(() -> history.session(own)));
            }
            for (Future<List<Seen>> session : sessions) {
                for (Seen seen : session.get()) {
                    if (seen.transaction.commitEnded < seen.began) {
                        assertTrue(seen.visible, "a transaction had committed and is not seen");
                    }
                    if (seen.transaction.commitBegan > seen.ended) {
                        assertFalse(seen.visible, "a transaction is seen that had not committed");
                    }
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }
}
