package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * The lock table beside a naive one, requests and answers only, no threads: who holds what, who
 * waits where, and whom a deadlock hits (XACT-16, XACT-17, XACT-19).
 */
class LockModelProperties {
    private static final int SESSIONS = 5;
    private static final int LOCKS = 3;

    private record Wait(int session, LockMode mode) {}

    /** A lock as the model sees it. */
    private static final class Modelled {
        final Map<Integer, Set<LockMode>> held = new HashMap<>();
        final List<Wait> queue = new ArrayList<>();

        Set<LockMode> heldBy(int session) {
            return held.computeIfAbsent(session, s -> EnumSet.noneOf(LockMode.class));
        }

        boolean othersHoldAgainst(int session, LockMode mode) {
            return held.entrySet().stream()
                    .anyMatch(
                            e ->
                                    e.getKey() != session
                                            && e.getValue().stream().anyMatch(mode::conflictsWith));
        }

        boolean isWaitedForAgainst(LockMode mode, int before) {
            return queue.subList(0, before).stream().anyMatch(w -> mode.conflictsWith(w.mode));
        }

        /** Serves whoever is blocked neither by holders nor by who stays before it. */
        List<Integer> serve() {
            List<Integer> served = new ArrayList<>();
            for (int i = 0; i < queue.size(); ) {
                Wait wait = queue.get(i);
                if (othersHoldAgainst(wait.session, wait.mode)
                        || isWaitedForAgainst(wait.mode, i)) {
                    i++;
                } else {
                    queue.remove(i);
                    heldBy(wait.session).add(wait.mode);
                    served.add(wait.session);
                }
            }
            return served;
        }

        /** -1: granted at once. */
        int place(int session, LockMode mode) {
            boolean isHeld = othersHoldAgainst(session, mode);
            if (!isHeld && !isWaitedForAgainst(mode, queue.size())) {
                return -1;
            }
            for (int i = 0; i < queue.size(); i++) {
                LockMode waited = queue.get(i).mode;
                if (heldBy(session).stream().anyMatch(waited::conflictsWith)) {
                    return !isHeld && !isWaitedForAgainst(mode, i) ? -1 : i;
                }
            }
            return queue.size();
        }
    }

    private static final class Run {
        final Random random;
        final TransactionManager manager;
        final LockManager locks;
        final TransactionSession[] sessions = new TransactionSession[SESSIONS];
        final LockHolder[][] holders = new LockHolder[SESSIONS][LOCKS];
        final Modelled[] model = new Modelled[LOCKS];

        /** The session whose transaction it waits for, or -1. */
        final int[] awaited = new int[SESSIONS];

        int deadlocks;
        int opened;

        Run(long seed) {
            random = new Random(seed);
            manager =
                    XactFixture.manager(
                            XactFixture.module(1000),
                            new XactFixture.CountingWal(),
                            XactFixture.options(SESSIONS, 4));
            locks = manager.locks();
            for (int i = 0; i < SESSIONS; i++) {
                sessions[i] = manager.openSession(5);
                awaited[i] = -1;
                begin(i);
            }
            for (int i = 0; i < LOCKS; i++) {
                model[i] = new Modelled();
            }
        }

        void begin(int s) {
            sessions[s].begin();
            sessions[s].xid();
        }

        SessionLocks of(int s) {
            return sessions[s].locks();
        }

        LockTag tag(int lock) {
            return lock == 0
                    ? new LockTag().tuple(5, 16384, 7, 2)
                    : new LockTag().relation(5, 16384 + lock);
        }

        void run(int steps) {
            for (int i = 0; i < steps; i++) {
                int s = random.nextInt(SESSIONS);
                if (of(s).isWaiting()) {
                    stepOfWaiter(s);
                } else {
                    step(s);
                }
                compare();
                if (everyoneWaits()) {
                    for (int w = 0; w < SESSIONS && everyoneWaits(); w++) {
                        check(w);
                        compare();
                    }
                    assertFalse(everyoneWaits(), "XACT-17: nobody is left to wake anybody");
                }
            }
            for (int s = 0; s < SESSIONS; s++) {
                if (of(s).isWaiting()) {
                    assertTrue(locks.cancel(of(s)));
                    cancelled(s);
                }
                end(s);
                compare();
            }
            assertEquals(0, locks.size(), "nothing is left in the table");
        }

        boolean everyoneWaits() {
            for (int s = 0; s < SESSIONS; s++) {
                if (!of(s).isWaiting()) {
                    return false;
                }
            }
            return true;
        }

