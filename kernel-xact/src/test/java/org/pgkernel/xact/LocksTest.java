package org.pgkernel.xact;

import static org.junit.jupiter.api.Assertions.*;
import static org.pgkernel.xact.LockMode.*;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.error.DeadlockException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.xact.LockStage.Actor;

/** Locks between sessions that take turns. */
@Timeout(60)
class LocksTest {
    private static final int DB = 5;
    private static final int R = 16384;
    private static final int S = 16385;

    private final XactFixture.CountingWal wal = new XactFixture.CountingWal();
    private final XactModule module = XactFixture.module(1000);
    private final LockStage stage = new LockStage(module, wal, 5);
    private final Actor a = stage.actor(0);
    private final Actor b = stage.actor(1);
    private final Actor c = stage.actor(2);
    private final Actor d = stage.actor(3);

    @AfterEach
    void close() {
        stage.close();
    }

    private static boolean locks(Actor actor, int rel, LockMode mode) {
        return actor.does(() -> actor.locks.lockRelation(DB, rel, mode));
    }

    private static boolean tries(Actor actor, int rel, LockMode mode) {
        boolean[] got = new boolean[1];
        assertTrue(actor.does(() -> got[0] = actor.locks.tryLockRelation(DB, rel, mode)));
        return got[0];
    }

    private static void commits(Actor actor) {
        assertTrue(actor.does(() -> actor.session.commit(true)));
    }

    private static void rollsBack(Actor actor) {
        assertTrue(actor.does(actor.session::rollback));
    }

    private static boolean awaits(Actor actor, int xid) {
        return actor.does(() -> actor.locks.waitForTransaction(xid, DB, R, 7L << 16 | 2));
    }

    private static int xid(Actor actor) {
        int[] xid = new int[1];
        actor.does(() -> xid[0] = actor.session.xid());
        return xid[0];
    }

    @Test
    void aLockIsHeldUntilTheTransactionEnds() {
        assertTrue(locks(a, R, EXCLUSIVE));
        assertTrue(locks(b, R, ACCESS_SHARE));
        assertFalse(tries(b, R, ROW_SHARE));
        assertFalse(locks(c, R, ROW_SHARE));
        commits(a);
        assertTrue(c.isDone());
        assertTrue(c.locks.holdsRelation(DB, R, ROW_SHARE));
        assertFalse(a.locks.holdsRelation(DB, R, EXCLUSIVE));
        commits(b);
        rollsBack(c);
        assertEquals(0, stage.manager().locks().size());
    }

    @Test
    void nobodyGetsPastAWaiterThatItConflictsWith() {
        assertTrue(locks(a, R, ACCESS_SHARE));
        assertFalse(locks(b, R, ACCESS_EXCLUSIVE));
        assertFalse(locks(c, R, ACCESS_SHARE), "although only an ACCESS SHARE is held");
        assertFalse(tries(d, R, ACCESS_SHARE));
        assertTrue(a.locks.hasWaiters(DB, R, ACCESS_SHARE));
        assertFalse(a.locks.hasWaiters(DB, S, ACCESS_EXCLUSIVE));
        commits(a);
        assertTrue(b.isDone());
        assertTrue(c.sleeps());
        commits(b);
        assertTrue(c.isDone());
    }

    @Test
    void whoHoldsALockComesBeforeWaitersThatItBlocks() {
        assertTrue(locks(a, R, ACCESS_SHARE));
        assertFalse(locks(b, R, ACCESS_EXCLUSIVE));
        assertTrue(locks(a, R, ROW_EXCLUSIVE), "b could not be served before it anyway");
        assertTrue(tries(a, R, SHARE));
        rollsBack(a);
        assertTrue(b.isDone());
    }

    @Test
    void whoHoldsALockQueuesBeforeWaitersThatItBlocksAndBehindOthers() {
        assertTrue(locks(a, R, ROW_SHARE));
        assertTrue(locks(b, R, ROW_EXCLUSIVE));
        assertFalse(locks(c, R, SHARE), "b's lock conflicts, a's does not");
        assertFalse(locks(d, R, ACCESS_EXCLUSIVE), "both conflict");
        assertFalse(locks(a, R, SHARE_UPDATE_EXCLUSIVE), "before d, behind c");
        commits(b);
        assertTrue(c.isDone());
        assertTrue(a.sleeps());
        commits(c);
        assertTrue(a.isDone());
        assertTrue(d.sleeps());
    }

