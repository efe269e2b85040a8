package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.TransactionId;
import org.pgkernel.bufmgr.ExtensionLock;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.fsm.FreeSpace;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.fsm.VisibilityMap;
import org.pgkernel.smgr.SmgrRelation;

@Timeout(60)
class TargetPageTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"), Attribute.of("b", "bytea").stored(Attribute.PLAIN));

    private static byte[] bytes(int length) {
        return new byte[length];
    }

    /** A tuple of so many bytes has so many of data. */
    private static byte[] ofTuple(int size) {
        return bytes(size - 24 - 4 - 4);
    }

    private static void fill(HeapRig.Session session, HeapRelation table, int pages) {
        session.begin();
        while (table.storage().nblocks(ForkNumber.MAIN) < pages) {
            session.insert(table, 0, ofTuple(2000));
        }
        session.insert(table, 0, ofTuple(2000));
        session.insert(table, 0, ofTuple(2000));
        session.insert(table, 0, ofTuple(2000));
        session.commit();
    }

    /** As vacuum does: flag, record, bit. */
    static void setAllVisible(HeapRig.Session session, HeapRelation table, int block) {
        HeapBackend backend = session.backend;
        int map = backend.visibilityMap.pin(session.buffers, table.storage(), block, -1);
        int buffer = session.buffers.read(table.storage(), ForkNumber.MAIN, block, ReadMode.NORMAL);
        session.buffers.lockExclusive(buffer);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        backend.pool.wrap(buffer, page);
        Page.setAllVisible(page);
        session.buffers.markDirty(buffer);
        backend.visibilityMap.set(
                session.buffers,
                backend.record,
                table.storage(),
                buffer,
                map,
                TransactionId.INVALID,
                VisibilityMap.VALID_BITS);
        session.buffers.unlock(buffer);
        session.buffers.release(buffer);
        VisibilityMap.release(session.buffers, map);
    }

    private static int bits(HeapRig.Session session, HeapRelation table, int block) {
        return session.backend.visibilityMap.status(session.buffers, table.storage(), block);
    }

    private static boolean isAllVisible(HeapRig rig, HeapRelation table, int block) {
        return Page.isAllVisible(rig.page(table.storage(), ForkNumber.MAIN, block));
    }

    @Test
    @DisplayName(
            "C17, HEAP-15: a row on an all-visible page clears flag and bit in the logged unit")
    void aRowOnAnAllVisiblePageClearsFlagAndBitAndRedoDoesTheSame() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            session.insert(table, 1, bytes(10));
            session.commit();
            setAllVisible(session, table, 0);
            assertEquals(VisibilityMap.VALID_BITS, bits(session, table, 0));
            rig.checkRedo(table);
            session.begin();
            session.insert(table, 2, bytes(10));
            session.rollback();
            assertEquals(0, bits(session, table, 0));
            assertFalse(isAllVisible(rig, table, 0));
            rig.checkRedo(table);
            setAllVisible(session, table, 0);
            session.begin();
            RowValues[] rows = {HeapRig.row(table, 3, bytes(9)), HeapRig.row(table, 4, bytes(9))};
            session.inserter.multiInsert(table, rows, 2, null, null);
            session.commit();
            assertEquals(0, bits(session, table, 0));
            assertFalse(isAllVisible(rig, table, 0));
            rig.checkRedo(table);
        }
    }

    /** The flag is set between the look at it and the lock. */
    @Test
    void aPageThatBecomesAllVisibleWhileItsLockIsWaitedForHasItsMapPinned() throws Exception {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session vacuum = rig.session();
            HeapRig.Session writer = rig.session();
            vacuum.begin();
            vacuum.insert(table, 1, bytes(10));
            vacuum.commit();
            int map = vacuum.backend.visibilityMap.pin(vacuum.buffers, table.storage(), 0, -1);
            int buffer = vacuum.buffers.read(table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
            vacuum.buffers.lockExclusive(buffer);
            writer.begin();
            Thread thread = new Thread(() -> writer.insert(table, 2, bytes(10)));
            thread.start();
            awaitParked(thread);
            UnsafeBuffer page = new UnsafeBuffer(0L, 0);
            rig.pool.wrap(buffer, page);
            Page.setAllVisible(page);
            vacuum.buffers.markDirty(buffer);
            vacuum.backend.visibilityMap.set(
                    vacuum.buffers,
                    vacuum.backend.record,
                    table.storage(),
                    buffer,
                    map,
                    TransactionId.INVALID,
                    VisibilityMap.VALID_BITS);
            vacuum.buffers.unlock(buffer);
            vacuum.buffers.release(buffer);
            VisibilityMap.release(vacuum.buffers, map);
            thread.join();
            writer.commit();
            assertEquals(0, bits(writer, table, 0));
            assertFalse(isAllVisible(rig, table, 0));
            rig.checkRedo(table);
        }
    }

    private static void awaitParked(Thread thread) throws InterruptedException {
        while (thread.getState() != Thread.State.WAITING
                && thread.getState() != Thread.State.TIMED_WAITING
                && thread.isAlive()) {
            Thread.sleep(1);
        }
    }

    /** Knows no page, and lets a test do something when it is told of a full one. */
    private record Interrupted(Runnable when) implements FreeSpace {
        @Override
        public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
            return BlockNumber.INVALID;
        }

        @Override
        public int recordAndFind(
                PageBuffers buffers, SmgrRelation relation, int block, int free, int bytes) {
            when.run();
            return BlockNumber.INVALID;
        }

        @Override
        public void record(PageBuffers buffers, SmgrRelation relation, int block, int free) {}

        @Override
        public int recordedFree(PageBuffers buffers, SmgrRelation relation, int block) {
            return 0;
        }

        @Override
        public void vacuumRange(PageBuffers buffers, SmgrRelation relation, int from, int end) {}
    }

    @Test
    @DisplayName(
            "C19, HEAP-16: a new page that others filled before its owner had both locks is theirs")
    void aNewPageThatOthersFilledIsLeftToThemAndAnotherIsAdded() throws Exception {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session thief = rig.session();
            CountDownLatch searched = new CountDownLatch(1);
            CountDownLatch locked = new CountDownLatch(1);
            Interrupted freeSpace =
                    new Interrupted(
                            () -> {
                                searched.countDown();
                                await(locked);
                            });
            HeapRig.Session owner = rig.session(rig.environment, freeSpace);
            fill(thief, table, 1);
            int other = owner.buffers.read(table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
            TargetPage target = new TargetPage(owner.backend);
            int[] found = new int[1];
            Together.run(
                    () -> {
                        searched.await();
                        thief.begin();
                        int same =
                                thief.buffers.read(
                                        table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
                        thief.buffers.lockExclusive(same);
                        locked.countDown();
                        while (table.storage().nblocks(ForkNumber.MAIN) < 2) {
                            Thread.sleep(1);
                        }
                        // Waits until the owner has let go of the new page.
                        thief.backend.state(table).targetBlock = 1;
                        assertEquals(
                                "(1,1)", TupleId.format(thief.insert(table, 1, ofTuple(8000))));
                        thief.buffers.unlock(same);
                        thief.buffers.release(same);
                        thief.commit();
                        return null;
                    },
                    () -> {
                        owner.begin();
                        int buffer = target.find(table, 2000, other, TargetPage.NONE);
                        found[0] = rig.pool.block(buffer);
                        owner.buffers.unlock(buffer);
                        owner.buffers.unlock(other);
                        owner.buffers.release(buffer);
                        target.releaseMaps();
                        owner.commit();
                        return null;
                    });
            assertEquals(2, found[0]);
            owner.buffers.release(other);
            rig.checkRedo(table);
        }
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Page 7 has the lower buffer: whoever locks by buffer locks in the wrong order. */
    private static void putSevenBeforeThree(
            HeapRig rig, HeapRelation table, HeapRig.Session session) {
        rig.checkpoint();
        rig.pool.dropRelationForks(
                table.storage(), new ForkNumber[] {ForkNumber.MAIN}, new int[] {0}, 1);
        // Buffers given back are taken from the last to the first.
        int three = session.buffers.read(table.storage(), ForkNumber.MAIN, 3, ReadMode.NORMAL);
        int seven = session.buffers.read(table.storage(), ForkNumber.MAIN, 7, ReadMode.NORMAL);
        assertTrue(seven < three, "buffers " + seven + " and " + three);
        session.buffers.release(three);
        session.buffers.release(seven);
    }

    @Test
    @DisplayName("C20, HEAP-17: two that move rows between two pages never wait for each other")
    void twoThatTakeThePagesOfEachOtherNeverWaitForEver() throws Exception {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS, 100, null);
            HeapRig.Session first = rig.session();
            fill(first, table, 8);
            putSevenBeforeThree(rig, table, first);
            HeapRig.Session second = rig.session();
            Together.run(() -> moveRows(first, table, 7, 3), () -> moveRows(second, table, 3, 7));
        }
    }

    /** The map's page is missing, so that whoever pins it can be held up after he unlocked. */
    @Test
    @DisplayName("C20: locks that were given up for the map are taken again in the blocks' order")
    void locksAreTakenAgainInTheOrderOfTheBlocks() throws Exception {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS, 100, null);
            HeapRig.Session mover = rig.session();
            fill(mover, table, 8);
            putSevenBeforeThree(rig, table, mover);
            rig.change(table, 7, Page::setAllVisible);
            assertFalse(table.storage().exists(ForkNumber.VISIBILITY_MAP));
            HeapRig.Session other = rig.session();
            int three = other.buffers.read(table.storage(), ForkNumber.MAIN, 3, ReadMode.NORMAL);
            int seven = other.buffers.read(table.storage(), ForkNumber.MAIN, 7, ReadMode.NORMAL);
            Thread thread = new Thread(() -> findRoom(mover, table, 7, 3));
            CountDownLatch taken = new CountDownLatch(1);
            CountDownLatch enough = new CountDownLatch(1);
            Thread growing =
                    new Thread(
                            () -> {
                                try (ExtensionLock held =
                                        rig.pool.lockForExtension(table.storage())) {
                                    taken.countDown();
                                    await(enough);
                                }
                            });
            growing.start();
            taken.await();
            thread.start();
            awaitParked(thread);
            other.buffers.lockExclusive(three);
            enough.countDown();
            while (!table.storage().exists(ForkNumber.VISIBILITY_MAP)) {
                Thread.sleep(1);
            }
            awaitParked(thread);
            boolean free = other.buffers.tryLockExclusive(seven);
            if (free) {
                other.buffers.unlock(seven);
            }
            other.buffers.unlock(three);
            thread.join();
            growing.join();
            assertTrue(free, "who waits for page 3 must not hold page 7");
            other.buffers.release(three);
            other.buffers.release(seven);
        }
    }

    private static void findRoom(HeapRig.Session session, HeapRelation table, int from, int to) {
        TargetPage target = new TargetPage(session.backend);
        int old = session.buffers.read(table.storage(), ForkNumber.MAIN, from, ReadMode.NORMAL);
        session.backend.state(table).targetBlock = to;
        int found = target.find(table, 24, old, TargetPage.NONE);
        session.buffers.unlock(found);
        session.buffers.unlock(old);
        session.buffers.release(found);
        session.buffers.release(old);
        target.releaseMaps();
    }

    /** Each time both pages are all-visible, as far as nobody cleared that meanwhile. */
    private static Void moveRows(HeapRig.Session session, HeapRelation table, int from, int to) {
        TargetPage target = new TargetPage(session.backend);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        for (int i = 0; i < 3000; i++) {
            if (i % 3 == 0) {
                setAllVisible(session, table, from);
            }
            int other =
                    session.buffers.read(table.storage(), ForkNumber.MAIN, from, ReadMode.NORMAL);
            session.backend.state(table).targetBlock = to;
            int found = target.find(table, 24, other, TargetPage.NONE);
            for (int buffer : new int[] {found, other}) {
                session.backend.pool.wrap(buffer, page);
                int map = buffer == found ? target.mapBuffer() : target.otherMapBuffer();
                if (Page.isAllVisible(page)) {
                    // Fails unless the right page is pinned.
                    Page.clearAllVisible(page);
                    session.backend.visibilityMap.clear(
                            session.buffers, session.backend.pool.block(buffer), map, 3);
                    session.buffers.markDirty(buffer);
                }
                session.buffers.unlock(buffer);
            }
            session.buffers.release(found);
            session.buffers.release(other);
            target.releaseMaps();
        }
        return null;
    }

    @Test
    void thePageOfTheOldVersionItselfIsLockedOnce() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            session.insert(table, 1, bytes(10));
            int other = session.buffers.read(table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
            TargetPage target = new TargetPage(session.backend);
            assertEquals(other, target.find(table, 100, other, TargetPage.NONE));
            assertEquals(1, session.buffers.pins(other));
            session.buffers.unlock(other);
            session.buffers.release(other);
            target.releaseMaps();
            session.commit();
        }
    }

    @Test
    void roomThatTheMapKnowsIsUsedBeforeTheRelationGrows() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 6);
            rig.change(table, 2, page -> Page.init(page, 0));
            FreeSpaceMap map = new FreeSpaceMap();
            map.record(session.buffers, table.storage(), 2, 8000);
            map.vacuumRange(session.buffers, table.storage(), 0, 6);
            session.begin();
            long[] tids = new long[5];
            for (int i = 0; i < tids.length; i++) {
                tids[i] = session.insert(table, i, ofTuple(2000));
            }
            for (int i = 0; i < 4; i++) {
                assertEquals("(2," + (i + 1) + ")", TupleId.format(tids[i]));
            }
            assertEquals("(6,1)", TupleId.format(tids[4]), "only then");
            session.commit();
        }
    }

    @Test
    void whatFillfactorReservesIsLeftUnlessTheRowNeedsAPageOfItsOwn() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS, 10, null);
            HeapRig.Session session = rig.session();
            session.begin();
            session.insert(table, 1, ofTuple(304));
            session.insert(table, 2, ofTuple(400));
            long third = session.insert(table, 3, ofTuple(400));
            assertEquals("(1,1)", TupleId.format(third), "nine tenths are reserved");
            long large = session.insert(table, 4, ofTuple(8000));
            assertEquals("(2,1)", TupleId.format(large));
            long next = session.insert(table, 5, ofTuple(8000));
            assertEquals("(3,1)", TupleId.format(next));
            session.commit();
            rig.checkRedo(table);
        }
    }

    /** HEAP-18 (R07). */
    @Test
    void whatIsRememberedOfOneRelationIsNotUsedForAnother() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation one = rig.table(20000, COLUMNS);
            HeapRelation two = rig.table(20001, COLUMNS);
            HeapRig.Session session = rig.session();
            session.begin();
            RowValues row = HeapRig.row(one, 1, ofTuple(2000));
            try (BulkInsert bulk = new BulkInsert(session.backend)) {
                for (int i = 0; i < 30; i++) {
                    session.inserter.insert(i % 3 == 0 ? one : two, row, bulk);
                }
            }
            assertEquals(3, one.storage().nblocks(ForkNumber.MAIN));
            assertEquals(5, two.storage().nblocks(ForkNumber.MAIN));
            session.commit();
            rig.checkRedo(one, two);
        }
    }

    /** HEAP-18 (R07): the relation was cut below the page that took the last row. */
    @Test
    void aTargetBlockBehindTheEndIsForgotten() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 6);
            assertNotEquals(2, session.backend.state(table).targetBlock);
            rig.pool.dropRelationForks(
                    table.storage(), new ForkNumber[] {ForkNumber.MAIN}, new int[] {2}, 1);
            table.storage().truncate(ForkNumber.MAIN, 2);
            session.begin();
            assertEquals("(2,1)", TupleId.format(session.insert(table, 1, ofTuple(2000))));
            session.commit();
            assertEquals(3, table.storage().nblocks(ForkNumber.MAIN));
        }
    }

    @Test
    void manyThreadsInsertAndEachRowIsThereOnce() throws Exception {
        try (HeapRig rig = new HeapRig(1, 256)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            int threads = 4;
            Callable<?>[] work = new Callable<?>[threads];
            for (int thread = 0; thread < threads; thread++) {
                HeapRig.Session session = rig.session();
                int from = thread * 10_000;
                work[thread] = () -> insertMany(session, table, from);
            }
            Together.run(work);
            HeapRig.Session reader = rig.session();
            reader.begin();
            RowValues row = new RowValues(COLUMNS);
            reader.scan.begin(table, reader.mvcc);
            boolean[] seen = new boolean[threads * 10_000];
            int rows = 0;
            while (reader.scan.next()) {
                reader.scan.tuple().read(row);
                int a = (int) row.number(0);
                assertFalse(seen[a]);
                seen[a] = true;
                rows++;
            }
            reader.commit();
            assertEquals(threads * 1200, rows);
            rig.checkRedo(table);
        }
    }

    private static Void insertMany(HeapRig.Session session, HeapRelation table, int from) {
        RowValues[] rows = new RowValues[10];
        for (int i = 0; i < 1200; i += 30) {
            session.begin();
            for (int k = 0; k < 20; k++) {
                session.insert(table, from + i + k, bytes(300 + k));
            }
            for (int k = 0; k < 10; k++) {
                rows[k] = HeapRig.row(table, from + i + 20 + k, bytes(200));
            }
            session.inserter.multiInsert(table, rows, 10, null, null);
            session.commit();
        }
        return null;
    }

    @Test
    void pagesAddedForThoseWhoWaitAreInTheMapAndNotFormatted() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 2);
            new TargetPage(session.backend).addForOthers(table.storage(), 20, null);
            assertEquals(22, table.storage().nblocks(ForkNumber.MAIN));
            assertTrue(Page.isNew(rig.page(table.storage(), ForkNumber.MAIN, 21)));
            HeapRig.Session other = rig.session();
            other.begin();
            long tid = other.insert(table, 1, ofTuple(4000));
            assertTrue(TupleId.block(tid) >= 2 && TupleId.block(tid) < 22, TupleId.format(tid));
            other.commit();
            rig.checkRedo(table);
            assertTrue(
                    PageItems.heapFreeSpace(
                                    rig.page(table.storage(), ForkNumber.MAIN, TupleId.block(tid)))
                            > 0);
        }
    }
}
