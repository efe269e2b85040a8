package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.RefusedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.testkit.SimulatedDisk;

/** The free space map as a primary's backends use it. */
final class FreeSpaceMapTest {
    private final FreeSpaceMap map = new FreeSpaceMap();

    @Test
    void needsAreRoundedUpAndOffersDown() {
        for (int bytes = 0; bytes <= FreeSpaceMap.MAX_REQUEST; bytes++) {
            int needed = FreeSpaceMap.categoryNeeded(bytes);
            assertTrue(FreeSpaceMap.freeBytes(needed) >= bytes);
            assertTrue(needed == 1 || FreeSpaceMap.freeBytes(needed - 1) < bytes);
            assertTrue(FreeSpaceMap.freeBytes(FreeSpaceMap.category(bytes)) <= bytes);
        }
        assertThrows(
                RefusedException.class,
                () -> FreeSpaceMap.categoryNeeded(FreeSpaceMap.MAX_REQUEST + 1));
    }

    @Test
    void aRelationWithoutMapHasNoPageAndStaysWithout() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            f.heapBlocks(10);
            assertEquals(BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 1));
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            assertTrue(!f.relation.exists(ForkNumber.FSM));
        }
    }

    @ParameterizedTest
    @EnumSource(SizePolicy.class)
    @DisplayName("C13 the map never names a block past the end of the heap, whatever it holds")
    void neverABlockPastTheEnd(SizePolicy sizes) {
        SimulatedDisk disk = new SimulatedDisk(13);
        try (PrimaryFixture f = new PrimaryFixture(true, sizes, disk)) {
            f.heapBlocks(12);
            for (int block = 8; block < 12; block++) {
                map.record(f.backend, f.relation, block, 8000);
            }
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            f.heapBlocks(8); // the crash took the last four blocks and left the map
            map.record(f.backend, f.relation, 3, 2000);

            assertEquals(BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 5000));
            assertEquals(3, map.pageWithFreeSpace(f.backend, f.relation, 1000));
            assertEquals(3, map.recordAndFind(f.backend, f.relation, 0, 0, 1500));
            assertEquals(0, map.recordedCategory(f.backend, f.relation, 9), "forgotten");
            assertEquals(FreeSpaceMap.category(2000), FsmPage.maxAvail(f.page(ForkNumber.FSM, 2)));
            // Added anew: they are offered again once they are recorded again.
            f.heapBlocks(12);
            assertEquals(BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 5000));
            assertEquals(10, map.recordAndFind(f.backend, f.relation, 10, 8000, 5000));
        }
    }

    @Test
    @DisplayName("C13 a whole leaf page of blocks that are gone costs one look, not one a block")
    void aLeafPastTheEndIsForgottenAtOnce() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            int blocks = 2 * FsmPage.SLOTS;
            f.heapBlocks(blocks);
            for (int block = 5; block < blocks; block++) {
                map.record(f.backend, f.relation, block, 8000);
            }
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            f.heapBlocks(5);
            assertEquals(BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 5000));
            for (int page = 0; page < 4; page++) {
                assertEquals(0, FsmPage.maxAvail(f.page(ForkNumber.FSM, page)));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("R13 a damaged map page is taken as empty, made anew once, and searches go on")
    void aDamagedPageIsMadeAnew(boolean checksums) {
        try (PrimaryFixture f = new PrimaryFixture(checksums)) {
            f.heapBlocks(100);
            map.record(f.backend, f.relation, 7, 4000);
            map.record(f.backend, f.relation, 50, 8000);
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            byte[] garbage = new byte[24];
            new Random(4).nextBytes(garbage);
            for (int page = 0; page < 3; page++) {
                f.damage(ForkNumber.FSM, page, 0, garbage);
            }
            assertEquals(BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 100));
            assertEquals(7, map.recordAndFind(f.backend, f.relation, 7, 4000, 100));
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            assertEquals(7, map.pageWithFreeSpace(f.backend, f.relation, 100));
            UnsafeBuffer leaf = f.page(ForkNumber.FSM, 2);
            assertEquals(Page.SIZE, Page.upper(leaf));
            assertEquals(Page.HEADER_SIZE, Page.lower(leaf));
        }
    }

    @Test
    @DisplayName("FSM-2 a search that meets a promise nobody keeps rebuilds the page")
    void aTornTreeIsRepairedByTheSearch() {
        for (int node = 0; node < 200; node++) {
            try (PrimaryFixture f = new PrimaryFixture(false)) {
                f.heapBlocks(100);
                map.record(f.backend, f.relation, 40, 3000);
                map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
                // An inner node of the leaf page claims more than it has; so do those above it.
                byte[] claim = {(byte) 200};
                for (int at = node; ; at = (at - 1) / 2) {
                    f.damage(ForkNumber.FSM, 2, FsmPage.NODES_OFFSET + at, claim);
                    if (at == 0) {
                        break;
                    }
                }
                map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
                assertEquals(
                        BlockNumber.INVALID, map.pageWithFreeSpace(f.backend, f.relation, 5000));
                assertEquals(40, map.pageWithFreeSpace(f.backend, f.relation, 3000 - 32));
                assertEquals(
                        FreeSpaceMap.category(3000), FsmPage.maxAvail(f.page(ForkNumber.FSM, 2)));
            }
        }
    }

    @Test
    void aWrongNextSlotIsTakenAsTheFirst() {
        for (int next : new int[] {-1, Integer.MIN_VALUE, FsmPage.SLOTS, Integer.MAX_VALUE}) {
            UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
            Page.init(page, 0);
            FsmPage.setAvail(page, 9, 100);
            FsmPage.setAvail(page, 4068, 100);
            FsmPage.setNextSlot(page, next);
            assertEquals(9, FsmPage.search(page, 100));
        }
    }

    @Test
    void theSearchFindsTheFirstSlotToTheRightThenFromTheLeft() {
        Random random = new Random(11);
        UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
        for (int round = 0; round < 300; round++) {
            Page.init(page, 0);
            page.setMemory(Page.HEADER_SIZE, Page.SIZE - Page.HEADER_SIZE, (byte) 0);
            int[] model = new int[FsmPage.SLOTS];
            for (int i = random.nextInt(40); i >= 0; i--) {
                int slot = random.nextInt(FsmPage.SLOTS);
                model[slot] = random.nextInt(256);
                FsmPage.setAvail(page, slot, model[slot]);
            }
            int next = random.nextInt(FsmPage.SLOTS);
            FsmPage.setNextSlot(page, next);
            int wanted = 1 + random.nextInt(255);
            int found = FsmPage.search(page, wanted);
            int expected = FsmPage.NONE;
            for (int i = 0; i < model.length && expected == FsmPage.NONE; i++) {
                int slot = (next + i) % model.length;
                expected = model[slot] >= wanted ? slot : FsmPage.NONE;
            }
            assertEquals(expected, found, "from " + next);
        }
    }

    @Test
    @DisplayName(
            "FSM-9 backends that record and search together end with a map that tells the truth")
    void manyBackendsAtOnce() throws Exception {
        int threads = 4;
        int blocks = 6000;
        try (PrimaryFixture f = new PrimaryFixture(true)) {
            f.heapBlocks(blocks);
            int[] model = new int[blocks];
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            try {
                List<Future<?>> all = new ArrayList<>();
                for (int t = 0; t < threads; t++) {
                    BackendBuffers mine = f.backend("thread " + t);
                    int number = t;
                    Callable<Void> work = () -> own(f, mine, number, threads, blocks, model);
                    all.add(pool.submit(work));
                }
                for (Future<?> one : all) {
                    one.get();
                }
            } finally {
                pool.shutdownNow();
            }
            map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
            int best = 0;
            for (int block = 0; block < blocks; block++) {
                assertEquals(model[block], map.recordedCategory(f.backend, f.relation, block));
                best = Math.max(best, model[block]);
            }
            int found = map.pageWithFreeSpace(f.backend, f.relation, FreeSpaceMap.freeBytes(best));
            assertNotEquals(BlockNumber.INVALID, found);
            assertEquals(best, model[found]);
        }
    }

    /** Each thread records blocks of its own, so that the last word is known. */
    private static Void own(
            PrimaryFixture f,
            BackendBuffers mine,
            int number,
            int threads,
            int blocks,
            int[] model) {
        FreeSpaceMap own = new FreeSpaceMap();
        Random random = new Random(100 + number);
        for (int i = 0; i < 3000; i++) {
            int block = random.nextInt(blocks / threads) * threads + number;
            int free = random.nextInt(8000);
            int found;
            if (random.nextBoolean()) {
                own.record(mine, f.relation, block, free);
                found = own.pageWithFreeSpace(mine, f.relation, random.nextInt(8000));
            } else {
                found = own.recordAndFind(mine, f.relation, block, free, random.nextInt(8000));
            }
            model[block] = FreeSpaceMap.category(free);
            assertTrue(found == BlockNumber.INVALID || found >= 0 && found < blocks);
            if (i % 500 == 0) {
                own.vacuumRange(mine, f.relation, 0, BlockNumber.INVALID);
            }
        }
        return null;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTruncationLogsTheTailPageWhereHintsAreLogged(boolean checksums) {
        try (PrimaryFixture f = new PrimaryFixture(checksums)) {
            f.heapBlocks(100);
            map.record(f.backend, f.relation, 50, 8000);
            int before = f.records().size();
            assertEquals(3, map.prepareTruncate(f.backend, f.insert, f.relation, 20));
            List<String> logged = f.records();
            assertEquals(
                    checksums ? List.of("0/176 FSM2!") : List.of(),
                    logged.subList(before, logged.size()));
            assertEquals(checksums ? f.wal.insertLsn() : 0, Page.lsn(f.page(ForkNumber.FSM, 2)));
            assertEquals(3, map.prepareTruncate(f.backend, null, f.relation, 10));
            assertEquals(logged, f.records(), "a relation that is not logged");
        }
    }
}