    @Test
    void aWaitHasALimit() {
        assertTrue(locks(a, R, EXCLUSIVE));
        b.locks.timeoutNanos(50_000_000);
        assertFalse(locks(b, R, ROW_SHARE));
        assertFalse(locks(c, R, ROW_SHARE));
        stage.passes(49_999_999);
        assertTrue(b.sleeps());
        stage.passes(1);
        String message = assertThrows(LockNotAvailableException.class, b::isDone).getMessage();
        assertEquals(
                "session 1 waits for ROW_SHARE on relation 16384 of database 5,"
                        + " and has not got it in 50 ms",
                message);
        assertTrue(locks(b, S, ROW_SHARE), "the transaction goes on");
        commits(a);
        assertTrue(c.isDone());
        assertFalse(b.locks.holdsRelation(DB, R, ROW_SHARE));
    }

    @Test
    void whoeverGivesUpNoLongerHoldsBackOthers() {
        assertTrue(locks(a, R, ACCESS_SHARE));
        assertFalse(locks(b, R, ACCESS_EXCLUSIVE));
        assertFalse(locks(c, R, ACCESS_SHARE));
        stage.interrupt(b);
        assertThrows(LockNotAvailableException.class, b::isDone);
        assertTrue(c.isDone());
    }

    @Test
    void savepointsGiveUpTheirLocksWhenTheyAreUndone() {
        assertTrue(locks(a, R, ACCESS_SHARE));
        int savepoint = a.session.savepoint();
        assertTrue(locks(a, R, ACCESS_SHARE));
        assertTrue(locks(a, R, EXCLUSIVE));
        int inner = a.session.savepoint();
        assertTrue(locks(a, S, EXCLUSIVE));
        assertTrue(locks(a, R, EXCLUSIVE));
        a.session.release(inner);
        assertFalse(locks(b, S, ROW_SHARE));
        assertTrue(a.does(() -> a.session.rollbackTo(savepoint)));
        assertTrue(b.isDone());
        assertTrue(tries(b, R, ROW_EXCLUSIVE));
        assertFalse(tries(b, R, ACCESS_EXCLUSIVE), "taken before the savepoint");
        assertTrue(locks(a, R, ROW_SHARE));
        a.session.release(savepoint);
        assertFalse(tries(c, R, EXCLUSIVE));
        rollsBack(a);
        commits(b);
        assertTrue(tries(c, R, ACCESS_EXCLUSIVE));
    }

