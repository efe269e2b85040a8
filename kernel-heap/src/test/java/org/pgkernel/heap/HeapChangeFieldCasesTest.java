package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.*;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.collections.Long2LongHashMap;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.BufferScope;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.xact.TransactionSession;

/** Bugs of others that updates, deletions and row locks must not have. */
class HeapChangeFieldCasesTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(Attribute.of("id", "int4"), Attribute.of("text", "text"));

    private static long insertCommitted(HeapRig.Session session, HeapRelation table, Object text) {
        session.begin();
        long tid = session.insert(table, 1, text);
        session.commit();
        return tid;
    }

    private static byte[] noise(int length) {
        byte[] bytes = new byte[length];
        Random random = new Random(length);
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (' ' + random.nextInt(90));
        }
        return bytes;
    }

    /** Stops an update where its page is given up. */
    private static final class Stop extends RuntimeException {}

    /** What is on disk when the old page is written while another one is looked for. */
    private void crashWhileAPageIsLookedFor(HeapRelation table, HeapRig rig, byte[] value) {
        AskedFreeSpace space = new AskedFreeSpace();
        HeapRig.Session writer = rig.session(rig.environment, space);
        HeapRig.Session other = rig.session();
        long tid = insertCommitted(other, table, "x".repeat(1900));
        for (int i = 0; i < 3; i++) {
            insertCommitted(other, table, "x".repeat(1900));
        }
        rig.checkpoint();
        writer.begin();
        int xid = writer.session.xid();
        List<Integer> looks = new ArrayList<>();
        space.answer =
                () -> {
                    if (looks.isEmpty()) {
                        rig.pool.flushAll();
                        rig.smgr.syncRequests().process();
                        lookAfterACrash(rig, table, tid, xid);
                    }
                    looks.add(1);
                    return -1;
                };
        assertEquals(TupleOutcome.OK, writer.update(table, tid, 1, value));
        assertFalse(looks.isEmpty(), "the page was not given up");
        writer.commit();
        rig.checkRedo(table, table.toast());
    }

    private void lookAfterACrash(HeapRig rig, HeapRelation table, long tid, int xid) {
        try (HeapRig after = rig.recovered(rig.disk.found(SimulatedDisk.LOSE_ALL))) {
            HeapRelation found = after.toasted(table.storage().relNumber(), COLUMNS);
            HeapRig.Session session = after.session();
            session.begin();
            assertTrue(session.fetch.fetch(found, tid, HeapSnapshot.ANY));
            TupleView tuple = session.fetch.tuple();
            assertEquals(xid, HeapTupleHeader.xmax(tuple.page(), tuple.at()), "the test's point");
            assertTrue(
                    HeapTupleHeader.isLockedOnly(
                            HeapTupleHeader.infomask(tuple.page(), tuple.at())));
            assertEquals(tid, HeapTupleHeader.ctid(tuple.page(), tuple.at()));
            session.fetch.close();
            assertTrue(
                    TransactionId.precedes(
                            xid, TransactionId.xidOf(after.transactions.nextFullXid())),
                    "an xid on disk would be assigned again");
            session.session.xid();
            session.commit();
            session.begin();
            assertEquals(4, session.rows(found, session.mvcc).size());
            assertEquals(TupleOutcome.OK, session.delete(found, tid));
            session.rollback();
        }
    }

    @Test
    @DisplayName("C21: a page that is given up on the way to another one carries no unlogged xid")
    void noUnloggedXidWhileAnotherPageIsLookedFor() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            crashWhileAPageIsLookedFor(table, rig, noise(1900));
        }
    }

    @Test
    @DisplayName("C21: nor one that is given up to store a value out of line")
    void noUnloggedXidWhileAValueIsMovedOutOfLine() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.toasted(20000, COLUMNS);
            crashWhileAPageIsLookedFor(table, rig, noise(5000));
        }
    }

    /**
     * Whoever locks the old version's key while its page is given up protects the new one, too.
     * (PostgreSQL 15 forgets that lock.)
     */
    @Test
    void aLockTakenWhileThePageIsGivenUpIsNotLost() {
        try (HeapRig rig = new HeapRig(1)) {
            AskedFreeSpace space = new AskedFreeSpace();
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session writer = rig.session(rig.environment, space);
            HeapRig.Session locker = rig.session();
            HeapRig.Session third = rig.session();
            long tid = insertCommitted(locker, table, "x".repeat(1900));
            for (int i = 0; i < 3; i++) {
                insertCommitted(locker, table, "x".repeat(1900));
            }
            locker.begin();
            space.answer =
                    () -> {
                        assertEquals(TupleOutcome.OK, locker.lock(table, tid, RowLock.KEY_SHARE));
                        return -1;
                    };
            writer.begin();
            assertEquals(TupleOutcome.OK, writer.update(table, tid, 1, "y".repeat(1900)));
            long next = writer.updater.newTid();
            assertNotEquals(0, TupleId.block(next));
            writer.commit();
            third.begin();
            assertEquals(TupleOutcome.BEING_MODIFIED, third.delete(table, next));
            locker.commit();
            assertEquals(TupleOutcome.OK, third.delete(table, next));
            third.commit();
            rig.checkRedo(table);
        }
    }

    @Test
    @Timeout(180)
    @DisplayName("C20: two that move rows between the same two pages never wait for each other")
    void pagesAreLockedInTheOrderOfTheirBlocks() throws Exception {
        try (HeapRig rig = new HeapRig(1, 256)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session setup = rig.session();
            List<Long> tids = new ArrayList<>();
            setup.begin();
            for (int i = 0; i < 40; i++) {
                tids.add(setup.insert(table, i, "x".repeat(1900)));
            }
            setup.commit();
            // So that the page with the higher number has the lower buffer, as in the report.
            long onThree = tids.stream().filter(t -> TupleId.block(t) == 3).findFirst().get();
            long onSeven = tids.stream().filter(t -> TupleId.block(t) == 7).findFirst().get();
            AtomicBoolean done = new AtomicBoolean();
            HeapRig.Session vacuum = rig.session();
            Callable<Object> setter =
                    () -> {
                        for (int i = 0; !done.get(); i++) {
                            int block = i % 2 == 0 ? 3 : 7;
                            TargetPageTest.setAllVisible(vacuum, table, block);
                            rig.change(table, block, Page::clearAllVisible);
                        }
                        return null;
                    };
            Callable<Object> up = mover(rig, table, onThree, 7, done);
            Callable<Object> down = mover(rig, table, onSeven, 3, done);
            Together.run(up, down, setter);
        }
    }

    /** Tries to move a row to a page that has no room, again and again. */
    private static Callable<Object> mover(
            HeapRig rig, HeapRelation table, long tid, int to, AtomicBoolean done) {
        AskedFreeSpace space = new AskedFreeSpace();
        HeapRig.Session session = rig.session(rig.environment, space);
        return () -> {
            for (int i = 0; i < 1000; i++) {
                int[] looks = new int[1];
                space.answer =
                        () -> {
                            if (looks[0]++ == 10) {
                                throw new Stop();
                            }
                            return to;
                        };
                session.begin();
                BufferScope scope = session.buffers.enter("move");
                assertThrows(Stop.class, () -> session.update(table, tid, 1, "y".repeat(1900)));
                scope.close();
                session.rollback();
            }
            done.set(true);
            return null;
        };
    }

    @Test
    @DisplayName("R01: a newer version belongs to its row by its xmin as stored, frozen or not")
    void aFrozenVersionIsFollowed() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session a = rig.session();
            HeapRig.Session b = rig.session();
            long tid = insertCommitted(a, table, "one");
            a.begin();
            a.update(table, tid, 1, "uno");
            long next = a.updater.newTid();
            a.commit();
            rig.change(
                    table,
                    0,
                    page -> {
                        int at = HeapPage.tupleAt(page, TupleId.offset(next));
                        HeapTupleHeader.setInfomask(
                                page,
                                at,
                                HeapTupleHeader.infomask(page, at)
                                        | HeapTupleHeader.HEAP_XMIN_COMMITTED
                                        | HeapTupleHeader.HEAP_XMIN_INVALID);
                    });
            b.begin();
            assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.KEY_SHARE));
            a.begin();
            assertEquals(TupleOutcome.BEING_MODIFIED, a.delete(table, next), "it is locked");
            assertEquals(TupleOutcome.UPDATED, a.lock(table, tid, RowLock.SHARE));
            assertEquals(next, a.locker.conflict().nextTid());
            assertTrue(a.fetch.fetch(table, next, HeapSnapshot.ANY));
            assertEquals(
                    HeapTupleHeader.xmin(a.fetch.tuple().page(), a.fetch.tuple().at()),
                    a.locker.conflict().xmax(),
                    "so whoever follows the chain sees that it belongs to it");
            a.commit();
            b.commit();
        }
    }

    @Test
    @DisplayName("R01: a tuple that took the place of a version that is gone is not followed")
    void aForeignTupleIsNotLocked() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session a = rig.session();
            HeapRig.Session b = rig.session();
            long foreign = insertCommitted(a, table, "another row");
            long tid = insertCommitted(a, table, "one");
            a.begin();
            a.update(table, tid, 1, "uno");
            a.commit();
            rig.change(
                    table,
                    0,
                    page ->
                            HeapTupleHeader.setCtid(
                                    page,
                                    HeapPage.tupleAt(page, TupleId.offset(tid)),
                                    TupleId.block(foreign),
                                    TupleId.offset(foreign)));
            b.begin();
            assertEquals(TupleOutcome.OK, b.lock(table, tid, RowLock.KEY_SHARE));
            a.begin();
            assertEquals(TupleOutcome.OK, a.delete(table, foreign), "nobody has locked it");
            a.commit();
            b.commit();
        }
    }

    @Test
    @DisplayName("R03: no memory for a combo command id leaves row, transaction and table whole")
    void aComboCommandIdThatCannotBeHadLeavesTheRowAsItWas() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            AtomicBoolean noMemory = new AtomicBoolean();
            ComboCommandIds combos =
                    new ComboCommandIds(
                            new Long2LongHashMap(-1),
                            size -> {
                                if (noMemory.get()) {
                                    throw new OutOfMemoryError("test");
                                }
                                return new int[size];
                            });
            List<String> leaks = new ArrayList<>();
            BackendBuffers buffers = rig.pool.backend("combos", leaks::add);
            TransactionSession session = rig.transactions.openSession(HeapRig.DB);
            HeapBackend backend =
                    new HeapBackend(
                            rig.environment,
                            buffers,
                            session,
                            HeapRig.DB,
                            new FreeSpaceMap(),
                            combos);
            HeapUpdater updater = new HeapUpdater(backend);
            HeapDeleter deleter = new HeapDeleter(backend);
            session.begin();
            long[] tids = new long[66];
            for (int i = 0; i < tids.length; i++) {
                tids[i] = new HeapInserter(backend).insert(table, HeapRig.row(table, i, "a"));
            }
            for (int i = 0; i < 64; i++) {
                session.nextCommand();
                assertEquals(
                        TupleOutcome.OK,
                        updater.update(table, tids[i], HeapRig.row(table, i, "b"), true));
            }
            session.nextCommand();
            UnsafeBuffer before = rig.page(table.storage(), ForkNumber.MAIN, 0);
            noMemory.set(true);
            for (int i = 64; i < 66; i++) {
                long tid = tids[i];
                int id = i;
                assertThrows(
                        OutOfMemoryError.class,
                        () -> updater.update(table, tid, HeapRig.row(table, id, "b"), true));
                assertThrows(OutOfMemoryError.class, () -> deleter.delete(table, tid, true));
            }
            assertEquals(before, rig.page(table.storage(), ForkNumber.MAIN, 0));
            noMemory.set(false);
            session.nextCommand();
            assertEquals(TupleOutcome.OK, deleter.delete(table, tids[64], true));
            session.nextCommand();
            assertEquals(TupleOutcome.SELF_MODIFIED, seenAfter(updater, table, tids[65]));
            session.commit(true);
            backend.endTransaction();
            session.close();
            buffers.close();
            assertEquals(List.of(), leaks);
            HeapRig.Session reader = rig.session();
            reader.begin();
            TreeMap<Long, String> rows = reader.rows(table, reader.mvcc);
            assertEquals(65, rows.size());
            assertEquals(65, rows.values().stream().filter(row -> row.endsWith("b]")).count());
            reader.commit();
            rig.checkRedo(table);
        }
    }

    /** Updated, and then not again by the same command. */
    private static TupleOutcome seenAfter(HeapUpdater updater, HeapRelation table, long tid) {
        assertEquals(
                TupleOutcome.OK, updater.update(table, tid, HeapRig.row(table, 65, "b"), true));
        return updater.update(table, tid, HeapRig.row(table, 65, "c"), true);
    }

    @Test
    @DisplayName("R06: a row's lock clears its page's all-frozen bit only, and redo does the same")
    void aLockClearsAllFrozenOnly() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session a = rig.session();
            HeapRig.Session b = rig.session();
            long tid = insertCommitted(a, table, "one");
            rig.settle(table, VisibilityMap.VALID_BITS);
            assertEquals(VisibilityMap.VALID_BITS, bits(a, table));
            a.begin();
            assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.KEY_SHARE));
            assertEquals(VisibilityMap.ALL_VISIBLE, bits(a, table));
            assertTrue(Page.isAllVisible(rig.page(table.storage(), ForkNumber.MAIN, 0)));
            rig.checkRedo(table);
            // On a version that an update led to, the same.
            b.begin();
            b.update(table, tid, 1, "uno");
            assertEquals(0, bits(a, table));
            assertFalse(Page.isAllVisible(rig.page(table.storage(), ForkNumber.MAIN, 0)));
            long next = b.updater.newTid();
            b.commit();
            a.commit();
            TargetPageTest.setAllVisible(b, table, 0);
            a.begin();
            assertEquals(TupleOutcome.OK, a.lock(table, tid, RowLock.KEY_SHARE));
            assertEquals(VisibilityMap.ALL_VISIBLE, bits(a, table));
            rig.checkRedo(table);
            try (HeapRig after = rig.recovered(rig.disk.found(SimulatedDisk.KEEP_ALL))) {
                HeapRelation found = after.table(20000, COLUMNS);
                HeapRig.Session reader = after.session();
                assertEquals(VisibilityMap.ALL_VISIBLE, bits(reader, found));
                reader.begin();
                reader.delete(found, next);
                reader.commit();
                assertEquals(0, bits(reader, found));
            }
            a.commit();
        }
    }

    private static int bits(HeapRig.Session session, HeapRelation table) {
        return session.backend.visibilityMap.status(session.buffers, table.storage(), 0);
    }

    @Test
    @DisplayName("R06: the mark of an update that leaves its page clears all-frozen, too")
    void theMarkOfAnUpdateClearsAllFrozen() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            AskedFreeSpace space = new AskedFreeSpace();
            HeapRig.Session writer = rig.session();
            HeapRig.Session asked = rig.session(rig.environment, space);
            long tid = insertCommitted(writer, table, "x".repeat(1900));
            for (int i = 0; i < 3; i++) {
                insertCommitted(writer, table, "x".repeat(1900));
            }
            rig.settle(table, VisibilityMap.VALID_BITS);
            List<Integer> seen = new ArrayList<>();
            space.answer =
                    () -> {
                        seen.add(bits(writer, table));
                        return -1;
                    };
            asked.begin();
            assertEquals(TupleOutcome.OK, asked.update(table, tid, 1, "y".repeat(1900)));
            assertEquals(VisibilityMap.ALL_VISIBLE, seen.getFirst());
            assertEquals(0, bits(writer, table));
            asked.commit();
            rig.checkRedo(table);
        }
    }
}
