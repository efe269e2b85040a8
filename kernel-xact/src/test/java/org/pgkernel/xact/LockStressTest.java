package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.error.DeadlockException;
import org.pgkernel.base.error.LockNotAvailableException;

/**
 * Sessions on threads of their own lock what they like in any order, and wait for each other.
 * Nobody holds a lock against another (XACT-16), nobody sleeps for ever (XACT-17, XACT-18), and
 * nothing is left.
 */
@Timeout(120)
class LockStressTest {
    private static final int THREADS = 6;
    private static final int LOCKS = 4;
    private static final int TRANSACTIONS = 300;

    private final LockOptions options = new LockOptions(2_000_000, LockParking.THREADS);
    private final TransactionManager manager =
            TransactionManager.start(
                    XactFixture.module(1000),
                    XactFixture.options(THREADS, 2),
                    new XactFixture.CountingWal(),
                    XactFixture.SILENT,
                    (locators, count) -> {},
                    () -> 1,
                    options);

    /** How many hold each lock in each mode, by what the threads know. */
    private final AtomicIntegerArray held = new AtomicIntegerArray(LOCKS * LockMode.COUNT);

    private final AtomicIntegerArray xids = new AtomicIntegerArray(THREADS);
    private final AtomicLong deadlocks = new AtomicLong();
    private final AtomicLong late = new AtomicLong();

    private final class Worker {
        final Random random;
        final int number;
        final TransactionSession session = manager.openSession(5);
        final int[] own = new int[LOCKS * LockMode.COUNT];

        Worker(long seed, int number) {
            random = new Random(seed + number);
            this.number = number;
        }

        void run() {
            for (int i = 0; i < TRANSACTIONS; i++) {
                session.begin();
                try {
                    for (int j = random.nextInt(5); j >= 0; j--) {
                        act();
                    }
                } catch (DeadlockException e) {
                    deadlocks.incrementAndGet();
                } catch (LockNotAvailableException e) {
                    late.incrementAndGet();
                }
                for (int k = 0; k < own.length; k++) {
                    held.addAndGet(k, -own[k]);
                    own[k] = 0;
                }
                if (random.nextBoolean()) {
                    session.commit(true);
                } else {
                    session.rollback();
                }
            }
            session.close();
        }

        void act() {
            session.locks().timeoutNanos(random.nextInt(3) == 0 ? 1_000_000 : 0);
            int lock = random.nextInt(LOCKS);
            LockMode mode = LockMode.of(random.nextInt(LockMode.COUNT));
            switch (random.nextInt(8)) {
                case 0 -> xids.set(number, session.xid());
                case 1, 2 -> {
                    int xid = xids.get(random.nextInt(THREADS));
                    if (xid != 0 && !session.isCurrent(xid)) {
                        session.locks().waitForTransaction(xid, 5, 16384, 1);
                        assertFalse(manager.isInProgress(xid));
                    }
                }
                case 3 -> {
                    if (session.locks().tryLockRelation(5, lock, mode)) {
                        got(lock, mode);
                    }
                }
                default -> {
                    session.locks().lockRelation(5, lock, mode);
                    got(lock, mode);
                }
            }
        }

        void got(int lock, LockMode mode) {
            int at = lock * LockMode.COUNT + mode.ordinal();
            if (own[at] == 0) {
                own[at] = 1;
                held.incrementAndGet(at);
            }
            for (LockMode other : LockMode.values()) {
                int beside = lock * LockMode.COUNT + other.ordinal();
                assertTrue(
                        !mode.conflictsWith(other) || held.get(beside) == own[beside],
                        () -> "XACT-16: " + mode + " beside another's " + other);
            }
        }
    }

    @Test
    void nobodyHoldsAgainstAnotherAndNobodySleepsForEver() throws Exception {
        long seed = System.nanoTime();
        System.out.println("LockStressTest seed " + seed);
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<?>> runs = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                Worker worker = new Worker(seed, i);
                runs.add(pool.submit(worker::run));
            }
            for (Future<?> run : runs) {
                run.get();
            }
        } finally {
            // Who waits for ever is interrupted.
            pool.shutdownNow();
        }
        assertEquals(0, manager.locks().size());
        assertTrue(deadlocks.get() > 0, "the test is about deadlocks too");
    }
}
