package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.fsm.FreeSpaceMap;
import org.pgkernel.fsm.FsmOptions;
import org.pgkernel.fsm.FsmPolicy;
import org.pgkernel.testkit.SimulatedDisk;

/** Inserts into small tables under each policy of free space maps, and from many threads. */
@Timeout(60)
class SmallTableInsertsTest {
    private static final TupleDescriptor COLUMNS =
            TupleDescriptor.of(
                    Attribute.of("a", "int4"), Attribute.of("b", "bytea").stored(Attribute.PLAIN));
    private static final byte[] QUARTER = new byte[1968];

    private static void fill(HeapRig.Session session, HeapRelation table, int pages) {
        session.begin();
        int left = 4 * pages;
        while (left-- > 0) {
            session.insert(table, 0, QUARTER);
        }
        session.commit();
        assertEquals(pages, table.storage().nblocks(ForkNumber.MAIN));
    }

    private static long insertOne(HeapRig.Session session, HeapRelation table) {
        session.begin();
        long tid = session.insert(table, 1, QUARTER);
        session.commit();
        return tid;
    }

    @Test
    @DisplayName("C15 (3): space on a page out of turn is found once the table has grown")
    void spaceOnASkippedPageIsFoundAtTheNextExtension() {
        FsmOptions local = FsmOptions.of(FsmPolicy.SMALL_TABLES_LOCAL);
        try (HeapRig rig = new HeapRig(HeapRig.freshDisk(1), local)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 3);
            rig.change(table, 1, page -> Page.init(page, 0)); // its rows went
            assertEquals("(3,1)", TupleId.format(insertOne(session, table)), "2 and 0 were full");
            for (int i = 0; i < 3; i++) {
                insertOne(session, table);
            }
            assertEquals("(1,1)", TupleId.format(insertOne(session, table)), "3 and 1 in turn");
            assertEquals(4, table.storage().nblocks(ForkNumber.MAIN));
        }
    }

    @Test
    @DisplayName("C15 (2): what was tried before an abort is tried again after it")
    void anAbortForgetsWhatWasTried() {
        FsmOptions local = FsmOptions.of(FsmPolicy.SMALL_TABLES_LOCAL);
        try (HeapRig rig = new HeapRig(HeapRig.freshDisk(1), local)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 4);
            for (boolean whole : new boolean[] {true, false}) {
                session.begin();
                int savepoint = session.session.savepoint();
                // A search that an error ended after page 3.
                session.backend.freeSpace.firstPage(session.buffers, table.storage(), 4, 4000);
                session.backend.freeSpace.recordAndFind(
                        session.buffers, table.storage(), 3, 0, 4000);
                if (whole) {
                    session.rollback();
                } else {
                    session.session.rollbackTo(savepoint);
                    session.backend.endSubtransaction();
                    session.commit();
                }
                session.begin();
                assertEquals(
                        3,
                        session.backend.freeSpace.recordAndFind(
                                session.buffers, table.storage(), 0, 0, 4000));
                session.backend.freeSpace.forget();
                session.commit();
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = FsmPolicy.class,
            names = {"SMALL_TABLES_LOCAL", "SMALL_TABLES_SHARED"})
    @DisplayName("C16 (1, 2): no map up to four blocks, on the primary and in redo; then there is")
    void theMapComesWithTheFifthBlock(FsmPolicy policy) {
        try (HeapRig rig = new HeapRig(HeapRig.freshDisk(1), FsmOptions.of(policy))) {
            HeapRelation table = rig.table(20000, COLUMNS);
            HeapRig.Session session = rig.session();
            fill(session, table, 4);
            assertMap(rig, table, false);
            fill(rig.session(), table, 4, 6);
            assertMap(rig, table, true);
        }
    }

    private static void fill(HeapRig.Session session, HeapRelation table, int from, int pages) {
        for (int i = 0; i < 4 * (pages - from); i++) {
            insertOne(session, table);
        }
        assertEquals(pages, table.storage().nblocks(ForkNumber.MAIN));
    }

    private static void assertMap(HeapRig rig, HeapRelation table, boolean there) {
        assertEquals(there, table.storage().exists(ForkNumber.FSM));
        rig.replayBeside(
                (at, pool) -> {},
                (at, pool) ->
                        assertEquals(
                                there,
                                pool.smgr()
                                        .open(HeapRig.SPC, HeapRig.DB, 20000)
                                        .exists(ForkNumber.FSM),
                                "in redo"));
    }

    @Test
    @DisplayName("C16 (2): under ALWAYS redo makes the map with the first full page, as PostgreSQL")
    void alwaysMeansAlways() {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            fill(rig.session(), table, 2);
            assertMap(rig, table, true);
        }
    }

    /** Whoever waited for his turn finds what the one before him added for all. */
    @ParameterizedTest
    @EnumSource(FsmPolicy.class)
    void manyThreadsLoseNoRowAndGrowInTurn(FsmPolicy policy) throws Exception {
        SimulatedDisk disk = HeapRig.freshDisk(1);
        try (HeapRig rig = new HeapRig(disk, FsmOptions.of(policy))) {
            HeapRelation table = rig.table(20000, COLUMNS);
            int threads = 4;
            int rows = 60;
            List<Callable<Void>> work = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                HeapRig.Session session = rig.session();
                int first = t * rows;
                work.add(
                        () -> {
                            for (int i = 0; i < rows; i++) {
                                session.begin();
                                session.insert(table, first + i, QUARTER);
                                session.commit();
                            }
                            return null;
                        });
            }
            Together.run(work.toArray(Callable[]::new));
            HeapRig.Session reader = rig.session();
            reader.begin();
            assertEquals(threads * rows, reader.rows(table, reader.mvcc).size());
            reader.commit();
            rig.checkRedo(table);
        }
    }

    /** Held up while others wait: the first of these adds for the others. */
    @Test
    @DisplayName("HEAP-24 who had to wait for his turn looks for room before he adds a page")
    void whoWaitedLooksFirst() throws Exception {
        try (HeapRig rig = new HeapRig(1)) {
            HeapRelation table = rig.table(20000, COLUMNS);
            fill(rig.session(), table, 2);
            HeapRig.Session inserter = rig.session();
            RelationGrowth growth = rig.environment.growth();
            growth.lock(table.storage());
            Thread thread = new Thread(() -> insertOne(inserter, table));
            thread.start();
            while (growth.waiters(table.storage()) == 0) {
                Thread.sleep(1);
            }
            assertEquals(20, growth.extraPages(table.storage()));
            HeapRig.Session holder = rig.session();
            new TargetPage(holder.backend).addForOthers(table.storage(), 3, null);
            growth.unlock(table.storage());
            thread.join();
            assertEquals(5, table.storage().nblocks(ForkNumber.MAIN), "it took one of the three");
            assertTrue(new FreeSpaceMap().recordedFree(holder.buffers, table.storage(), 4) > 8000);
        }
    }
}
