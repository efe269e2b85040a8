package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.LockNotAvailableException;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.testkit.SimulatedDisk;

/** Updates, deletions and row locks, one step after another. */
class HeapChangesTest {
    private static final TupleDescriptor COLUMNS =
            new TupleDescriptor(
                    List.of(
                            Attribute.of("id", "int4"),
                            Attribute.of("tag", "int4"),
                            Attribute.of("text", "text")),
                    Set.of("id", "tag"),
                    Set.of("id"));

    private final HeapRig rig = new HeapRig(1);
    private final HeapRelation table = rig.table(20000, COLUMNS);
    private final HeapRig.Session a = rig.session();
    private final HeapRig.Session b = rig.session();
    private final HeapRig.Session c = rig.session();

    @AfterEach
    void close() {
        try (rig) {
            rig.checkRedo(table);
        }
    }

    private long insertCommitted(Object... values) {
        a.begin();
        long tid = a.insert(table, values);
        a.commit();
        return tid;
    }

    private List<String> seenBy(HeapRig.Session session) {
        return List.copyOf(session.rows(table, session.mvcc).values());
    }

    private int infomask2(HeapRig.Session session, long tid) {
        assertTrue(session.fetch.fetch(table, tid, HeapSnapshot.ANY));
        TupleView tuple = session.fetch.tuple();
        return HeapTupleHeader.infomask2(tuple.page(), tuple.at());
    }

    private int infomask(HeapRig.Session session, long tid) {
        assertTrue(session.fetch.fetch(table, tid, HeapSnapshot.ANY));
        TupleView tuple = session.fetch.tuple();
        return HeapTupleHeader.infomask(tuple.page(), tuple.at());
    }

    @Test
    void aNewVersionIsSeenByOthersOnceItsTransactionHasCommitted() {
        long tid = insertCommitted(1, 10, "one");
        a.begin();
        b.begin();
        assertEquals(TupleOutcome.OK, a.update(table, tid, 1, 10, "uno"));
        long next = a.updater.newTid();
        assertEquals("(0,2)", TupleId.format(next));
        assertEquals(List.of("[1, 10, one]"), seenBy(a), "not by its own command");
        a.nextCommand();
        assertEquals(List.of("[1, 10, uno]"), seenBy(a));
        assertEquals(List.of("[1, 10, one]"), seenBy(b));
        a.commit();
        assertEquals(List.of("[1, 10, one]"), seenBy(b), "not in the old snapshot");
        b.nextCommand();
        assertEquals(List.of("[1, 10, uno]"), seenBy(b));
        assertTrue(b.fetch.fetchHot(table, tid, b.mvcc));
        assertEquals(next, b.fetch.tuple().tid());
        b.commit();
    }

    @Test
    void heapOnlyUnlessAnIndexedColumnChanges() {
        long tid = insertCommitted(1, 10, "one");
        a.begin();
        assertEquals(TupleOutcome.OK, a.update(table, tid, 1, 10, "uno"));
        assertTrue(a.updater.isHot());
        long hot = a.updater.newTid();
        assertTrue((infomask2(a, tid) & HeapTupleHeader.HEAP_HOT_UPDATED) != 0);
        assertTrue((infomask2(a, hot) & HeapTupleHeader.HEAP_ONLY_TUPLE) != 0);
        assertEquals(0, infomask2(a, tid) & HeapTupleHeader.HEAP_KEYS_UPDATED);
        a.nextCommand();
        assertEquals(TupleOutcome.OK, a.update(table, hot, 1, 11, "uno"));
        assertFalse(a.updater.isHot());
        long cold = a.updater.newTid();
        assertEquals(0, infomask2(a, hot) & HeapTupleHeader.HEAP_HOT_UPDATED);
        assertEquals(0, infomask2(a, hot) & HeapTupleHeader.HEAP_KEYS_UPDATED, "no key column");
        a.nextCommand();
        assertEquals(TupleOutcome.OK, a.update(table, cold, 2, 11, "uno"));
        assertTrue((infomask2(a, cold) & HeapTupleHeader.HEAP_KEYS_UPDATED) != 0);
        a.commit();
    }