    @Test
    void whatIsGivenUpAsOftenAsItWasTakenIsFree() {
        assertTrue(locks(a, R, EXCLUSIVE));
        assertTrue(locks(a, R, EXCLUSIVE));
        a.does(() -> a.locks.unlockRelation(DB, R, EXCLUSIVE));
        assertFalse(tries(b, R, EXCLUSIVE));
        a.does(() -> a.locks.unlockRelation(DB, R, EXCLUSIVE));
        assertTrue(tries(b, R, EXCLUSIVE));
        assertTrue(a.does(() -> a.locks.lockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE)));
        boolean[] got = new boolean[2];
        c.does(() -> got[0] = c.locks.tryLockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE));
        c.does(() -> got[1] = c.locks.tryLockTuple(DB, R, 7L << 16 | 3, EXCLUSIVE));
        assertFalse(got[0]);
        assertTrue(got[1]);
        a.does(() -> a.locks.unlockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE));
        c.does(() -> got[0] = c.locks.tryLockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE));
        assertTrue(got[0]);
    }

    @Test
    void aSessionsLockOutlivesItsTransactions() {
        a.does(() -> a.locks.lockRelationForSession(DB, R, SHARE_UPDATE_EXCLUSIVE));
        assertTrue(locks(a, R, SHARE_UPDATE_EXCLUSIVE));
        commits(a);
        assertFalse(tries(b, R, SHARE));
        a.does(() -> a.locks.unlockRelationForSession(DB, R, SHARE_UPDATE_EXCLUSIVE));
        assertTrue(tries(b, R, SHARE));
        a.does(() -> a.locks.lockRelationForSession(DB, S, ACCESS_EXCLUSIVE));
        a.does(a.session::close);
        assertTrue(tries(b, S, ACCESS_SHARE));
    }

    @Test
    void theEndOfATransactionWakesWhoWaitsForIt() {
        int xid = xid(a);
        a.session.savepoint();
        int child = xid(a);
        assertFalse(awaits(b, xid));
        assertFalse(awaits(c, child));
        boolean[] decided = new boolean[1];
        assertFalse(
                d.does(
                        () -> {
                            d.locks.waitForTransaction(xid, DB, R, 0);
                            decided[0] = stage.manager().didCommit(xid);
                        }));
        a.session.release(1);
        assertTrue(c.sleeps(), "a subtransaction that has committed runs as long as its parent");
        commits(a);
        assertTrue(b.isDone());
        assertTrue(c.isDone());
        assertTrue(d.isDone());
        assertTrue(decided[0], "woken before pg_xact knew");
        assertTrue(awaits(b, xid), "it has ended");
        assertEquals(0, stage.manager().locks().size());
    }

    @Test
    void theEndOfASubtransactionWakesWhoWaitsForIt() {
        int xid = xid(a);
        int[] children = new int[4];
        for (int i = 0; i < children.length; i++) {
            a.session.savepoint();
            children[i] = xid(a);
        }
        assertFalse(awaits(b, xid));
        assertFalse(awaits(c, children[1]));
        assertFalse(awaits(d, children[3]), "one that the running table had no room for");
        a.does(() -> a.session.rollbackTo(2));
        assertTrue(b.sleeps());
        assertTrue(c.isDone());
        assertTrue(d.isDone());
        rollsBack(a);
        assertTrue(b.isDone());
    }

    @Test
    void onlyMembersWhoseLocksConflictAreWaitedFor() {
        int one = xid(a);
        int two = xid(b);
        int own = xid(d);
        MultiXactMembers members =
                new MultiXactMembers()
                        .add(one, MultiXactMembers.FOR_SHARE)
                        .add(two, MultiXactMembers.FOR_KEY_SHARE)
                        .add(own, MultiXactMembers.FOR_KEY_SHARE)
                        .add(998, MultiXactMembers.FOR_KEY_SHARE);
        int status = MultiXactMembers.NO_KEY_UPDATE;
        int[] remaining = new int[2];
        d.does(() -> remaining[0] = d.locks.tryWaitForMembers(members, status));
        assertEquals(-1, remaining[0]);
        assertFalse(d.does(() -> remaining[1] = d.locks.waitForMembers(members, status, DB, R, 0)));
        commits(a);
        assertTrue(d.isDone());
        assertEquals(2, remaining[1], "b, and itself");
        d.does(() -> remaining[0] = d.locks.tryWaitForMembers(members, status));
        assertEquals(2, remaining[0]);
    }

    @Test
    void twoThatWaitForEachOtherAreFoundAndOneGoesOn() {
        int one = xid(a);
        int two = xid(b);
        assertTrue(locks(a, R, ROW_EXCLUSIVE));
        assertTrue(locks(b, S, SHARE));
        assertFalse(locks(a, S, EXCLUSIVE));
        assertFalse(locks(b, R, ACCESS_EXCLUSIVE));
        stage.passes(LockStage.DEADLOCK_TIMEOUT - 1);
        assertTrue(a.sleeps() && b.sleeps());
        stage.passes(1);
        Actor victim = a.sleeps() ? b : a;
        Actor other = victim == a ? b : a;
        assertTrue(other.sleeps(), "one is enough");
        String message = victim.failure().getMessage();
        assertInstanceOf(DeadlockException.class, victim.failure());
        for (String part :
                new String[] {
                    "transaction "
                            + one
                            + " waits for EXCLUSIVE on relation 16385 of database 5,"
                            + " which is blocked by transaction "
                            + two,
                    "transaction "
                            + two
                            + " waits for ACCESS_EXCLUSIVE on relation 16384 of"
                            + " database 5, which is blocked by transaction "
                            + one,
                    "transaction " + (victim == a ? one : two) + " gives way"
                }) {
            assertTrue(message.contains(part), message);
        }
        rollsBack(victim);
        assertTrue(other.isDone());
        victim.session.begin();
        commits(other);
        assertTrue(locks(victim, R, ROW_EXCLUSIVE));
    }

    @Test
    void theVictimMayUndoASavepointOnly() {
        assertTrue(locks(b, S, EXCLUSIVE));
        int savepoint = a.session.savepoint();
        assertTrue(locks(a, R, EXCLUSIVE));
        assertFalse(locks(b, R, EXCLUSIVE));
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        assertTrue(b.sleeps());
        assertFalse(locks(a, S, EXCLUSIVE));
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        assertInstanceOf(DeadlockException.class, a.failure());
        a.does(() -> a.session.rollbackTo(savepoint));
        assertTrue(b.isDone());
        commits(b);
        assertTrue(locks(a, S, EXCLUSIVE));
    }

    @Test
    void twoThatWantMoreOfTheSameLockAreFoundAtOnce() {
        assertTrue(locks(a, R, SHARE));
        assertTrue(locks(b, R, SHARE));
        assertFalse(locks(a, R, EXCLUSIVE));
        b.attempts(() -> b.locks.lockRelation(DB, R, EXCLUSIVE));
        assertInstanceOf(DeadlockException.class, b.failure());
        assertTrue(b.locks.holdsRelation(DB, R, SHARE), "it keeps what it had");
        rollsBack(b);
        assertTrue(a.isDone());
    }

    @Test
    void threeThatWaitForEachOtherAreFound() {
        int one = xid(a);
        int two = xid(b);
        int three = xid(c);
        assertTrue(c.does(() -> c.locks.lockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE)));
        assertFalse(awaits(a, two));
        assertFalse(b.does(() -> b.locks.lockTuple(DB, R, 7L << 16 | 2, EXCLUSIVE)));
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        assertTrue(a.sleeps() && b.sleeps());
        assertFalse(awaits(c, one));
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        assertTrue(a.sleeps() && b.sleeps());
        assertEquals(
                ("deadlock: transaction 3 waits for the end of transaction 1,"
                                + " for tuple (7,2) of relation 16384 of database 5,"
                                + " which is blocked by transaction 1;"
                                + " transaction 1 waits for the end of transaction 2,"
                                + " for tuple (7,2) of relation 16384 of database 5,"
                                + " which is blocked by transaction 2;"
                                + " transaction 2 waits for EXCLUSIVE on"
                                + " tuple (7,2) of relation 16384 of database 5,"
                                + " which is blocked by transaction 3;"
                                + " transaction 3 gives way")
                        .replace("transaction 1", "transaction " + one)
                        .replace("transaction 2", "transaction " + two)
                        .replace("transaction 3", "transaction " + three),
                c.failure().getMessage());
        rollsBack(c);
        assertTrue(b.isDone());
        commits(b);
        assertTrue(a.isDone());
    }

    @Test
    void aSubtransactionOfWhoWaitsIsPartOfTheCircle() {
        xid(a);
        for (int i = 0; i < 4; i++) {
            a.session.savepoint();
            xid(a);
        }
        int child = xid(a);
        int two = xid(b);
        assertFalse(awaits(a, two));
        assertFalse(awaits(b, child));
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        Actor victim = a.sleeps() ? b : a;
        assertInstanceOf(DeadlockException.class, victim.failure());
    }

    @Test
    void aCircleThatIsOnlyOneOfQueueingIsOpened() {
        assertTrue(locks(a, R, SHARE));
        assertTrue(locks(c, S, EXCLUSIVE));
        assertFalse(locks(b, R, EXCLUSIVE), "waits for a");
        assertFalse(locks(c, R, SHARE), "only queues behind b");
        assertFalse(locks(a, S, SHARE), "waits for c");
        stage.passes(LockStage.DEADLOCK_TIMEOUT);
        assertTrue(c.isDone(), "it came before b");
        assertTrue(b.sleeps() && a.sleeps());
        commits(c);
        assertTrue(a.isDone());
        commits(a);
        assertTrue(b.isDone());
    }

    @Test
    void whoeverWaitsWhenTheKernelStopsIsTold() {
        assertTrue(locks(a, R, EXCLUSIVE));
        xid(a);
        assertFalse(locks(b, R, EXCLUSIVE));
        assertFalse(awaits(c, xid(d) - 1));
        stage.manager().stop("test", new DiskException("could not sync", DiskException.EIO));
        stage.passes(0);
        assertThrows(KernelStoppedException.class, b::isDone);
        assertThrows(KernelStoppedException.class, c::isDone);
    }

    /** Ends another transaction right after somebody was told that it runs. */
    private static final class EndsWhenAsked extends RunningTransactions {
        Runnable once = () -> {};

        EndsWhenAsked() {
            super(2, 2, 1000);
        }

        @Override
        int isInProgress(int xid) {
            int answer = super.isInProgress(xid);
            Runnable now = once;
            once = () -> {};
            now.run();
            return answer;
        }
    }

    @Test
    void whoIsToldThatATransactionRunsAndSleepsOnceItHasEndedIsNotLeftAsleep() {
        LockParking nobodyWakes =
                new LockParking() {
                    @Override
                    public long nanoTime() {
                        return 0;
                    }

                    @Override
                    public void park(Object lock, long nanos) {
                        fail("XACT-18: sleeps, and the end has passed");
                    }

                    @Override
                    public void unpark(Thread thread) {}
                };
        XactModule own = XactFixture.module(1000);
        EndsWhenAsked table = new EndsWhenAsked();
        TransactionManager manager =
                new TransactionManager(
                        own,
                        XactFixture.options(2, 2),
                        wal,
                        XactFixture.SILENT,
                        (locators, count) -> {},
                        () -> 1,
                        new LockOptions(1000, nobodyWakes),
                        table,
                        new XidGenerator(own, table, wal, XactFixture.SILENT, 200_000_000));
        TransactionSession one = manager.openSession(DB);
        TransactionSession two = manager.openSession(DB);
        one.begin();
        two.begin();
        int xid = one.xid();
        table.once = () -> one.commit(true);
        two.locks().waitForTransaction(xid, DB, R, 0);
        assertTrue(manager.didCommit(xid));
        assertEquals(0, manager.locks().size());
    }
}
