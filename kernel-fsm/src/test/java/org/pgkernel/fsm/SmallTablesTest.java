package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.smgr.SmgrRelation;

/** Heaps of a few pages under the policies that give them no map on disk. */
final class SmallTablesTest {
    private static final int NONE = BlockNumber.INVALID;
    private static final int WANTED = 1000;

    private static int next(FreeSpace space, PrimaryFixture f, SmgrRelation relation, int full) {
        return space.recordAndFind(f.backend, relation, full, 100, WANTED);
    }

    @Test
    @DisplayName("C15 (1): what was tried is forgotten with a fruitless search and an extension")
    void everyOtherPageIsTriedLastFirst() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            FreeSpace local = FsmOptions.of(FsmPolicy.SMALL_TABLES_LOCAL).newFreeSpace();
            int[][] turns = {{}, {0}, {1}, {2, 0}, {3, 1}};
            for (int blocks = 0; blocks < turns.length; blocks++) {
                f.heapBlocks(blocks);
                for (int again = 0; again < 2; again++) {
                    int block = local.firstPage(f.backend, f.relation, blocks, WANTED);
                    for (int turn : turns[blocks]) {
                        assertEquals(turn, block);
                        block = next(local, f, f.relation, block);
                    }
                    assertEquals(NONE, block);
                }
            }
            assertFalse(f.relation.exists(ForkNumber.FSM));
        }
    }

    @Test
    @DisplayName("C15 (2): a search of one relation, or one that was aborted, is not gone on with")
    void aSearchIsOfOneRelationAndOneTransaction() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            FreeSpace local = FsmOptions.of(FsmPolicy.SMALL_TABLES_LOCAL).newFreeSpace();
            SmgrRelation other = f.relation(8);
            f.heapBlocks(4);
            f.heapBlocks(other, 4);
            assertEquals(3, local.firstPage(f.backend, f.relation, 4, WANTED));
            assertEquals(1, next(local, f, f.relation, 3));
            assertEquals(3, next(local, f, other, 0), "another relation: its target was full");
            assertEquals(1, next(local, f, other, 3));
            local.forget();
            assertEquals(3, next(local, f, other, 0), "aborted: all pages in turn again");
        }
    }

    @Test
    @DisplayName("C15 (3): the page that the turn skips is tried when the relation has grown")
    void theSkippedPageComesNextAndTheTargetDoesNotEndTheSearch() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            FreeSpace local = FsmOptions.of(FsmPolicy.SMALL_TABLES_LOCAL).newFreeSpace();
            f.heapBlocks(3);
            assertEquals(0, next(local, f, f.relation, 2), "the target was in turn");
            assertEquals(NONE, next(local, f, f.relation, 0));
            f.heapBlocks(4);
            assertEquals(1, next(local, f, f.relation, 3));
            // Another backend adds a page in the middle of the search.
            f.heapBlocks(3);
            assertEquals(2, local.firstPage(f.backend, f.relation, 3, WANTED));
            f.heapBlocks(4);
            assertEquals(3, next(local, f, f.relation, 2), "chosen anew");
            assertEquals(1, next(local, f, f.relation, 3));
            assertEquals(NONE, next(local, f, f.relation, 1));
        }
    }

    @ParameterizedTest
    @EnumSource(
            names = {"SMALL_TABLES_LOCAL", "SMALL_TABLES_SHARED"},
            value = FsmPolicy.class)
    @DisplayName("C16: no map up to four blocks, one from the fifth on, and then it is asked first")
    void theMapComesWithTheFifthBlock(FsmPolicy policy) {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            FreeSpace space = FsmOptions.of(policy).newFreeSpace();
            f.heapBlocks(4);
            for (int block = 0; block < 4; block++) {
                space.record(f.backend, f.relation, block, 200);
            }
            space.vacuumRange(f.backend, f.relation, 0, NONE);
            next(space, f, f.relation, 3);
            assertFalse(f.relation.exists(ForkNumber.FSM));
            f.heapBlocks(5);
            space.record(f.backend, f.relation, 2, 3000);
            assertTrue(f.relation.exists(ForkNumber.FSM));
            space.vacuumRange(f.backend, f.relation, 0, NONE);
            f.heapBlocks(4); // as after a truncation
            assertEquals(2, space.firstPage(f.backend, f.relation, 4, WANTED));
            space.record(f.backend, f.relation, 2, 100);
            assertEquals(0, space.recordedFree(f.backend, f.relation, 0) / WANTED);
            assertEquals(
                    FreeSpaceMap.category(100),
                    new FreeSpaceMap().recordedCategory(f.backend, f.relation, 2));
        }
    }

    @Test
    void aFullPageIsFoundFullByOneBackendOnly() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(4);
            FreeSpace first = new SharedFreeSpace(4, 0);
            FreeSpace second = new SharedFreeSpace(4, 0);
            assertEquals(3, first.firstPage(f.backend, f.relation, 4, WANTED));
            assertEquals(2, next(first, f, f.relation, 3));
            assertEquals(2, second.firstPage(f.backend, f.relation, 4, WANTED), "3 is known full");
            assertEquals(1, next(second, f, f.relation, 2));
            assertEquals(0, next(first, f, f.relation, 1));
            assertEquals(NONE, next(second, f, f.relation, 0));
            assertEquals(NONE, first.firstPage(f.backend, f.relation, 4, WANTED));
            assertEquals(3, first.firstPage(f.backend, f.relation, 4, 64), "a little is left");
            second.record(f.backend, f.relation, 1, 5000); // vacuum
            assertEquals(1, first.firstPage(f.backend, f.relation, 4, WANTED));
        }
    }

    @Test
    void backendsBeginAtDifferentPages() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(4);
            for (int i = 0; i < 8; i++) {
                FreeSpace space = new SharedFreeSpace(4, i);
                assertEquals(3 - i % 4, space.firstPage(f.backend, f.relation, 4, WANTED));
            }
        }
    }

    @Test
    void whatIsKnownGoesToTheMapWhenTheRelationHasOutgrownIt() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            FreeSpace space = FsmOptions.of(FsmPolicy.SMALL_TABLES_SHARED).newFreeSpace();
            f.heapBlocks(4);
            space.record(f.backend, f.relation, 1, 5000);
            f.heapBlocks(5);
            assertEquals(1, next(space, f, f.relation, 4));
            assertEquals(0, f.relation.hint());
        }
    }

    /** Each thread has a page of its own; whoever overwrites it by his own lost a record. */
    private static boolean losesRecords(
            PrimaryFixture f, Callable<SharedFreeSpace> spaces, int rounds) throws Exception {
        List<Future<Boolean>> lost = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
            for (int t = 0; t < 3; t++) {
                int block = t;
                BackendBuffers mine = f.backend("thread " + t);
                SharedFreeSpace space = spaces.call();
                lost.add(
                        threads.submit(
                                () -> {
                                    Random random = new Random(block);
                                    for (int i = 0; i < rounds; i++) {
                                        int free = 32 * random.nextInt(250);
                                        space.put(f.relation, block, free / 32);
                                        if (space.recordedFree(mine, f.relation, block) != free) {
                                            return true;
                                        }
                                    }
                                    return false;
                                }));
            }
            boolean any = false;
            for (Future<Boolean> one : lost) {
                any |= one.get();
            }
            return any;
        }
    }

    @Test
    void concurrentRecordsAreNotLost() throws Exception {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(4);
            assertFalse(losesRecords(f, () -> new SharedFreeSpace(4), 200_000));
        }
    }

    @Test
    void aWordThatIsChangedWithoutASecondTryLosesSome() throws Exception {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(4);
            assertTrue(losesRecords(f, OneTry::new, 20_000_000));
        }
    }

    /** A fault: who is slower than another gives up. */
    private static final class OneTry extends SharedFreeSpace {
        OneTry() {
            super(4);
        }

        @Override
        void put(SmgrRelation relation, int block, int category) {
            long seen = relation.hint();
            relation.replaceHint(seen, with(seen, block, category));
        }
    }

    @Test
    void aThresholdThatNoWordHoldsIsRefused() {
        assertThrows(
                RefusedException.class, () -> new FsmOptions(FsmPolicy.SMALL_TABLES_SHARED, 9));
        assertEquals(0, FsmOptions.of(FsmPolicy.ALWAYS).creationThreshold());
        assertTrue(
                new FsmOptions(FsmPolicy.SMALL_TABLES_LOCAL, 0).newFreeSpace()
                        instanceof FreeSpaceMap);
    }

    @Test
    void pagesOfAnIndexAreFreeOrUsed() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            IndexFreeSpace space = new IndexFreeSpace();
            f.heapBlocks(3);
            assertEquals(NONE, space.takeFreePage(f.backend, f.relation));
            space.recordFree(f.backend, f.relation, 1);
            space.recordFree(f.backend, f.relation, 2);
            space.vacuum(f.backend, f.relation);
            assertEquals(
                    255, new FreeSpaceMap().recordedCategory(f.backend, f.relation, 1), "8191");
            assertEquals(1, space.takeFreePage(f.backend, f.relation));
            assertEquals(2, space.takeFreePage(f.backend, f.relation), "1 is taken");
            assertEquals(NONE, space.takeFreePage(f.backend, f.relation));
            space.recordFree(f.backend, f.relation, 2);
            space.recordUsed(f.backend, f.relation, 2);
            space.vacuum(f.backend, f.relation);
            assertEquals(NONE, space.takeFreePage(f.backend, f.relation));
        }
    }
}