    @Test
    void aVersionThatDoesNotFitGoesToAnotherPageAndTheOldOneIsMarkedFull() {
        long tid = insertCommitted(0, 0, "x".repeat(1900));
        for (int i = 1; i < 4; i++) {
            insertCommitted(i, 0, "x".repeat(1900));
        }
        a.begin();
        assertEquals(TupleOutcome.OK, a.update(table, tid, 0, 0, "y".repeat(1900)));
        assertEquals("(1,1)", TupleId.format(a.updater.newTid()));
        assertFalse(a.updater.isHot(), "though no indexed column has changed");
        assertTrue(a.fetch.fetch(table, tid, HeapSnapshot.ANY));
        assertTrue((Page.flags(a.fetch.tuple().page()) & Page.PD_PAGE_FULL) != 0);
        assertEquals(a.session.xid(), Page.pruneXid(a.fetch.tuple().page()));
        assertEquals(
                a.updater.newTid(),
                HeapTupleHeader.ctid(a.fetch.tuple().page(), a.fetch.tuple().at()));
        a.commit();
        b.begin();
        assertEquals(4, seenBy(b).size());
        b.commit();
    }

    @Test
    void anUpdateThatIsRolledBackLeavesTheRowToOthers() {
        long tid = insertCommitted(1, 10, "one");
        a.begin();
        a.update(table, tid, 1, 10, "uno");
        b.begin();
        assertEquals(TupleOutcome.BEING_MODIFIED, b.update(table, tid, 1, 10, "eins"));
        assertEquals(a.session.xid(), b.updater.conflict().xmax());
        assertEquals(a.updater.newTid(), b.updater.conflict().nextTid());
        a.rollback();
        assertEquals(TupleOutcome.OK, b.update(table, tid, 1, 10, "eins"));
        b.commit();
        c.begin();
        assertEquals(List.of("[1, 10, eins]"), seenBy(c));
        assertEquals(TupleOutcome.UPDATED, c.update(table, tid, 1, 10, "un"));
        assertEquals(b.updater.newTid(), c.updater.conflict().nextTid());
        assertEquals(TupleOutcome.OK, c.update(table, b.updater.newTid(), 1, 10, "un"));
        c.commit();
    }

    @Test
    void aDeletedRowIsGoneForWhoComesLater() {
        long tid = insertCommitted(1, 10, "one");
        b.begin();
        a.begin();
        assertEquals(TupleOutcome.OK, a.delete(table, tid));
        assertEquals(List.of("[1, 10, one]"), seenBy(a));
        assertEquals(TupleOutcome.SELF_MODIFIED, a.delete(table, tid));
        assertEquals(0, a.deleter.conflict().cmax());
        a.nextCommand();
        assertEquals(List.of(), seenBy(a));
        assertEquals(TupleOutcome.INVISIBLE, a.delete(table, tid));
        assertEquals(TupleOutcome.BEING_MODIFIED, b.delete(table, tid));
        a.commit();
        assertEquals(List.of("[1, 10, one]"), seenBy(b));
        assertEquals(TupleOutcome.DELETED, b.delete(table, tid));
        assertEquals(tid, b.deleter.conflict().nextTid());
        assertEquals(TupleOutcome.DELETED, b.lock(table, tid, RowLock.KEY_SHARE));
        b.nextCommand();
        assertEquals(List.of(), seenBy(b));
        b.commit();
    }

    @Test
    void whatIsNotThereIsInvisible() {
        a.begin();
        assertEquals(TupleOutcome.INVISIBLE, a.delete(table, TupleId.of(0, 1)));
        long tid = a.insert(table, 1, 1, "one");
        assertEquals(TupleOutcome.INVISIBLE, a.delete(table, TupleId.of(0, 2)));
        assertEquals(TupleOutcome.INVISIBLE, a.lock(table, TupleId.of(7, 1), RowLock.SHARE));
        assertEquals(TupleOutcome.INVISIBLE, a.update(table, tid, 2, 2, "two"), "this command's");
        b.begin();
        assertEquals(TupleOutcome.INVISIBLE, b.delete(table, tid), "another's that runs");
        a.rollback();
        assertEquals(TupleOutcome.INVISIBLE, b.delete(table, tid), "an aborted one's");
        b.commit();
    }