        void stepOfWaiter(int s) {
            switch (random.nextInt(6)) {
                case 0 -> {
                    assertTrue(locks.cancel(of(s)));
                    cancelled(s);
                }
                case 1, 2 -> check(s);
                default -> {}
            }
        }

        void step(int s) {
            int lock = random.nextInt(LOCKS);
            // Weak ones more often, else nobody queues behind a waiter only.
            LockMode mode = LockMode.of(random.nextInt(1 + random.nextInt(LockMode.COUNT)));
            switch (random.nextInt(10)) {
                case 0 -> {
                    end(s);
                    begin(s);
                }
                case 1 -> awaitOther(s, random.nextInt(SESSIONS));
                case 2, 3 -> {
                    if (model[lock].heldBy(s).contains(mode)) {
                        release(s, lock, mode);
                    }
                }
                default -> {
                    if (!model[lock].heldBy(s).contains(mode)) {
                        request(s, lock, mode);
                    }
                }
            }
        }

        void request(int s, int lock, LockMode mode) {
            boolean wait = random.nextInt(3) > 0;
            LockHolder holder = holders[s][lock];
            if (holder == null) {
                holder = new LockHolder(of(s));
            }
            int answer = of(s).request(holder, tag(lock), mode, wait);
            holders[s][lock] = holder;
            int place = model[lock].place(s, mode);
            if (place < 0) {
                assertEquals(LockManager.GRANTED, answer);
                model[lock].heldBy(s).add(mode);
            } else if (wait) {
                assertEquals(LockManager.WAITING, answer);
                model[lock].queue.add(place, new Wait(s, mode));
            } else {
                assertEquals(LockManager.NOT_AVAILABLE, answer);
            }
        }

        void awaitOther(int s, int other) {
            if (other != s) {
                of(s).entersWait(sessions[other].topXidIfAny());
                awaited[s] = other;
            }
        }

        void release(int s, int lock, LockMode mode) {
            locks.release(holders[s][lock], mode);
            model[lock].heldBy(s).remove(mode);
            model[lock].serve();
        }

        void end(int s) {
            if (random.nextBoolean()) {
                sessions[s].commit(true);
            } else {
                sessions[s].rollback();
            }
            for (int i = 0; i < SESSIONS; i++) {
                if (awaited[i] == s) {
                    assertFalse(of(i).isWaiting(), "XACT-18: slept past the end");
                    awaited[i] = -1;
                }
            }
            for (int lock = 0; lock < LOCKS; lock++) {
                for (LockMode mode : EnumSet.copyOf(model[lock].heldBy(s))) {
                    release(s, lock, mode);
                }
            }
        }

        void cancelled(int s) {
            awaited[s] = -1;
            for (Modelled lock : model) {
                if (lock.queue.removeIf(w -> w.session == s)) {
                    lock.serve();
                }
            }
        }

        /** Looks for a deadlock and compares with all orders that the queues may have. */
        void check(int s) {
            boolean inCircle = isCircle(s, queues());
            boolean canBeOpened = someOrderIsFree(0, queues());
            List<List<Wait>> before = queues();
            String circle = locks.checkDeadlock(of(s));
            if (circle != null) {
                deadlocks++;
                assertTrue(inCircle, "XACT-19: a victim that was in no circle: " + circle);
                assertFalse(canBeOpened, "XACT-19: a victim without need: " + circle);
                cancelled(s);
                return;
            }
            takeOrders();
            if (inCircle) {
                opened++;
            } else {
                assertEquals(before, queues(), "a queue was changed without need");
            }
            for (Modelled lock : model) {
                lock.serve();
            }
            assertFalse(of(s).isWaiting() && isCircle(s, queues()), "XACT-17: a circle was left");
        }

        List<List<Wait>> queues() {
            List<List<Wait>> queues = new ArrayList<>();
            for (Modelled lock : model) {
                queues.add(new ArrayList<>(lock.queue));
            }
            return queues;
        }

        /** The model's queues become the table's, with those that were served at their head. */
        void takeOrders() {
            for (int lock = 0; lock < LOCKS; lock++) {
                List<Wait> left = new ArrayList<>(model[lock].queue);
                List<Wait> order = new ArrayList<>();
                LockEntry entry = entry(lock);
                for (int i = 0; entry != null && i < entry.waiting(); i++) {
                    SessionLocks waiter = entry.waiter(i);
                    Wait wait =
                            left.stream().filter(w -> of(w.session) == waiter).findFirst().get();
                    left.remove(wait);
                    order.add(wait);
                }
                model[lock].queue.clear();
                model[lock].queue.addAll(left);
                model[lock].queue.addAll(order);
            }
        }

