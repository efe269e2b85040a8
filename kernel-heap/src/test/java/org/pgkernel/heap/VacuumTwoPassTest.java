package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.fsm.VisibilityMap.ALL_VISIBLE;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.heap.VacuumOptions.Indexes;

/** Vacuum of tables with indexes: dead line pointers outlive the entries that lead to them. */
final class VacuumTwoPassTest {
    private static final String TEXT = "x".repeat(700);
    private static final int ROWS_A_PAGE = 11;
    private static final VacuumOptions ON = VacuumOptions.DEFAULT.withIndexes(Indexes.ON);

    private final VacuumRig v = new VacuumRig(3);
    private final VacuumRig.Worker one = v.worker();
    private final Index index = new Index();

    @AfterEach
    void close() {
        v.close();
    }

    /**
     * What an index holds: places of rows. HEAP-31: none of them is ever a free line pointer, which
     * is looked at whenever the vacuum comes to a block.
     */
    private final class Index implements IndexCleaner {
        final TreeSet<Long> entries = new TreeSet<>();
        final List<Integer> rounds = new ArrayList<>();
        int cleanUps;
        double tuples;
        boolean estimated;

        @Override
        public void removeEntries(DeadTuples dead) {
            check();
            rounds.add(dead.count());
            for (int i = 0; i < dead.count(); i++) {
                assertEquals(Page.LP_DEAD, flags(dead.tid(i)), "only dead ones are told");
                assertTrue(i == 0 || dead.tid(i - 1) < dead.tid(i), "in order");
                assertTrue(dead.contains(dead.tid(i)));
            }
            assertFalse(dead.contains(TupleId.of(1_000_000, 1)));
            entries.removeIf(dead::contains);
            check();
        }

        @Override
        public void cleanUp(double tuples, boolean estimated) {
            cleanUps++;
            this.tuples = tuples;
            this.estimated = estimated;
        }

        void check() {
            for (long tid : entries) {
                assertTrue(flags(tid) != Page.LP_UNUSED, () -> TupleId.format(tid) + " is free");
            }
        }
    }

    private int flags(long tid) {
        int buffer =
                v.rig.pool.read(
                        v.table.storage(), ForkNumber.MAIN, TupleId.block(tid), ReadMode.NORMAL);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        v.rig.pool.wrap(buffer, page);
        int flags =
                TupleId.offset(tid) > Page.maxOffsetNumber(page)
                        ? Page.LP_UNUSED
                        : Page.lpFlags(Page.itemId(page, TupleId.offset(tid)));
        v.rig.pool.release(buffer);
        return flags;
    }

    private List<Long> fill(int pages) {
        List<Long> tids = one.fill(pages * ROWS_A_PAGE, TEXT);
        index.entries.addAll(tids);
        v.listener =
                new VacuumListener() {
                    @Override
                    public void atBlock(HeapRelation relation, int block, int blocks) {
                        index.check();
                    }

                    @Override
                    public void message(String text) {
                        v.messages.add(text);
                    }
                };
        return tids;
    }

    @Test
    void lineWithEntriesAreFreedInASecondPass() {
        List<Long> tids = fill(20);
        List<Long> gone = tids.stream().filter(tid -> tids.indexOf(tid) % 3 == 0).toList();
        one.delete(gone);
        TreeMap<Long, String> rows = one.rows();
        VacuumResult result = one.vacuum(ON, index);
        assertEquals(List.of(gone.size()), index.rounds);
        assertEquals(rows.keySet(), index.entries);
        assertEquals(1, result.indexScans());
        assertEquals(gone.size(), result.deadItems());
        assertEquals(20, result.deadItemPages());
        assertEquals(1, index.cleanUps);
        assertEquals(rows.size(), index.tuples);
        assertFalse(index.estimated);
        assertEquals(rows, one.rows());
        gone.forEach(tid -> assertEquals(Page.LP_UNUSED, flags(tid)));
        for (int block = 0; block < 20; block++) {
            assertEquals(ALL_VISIBLE, v.bits(block));
            assertTrue(v.recordedFree(block) > 2000);
        }
        v.check();
        v.checkEveryCut();
    }

    @Test
    void aFullStoreMeansSeveralRounds() {
        List<Long> tids = fill(150);
        one.delete(tids);
        // Room for one page's line pointers must stay: 291.
        VacuumResult result = one.vacuum(ON.withDeadTuples(700), index);
        assertTrue(index.rounds.size() >= 3, index.rounds.toString());
        assertEquals(index.rounds.size(), result.indexScans());
        assertTrue(index.rounds.stream().allMatch(count -> count <= 700));
        assertEquals(tids.size(), index.rounds.stream().mapToInt(Integer::intValue).sum());
        assertTrue(index.entries.isEmpty());
        assertEquals(0, v.blocks());
        v.checkEveryCut();
    }

