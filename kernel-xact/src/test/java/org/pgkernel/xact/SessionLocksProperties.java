package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * One session takes and gives up locks through savepoints; a list of who took what tells what it
 * must hold (XACT-20).
 */
class SessionLocksProperties {
    private record Taken(int rel, LockMode mode, int level) {}

    private static final int SESSION = -1;
    private static final LockMode[] MODES = {
        LockMode.ACCESS_SHARE, LockMode.ROW_EXCLUSIVE, LockMode.ACCESS_EXCLUSIVE
    };

    @Property(tries = 300)
    void whatIsHeldIsWhatLevelsStillNeed(@ForAll long seed) {
        Random random = new Random(seed);
        TransactionManager manager =
                XactFixture.manager(
                        XactFixture.module(1000),
                        new XactFixture.CountingWal(),
                        XactFixture.options(2, 4));
        TransactionSession session = manager.openSession(5);
        List<Taken> taken = new ArrayList<>();
        session.begin();
        for (int i = 0; i < 200; i++) {
            int rel = 16384 + random.nextInt(6);
            LockMode mode = MODES[random.nextInt(MODES.length)];
            step(session, taken, random, rel, mode);
            for (int r = 16384; r < 16390; r++) {
                for (LockMode each : MODES) {
                    int of = r;
                    assertEquals(
                            taken.stream().anyMatch(t -> t.rel == of && t.mode == each),
                            session.locks().holdsRelation(5, r, each));
                }
            }
        }
        session.close();
        assertEquals(0, manager.locks().size());
    }

    private static void step(
            TransactionSession session, List<Taken> taken, Random random, int rel, LockMode mode) {
        SessionLocks locks = session.locks();
        int level = session.level();
        switch (random.nextInt(random.nextInt(20) == 0 ? 9 : 8)) {
            case 0 -> {
                locks.lockRelationForSession(5, rel, mode);
                taken.add(new Taken(rel, mode, SESSION));
            }
            case 1 -> {
                if (taken.remove(new Taken(rel, mode, SESSION))) {
                    locks.unlockRelationForSession(5, rel, mode);
                }
            }
            case 2 -> {
                // The innermost level that took it gives it up.
                for (int at = level; at >= 0; at--) {
                    if (taken.remove(new Taken(rel, mode, at))) {
                        locks.unlockRelation(5, rel, mode);
                        break;
                    }
                }
            }
            case 3 -> session.savepoint();
            case 4 -> {
                if (level > 0) {
                    int to = 1 + random.nextInt(level);
                    session.release(to);
                    taken.replaceAll(t -> new Taken(t.rel, t.mode, Math.min(t.level, to - 1)));
                }
            }
            case 5 -> {
                if (level > 0) {
                    int to = 1 + random.nextInt(level);
                    session.rollbackTo(to);
                    taken.removeIf(t -> t.level >= to);
                }
            }
            case 8 -> {
                session.commit(true);
                session.begin();
                taken.removeIf(t -> t.level != SESSION);
            }
            default -> {
                if (random.nextBoolean()) {
                    locks.lockRelation(5, rel, mode);
                } else {
                    assertTrue(locks.tryLockRelation(5, rel, mode));
                }
                taken.add(new Taken(rel, mode, level));
            }
        }
    }
}