        LockEntry entry(int lock) {
            LockPartition partition = locks.partition(tag(lock));
            partition.lock.lock();
            try {
                return partition.find(tag(lock));
            } finally {
                partition.lock.unlock();
            }
        }

        boolean someOrderIsFree(int lock, List<List<Wait>> queues) {
            if (lock == LOCKS) {
                for (int s = 0; s < SESSIONS; s++) {
                    if (isCircle(s, queues)) {
                        return false;
                    }
                }
                return true;
            }
            for (List<Wait> order : permutations(queues.get(lock))) {
                List<List<Wait>> next = new ArrayList<>(queues);
                next.set(lock, order);
                if (someOrderIsFree(lock + 1, next)) {
                    return true;
                }
            }
            return false;
        }

        static List<List<Wait>> permutations(List<Wait> of) {
            if (of.isEmpty()) {
                return List.of(List.of());
            }
            List<List<Wait>> all = new ArrayList<>();
            for (Wait first : of) {
                List<Wait> rest = new ArrayList<>(of);
                rest.remove(first);
                for (List<Wait> tail : permutations(rest)) {
                    List<Wait> order = new ArrayList<>(List.of(first));
                    order.addAll(tail);
                    all.add(order);
                }
            }
            return all;
        }

        boolean isCircle(int s, List<List<Wait>> queues) {
            Set<Integer> reached = new HashSet<>();
            List<Integer> todo = new ArrayList<>(blockers(s, queues));
            while (!todo.isEmpty()) {
                int next = todo.removeLast();
                if (reached.add(next)) {
                    todo.addAll(blockers(next, queues));
                }
            }
            return reached.contains(s);
        }

        Set<Integer> blockers(int s, List<List<Wait>> queues) {
            Set<Integer> blockers = new HashSet<>();
            if (awaited[s] >= 0) {
                blockers.add(awaited[s]);
            }
            for (int lock = 0; lock < LOCKS; lock++) {
                List<Wait> queue = queues.get(lock);
                for (int i = 0; i < queue.size(); i++) {
                    if (queue.get(i).session == s) {
                        LockMode mode = queue.get(i).mode;
                        for (int other = 0; other < SESSIONS; other++) {
                            if (other != s
                                    && model[lock].heldBy(other).stream()
                                            .anyMatch(mode::conflictsWith)) {
                                blockers.add(other);
                            }
                        }
                        for (Wait before : queue.subList(0, i)) {
                            if (mode.conflictsWith(before.mode)) {
                                blockers.add(before.session);
                            }
                        }
                    }
                }
            }
            return blockers;
        }

        void compare() {
            for (int lock = 0; lock < LOCKS; lock++) {
                List<SessionLocks> expected = new ArrayList<>();
                model[lock].queue.forEach(w -> expected.add(of(w.session)));
                List<SessionLocks> actual = new ArrayList<>();
                LockEntry entry = entry(lock);
                for (int i = 0; entry != null && i < entry.waiting(); i++) {
                    actual.add(entry.waiter(i));
                }
                assertEquals(expected, actual, "queue of " + tag(lock));
                for (int s = 0; s < SESSIONS; s++) {
                    int mask = 0;
                    for (LockMode mode : model[lock].heldBy(s)) {
                        mask |= mode.bit();
                        assertFalse(model[lock].othersHoldAgainst(s, mode), "XACT-16");
                    }
                    LockHolder holder = holders[s][lock];
                    assertEquals(mask, holder == null ? 0 : holder.holdMask, "held by " + s);
                }
            }
            for (int s = 0; s < SESSIONS; s++) {
                boolean waits = awaited[s] >= 0;
                for (Modelled lock : model) {
                    int of = s;
                    waits |= lock.queue.stream().anyMatch(w -> w.session == of);
                }
                assertEquals(waits, of(s).isWaiting());
            }
        }
    }

    @Property(tries = 400)
    void theLockTableEqualsTheModel(@ForAll long seed) {
        new Run(seed).run(150);
    }

    @Property(tries = 1)
    void theRunsMeetDeadlocksAndCirclesThatCanBeOpened() {
        int deadlocks = 0;
        int opened = 0;
        for (long seed = 0; seed < 100; seed++) {
            Run run = new Run(seed);
            run.run(150);
            deadlocks += run.deadlocks;
            opened += run.opened;
        }
        assertTrue(deadlocks > 50 && opened > 10, deadlocks + " deadlocks, " + opened + " opened");
    }
}