    @Test
    void aStoreThatIsTooSmallTakesAPageAtATime() {
        List<Long> tids = fill(5);
        one.delete(tids);
        one.vacuum(ON.withDeadTuples(1), index);
        assertEquals(List.of(11, 11, 11, 11, 11), index.rounds);
        assertEquals(0, v.blocks());
    }

    @Test
    void hardlyAnyDeadLinesAreNotWorthALookIntoIndexes() {
        List<Long> tids = fill(200);
        one.delete(tids.subList(0, 3 * ROWS_A_PAGE)); // 3 pages of 200
        VacuumResult result = one.vacuum(VacuumOptions.DEFAULT, index);
        assertEquals(0, result.indexScans());
        assertEquals(tids.size(), index.entries.size());
        assertEquals(1, index.cleanUps);
        assertEquals(Page.LP_DEAD, flags(tids.getFirst()));
        assertEquals(0, v.bits(0));
        assertEquals(ALL_VISIBLE, v.bits(5));
        assertEquals(200, v.blocks());
        one.delete(tids.subList(3 * ROWS_A_PAGE, 4 * ROWS_A_PAGE)); // two in a hundred
        assertEquals(1, one.vacuum(VacuumOptions.DEFAULT, index).indexScans());
        assertEquals(Page.LP_UNUSED, flags(tids.getFirst()));
        v.check();
        v.checkEveryCut();
    }

    @Test
    void onDemandIndexesAreCleanedForASingleLine() {
        List<Long> tids = fill(100);
        one.delete(tids.subList(0, 1));
        assertEquals(1, one.vacuum(ON, index).indexScans());
        assertEquals(List.of(1), index.rounds);
        assertEquals(100, v.blocks());
    }

    @Test
    void onceTheStoreWasFullNothingIsLeftAlone() {
        List<Long> tids = fill(100);
        one.delete(tids.subList(0, ROWS_A_PAGE)); // one page of a hundred
        VacuumOptions small = VacuumOptions.DEFAULT.withDeadTuples(300);
        assertEquals(1, one.vacuum(small, index).indexScans());
        assertEquals(List.of(ROWS_A_PAGE), index.rounds);
    }

    @Test
    void indexesMayBeLeftAlone() {
        List<Long> tids = fill(20);
        one.delete(tids.subList(0, 100));
        VacuumResult result = one.vacuum(ON.withIndexes(Indexes.OFF), index);
        assertEquals(List.of(), index.rounds);
        assertEquals(0, index.cleanUps);
        assertEquals(100, result.deadItems());
        assertEquals(100, result.deletedTuples());
        assertTrue(v.recordedFree(0) > 7000, "the tuples are gone, the line pointers are not");
        assertEquals(1, one.vacuum(ON, index).indexScans());
        assertEquals(120, index.entries.size());
        v.checkEveryCut();
    }

    @Test
    void deadLinesOfAPageInUseAreFreedToo() {
        List<Long> tids = fill(3);
        one.delete(tids.subList(0, 5));
        one.vacuum(ON.withIndexes(Indexes.OFF), index);
        VacuumRig.Worker reader = v.worker();
        int pinned =
                reader.session.buffers.read(v.table.storage(), ForkNumber.MAIN, 0, ReadMode.NORMAL);
        VacuumResult result = one.vacuum(ON, index);
        assertEquals(List.of(5), index.rounds);
        assertEquals(5, result.deadItems());
        assertEquals(Page.LP_UNUSED, flags(tids.getFirst()));
        assertEquals(ALL_VISIBLE, v.bits(0));
        reader.session.buffers.release(pinned);
        v.checkEveryCut();
    }

    @Test
    void aPageThatIsNotAllVisibleAfterTheSecondPassStaysSo() {
        List<Long> tids = fill(1);
        one.delete(tids.subList(0, 2));
        VacuumRig.Worker reader = v.worker();
        reader.session.begin();
        reader.session.rows(v.table, reader.session.mvcc);
        one.delete(tids.subList(2, 3));
        one.vacuum(ON, index);
        assertEquals(List.of(2), index.rounds);
        assertEquals(0, v.bits(0));
        reader.session.rollback();
        v.check();
        one.vacuum(ON, index);
        assertEquals(ALL_VISIBLE, v.bits(0));
        v.checkEveryCut();
    }

    @Test
    void emptyPagesAtTheEndGoAfterTheirEntriesAndLines() {
        List<Long> tids = fill(40);
        one.delete(tids.stream().filter(tid -> TupleId.block(tid) >= 10).toList());
        VacuumResult result = one.vacuum(ON, index);
        assertEquals(30, result.removedPages());
        assertEquals(10, v.blocks());
        assertEquals(110, index.entries.size());
        v.check();
        v.checkEveryCut();
    }
}