    @Test
    void aRowThatIsMadeAndChangedByOneTransactionRemembersBothCommands() {
        a.begin();
        long tid = a.insert(table, 1, 1, "one");
        a.nextCommand();
        MvccSnapshot between = a.backend.newSnapshot();
        a.backend.snapshot(between);
        a.session.commandId(true);
        a.nextCommand();
        assertEquals(TupleOutcome.OK, a.update(table, tid, 1, 1, "uno"));
        assertTrue((infomask(a, tid) & HeapTupleHeader.HEAP_COMBOCID) != 0);
        assertEquals(TupleOutcome.SELF_MODIFIED, a.delete(table, tid));
        assertEquals(2, a.deleter.conflict().cmax());
        a.nextCommand();
        assertEquals(List.of("[1, 1, uno]"), seenBy(a));
        assertEquals(
                List.of("[1, 1, one]"),
                List.copyOf(a.rows(table, HeapSnapshot.mvcc(between)).values()));
        a.commit();
    }

    @Test
    void locksThatDoNotConflictAreHeldTogether() {
        long tid = insertCommitted(1, 1, "one");
        a.begin();
        b.begin();
        c.begin();
        assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.SHARE));
        assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.KEY_SHARE));
        assertTrue((infomask(a, tid) & HeapTupleHeader.HEAP_XMAX_IS_MULTI) != 0);
        assertEquals(TupleOutcome.OK, c.lock(table, tid, RowLock.SHARE));
        assertEquals(TupleOutcome.WOULD_BLOCK, c.lock(table, tid, RowLock.NO_KEY_UPDATE));
        assertEquals(TupleOutcome.BEING_MODIFIED, c.update(table, tid, 1, 1, "uno"));
        LockNotAvailableException refused =
                assertThrows(
                        LockNotAvailableException.class,
                        () -> c.locker.lock(table, tid, RowLock.UPDATE, LockWait.NOWAIT, true));
        assertEquals(
                "could not obtain lock on row (0,1) rel=" + table + " fork=MAIN block=0",
                refused.getMessage());
        a.commit();
        assertEquals(TupleOutcome.OK, c.update(table, tid, 1, 1, "uno"), "b's key stays");
        c.commit();
        assertEquals(TupleOutcome.WOULD_BLOCK, a(newest -> a.lock(table, newest, RowLock.UPDATE)));
        b.commit();
        assertEquals(TupleOutcome.OK, a(newest -> a.lock(table, newest, RowLock.UPDATE)));
    }

    private interface Step {
        TupleOutcome on(long tid);
    }

    /** In a transaction of its own, on the newest version of the only row. */
    private TupleOutcome a(Step step) {
        a.begin();
        long tid = a.rows(table, a.mvcc).firstKey();
        TupleOutcome outcome = step.on(tid);
        a.commit();
        return outcome;
    }

    @Test
    void whoHoldsAStrongerLockGetsAWeakerOneForNothing() {
        long tid = insertCommitted(1, 1, "one");
        a.begin();
        assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.UPDATE));
        long end = rig.wal.insertLsn();
        for (RowLock lock : RowLock.values()) {
            assertEquals(TupleOutcome.OK, a.lock(table, tid, lock));
        }
        assertEquals(end, rig.wal.insertLsn());
        b.begin();
        for (RowLock lock : RowLock.values()) {
            assertEquals(TupleOutcome.WOULD_BLOCK, b.lock(table, tid, lock));
        }
        assertEquals(TupleOutcome.OK, a.delete(table, tid));
        a.rollback();
        assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.UPDATE));
        b.commit();
    }

    @Test
    void aKeyShareLockOnAnOldVersionProtectsTheNewOne() {
        long tid = insertCommitted(1, 1, "one");
        a.begin();
        a.update(table, tid, 1, 1, "uno");
        long second = a.updater.newTid();
        b.begin();
        assertEquals(TupleOutcome.WOULD_BLOCK, b.lock(table, tid, RowLock.SHARE));
        assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.KEY_SHARE));
        a.commit();
        c.begin();
        assertEquals(TupleOutcome.BEING_MODIFIED, c.delete(table, second));
        assertEquals(TupleOutcome.BEING_MODIFIED, c.update(table, second, 2, 1, "uno"));
        assertEquals(TupleOutcome.OK, c.update(table, second, 1, 2, "dos"));
        b.commit();
        c.commit();
    }

    @Test
    void aLockOfAnUndoneSavepointIsGoneTheOneBeforeItStays() {
        long tid = insertCommitted(1, 1, "one");
        a.begin();
        assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.KEY_SHARE));
        int savepoint = a.session.savepoint();
        assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.UPDATE));
        b.begin();
        assertEquals(TupleOutcome.WOULD_BLOCK, b.lock(table, tid, RowLock.KEY_SHARE));
        a.session.rollbackTo(savepoint);
        assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.SHARE));
        assertEquals(TupleOutcome.WOULD_BLOCK, b.lock(table, tid, RowLock.UPDATE), "a's first");
        a.commit();
        assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.UPDATE));
        b.commit();
    }

    @Test
    void aRowThatIsTooBigIsRefusedAndTheOldVersionStaysAsItWas() {
        long tid = insertCommitted(1, 1, "one");
        byte[] random = new byte[9000];
        new Random(1).nextBytes(random);
        a.begin();
        assertThrows(RefusedException.class, () -> a.update(table, tid, 1, 1, random));
        a.nextCommand();
        assertEquals(TupleOutcome.OK, a.update(table, tid, 1, 1, "uno"));
        a.commit();
    }

    @Test
    void outOfLineValuesGoWithTheirRowAndAreKeptByAnUpdateThatKeepsThem() {
        HeapRelation toasted = rig.toasted(21000, COLUMNS);
        byte[] random = new byte[9000];
        Random shuffle = new Random(1);
        for (int i = 0; i < random.length; i++) {
            random[i] = (byte) (' ' + shuffle.nextInt(90));
        }
        String text = new String(random, StandardCharsets.US_ASCII);
        a.begin();
        long tid = a.insert(toasted, 1, 1, random);
        a.commit();
        a.begin();
        int chunks = a.rows(toasted.toast(), a.mvcc).size();
        assertTrue(chunks >= 4);
        RowValues row = new RowValues(COLUMNS);
        assertTrue(a.fetch.fetch(toasted, tid, a.mvcc));
        a.fetch.tuple().read(row);
        row.setNumber(1, 2);
        assertEquals(TupleOutcome.OK, a.updater.update(toasted, tid, row, false));
        long second = a.updater.newTid();
        a.fetch.close();
        a.commit();
        a.begin();
        assertEquals(chunks, a.rows(toasted.toast(), a.mvcc).size(), "the value is shared");
        assertEquals(
                List.of("[1, 2, " + text + "]"), List.copyOf(a.rows(toasted, a.mvcc).values()));
        assertEquals(TupleOutcome.OK, a.update(toasted, second, 1, 2, "short"));
        long third = a.updater.newTid();
        a.nextCommand();
        assertEquals(0, a.rows(toasted.toast(), a.mvcc).size());
        a.rollback();
        a.begin();
        assertEquals(chunks, a.rows(toasted.toast(), a.mvcc).size());
        assertEquals(TupleOutcome.OK, a.delete(toasted, second));
        a.nextCommand();
        assertEquals(0, a.rows(toasted.toast(), a.mvcc).size());
        a.commit();
        assertNotEquals(second, third);
        rig.checkRedo(toasted, toasted.toast());
    }

    @Test
    void changesAreThereAfterACrash() {
        long first = insertCommitted(1, 1, "one");
        long second = insertCommitted(2, 2, "two");
        long third = insertCommitted(3, 3, "three");
        a.begin();
        a.update(table, first, 1, 1, "uno");
        a.delete(table, second);
        b.begin();
        b.lock(table, third, RowLock.KEY_SHARE);
        a.update(table, third, 3, 3, "tres");
        a.commit();
        c.begin();
        c.delete(table, a.updater.newTid());
        c.update(table, first, 0, 0, "lost");
        try (HeapRig after = rig.recovered(rig.disk.found(SimulatedDisk.LOSE_ALL))) {
            HeapRelation found = after.table(20000, COLUMNS);
            HeapRig.Session reader = after.session();
            reader.begin();
            var rows = reader.rows(found, reader.mvcc);
            assertEquals(List.of("[1, 1, uno]", "[3, 3, tres]"), List.copyOf(rows.values()));
            for (long tid : rows.keySet()) {
                assertEquals(TupleOutcome.OK, reader.delete(found, tid), "no lock outlives it");
            }
            reader.commit();
        }
        b.commit();
        c.commit();
        assertEquals(1, table.storage().nblocks(ForkNumber.MAIN));
    }
}
