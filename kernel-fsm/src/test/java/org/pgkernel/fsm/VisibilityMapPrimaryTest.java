package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.pgkernel.fsm.VisibilityMap.ALL_FROZEN;
import static org.pgkernel.fsm.VisibilityMap.ALL_VISIBLE;
import static org.pgkernel.fsm.VisibilityMap.VALID_BITS;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.bufmgr.BackendBuffers;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.SimulatedDisk;
import org.pgkernel.wal.RecordInsert;

/** The visibility map as a primary's backends use it. */
final class VisibilityMapPrimaryTest {
    private static final int MAP_BLOCKS = VisibilityMap.BLOCKS_PER_PAGE;

    private final VisibilityMap map = new VisibilityMap();

    /** Formats the heap page, sets its flag and the map's bits, as vacuum does. */
    private void setVisible(
            PrimaryFixture f, BackendBuffers backend, VisibilityMap map, int heapBlock, int bits) {
        setVisible(f, backend, map, new RecordInsert(f.wal), heapBlock, bits);
    }

    private static void setVisible(
            PrimaryFixture f,
            BackendBuffers backend,
            VisibilityMap map,
            RecordInsert wal,
            int heapBlock,
            int bits) {
        int mapBuffer = map.pin(backend, f.relation, heapBlock, -1);
        int heap = backend.read(f.relation, ForkNumber.MAIN, heapBlock, ReadMode.NORMAL);
        UnsafeBuffer page = new UnsafeBuffer(0L, 0);
        backend.lockExclusive(heap);
        f.pool.wrap(heap, page);
        if (Page.isNew(page)) {
            Page.init(page, 0);
        }
        Page.setAllVisible(page);
        backend.markDirty(heap);
        map.set(backend, wal, f.relation, heap, mapBuffer, 700, bits);
        backend.unlock(heap);
        backend.release(heap);
        backend.release(mapBuffer);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void settingLogsBothPagesAndTheHeapsImageOnlyWhereHintsAreLogged(boolean checksums) {
        try (PrimaryFixture f = new PrimaryFixture(checksums)) {
            f.heapBlocks(3);
            f.wal.moveRedo();
            setVisible(f, f.backend, map, 1, ALL_VISIBLE);
            // The map's page is new since the redo point: an image, always. The heap's by need.
            List<String> logged = f.records();
            assertEquals(List.of("9/64 VISIBILITY_MAP0! MAIN1" + (checksums ? "!" : "")), logged);
            long end = f.wal.insertLsn();
            assertEquals(end, Page.lsn(f.page(ForkNumber.VISIBILITY_MAP, 0)));
            assertEquals(checksums ? end : 0, Page.lsn(f.page(ForkNumber.MAIN, 1)));

            setVisible(f, f.backend, map, 1, ALL_VISIBLE);
            assertEquals(logged, f.records(), "nothing changed, nothing logged");
            setVisible(f, f.backend, map, 1, VALID_BITS);
            assertEquals("9/64 VISIBILITY_MAP0 MAIN1", f.records().get(1));
            assertEquals(VALID_BITS, map.status(f.backend, f.relation, 1));

            setVisible(f, f.backend, map, null, 2, VALID_BITS);
            assertEquals(2, f.records().size(), "a relation that is not logged");
            assertEquals(VALID_BITS, map.status(f.backend, f.relation, 2));
            assertEquals(0, map.status(f.backend, f.relation, 0));
        }
    }

    @Test
    @DisplayName("C17 the record of a bit cannot be written: the kernel stops, no page is written")
    void aBitThatCannotBeLoggedStopsTheKernel() {
        SimulatedDisk disk = new SimulatedDisk(17);
        try (PrimaryFixture f = new PrimaryFixture(false, SizePolicy.SHARED, disk)) {
            f.heapBlocks(2);
            setVisible(f, f.backend, map, 0, ALL_VISIBLE);
            f.wal.stop(new IllegalStateException("planted"));
            try (var scope = f.backend.enter("fails")) {
                assertThrows(
                        KernelStoppedException.class,
                        () -> setVisible(f, f.backend, map, 1, ALL_VISIBLE));
            }
            long writes = disk.count(DiskCall.WRITE);
            assertThrows(KernelStoppedException.class, f.pool::flushAll);
            assertEquals(writes, disk.count(DiskCall.WRITE));
        }
    }

    @Test
    void aPinIsKeptWithinAMapPageAndExchangedBetweenThem() {
        try (PrimaryFixture f = new PrimaryFixture(false)) {
            assertEquals(-1, map.pinExisting(f.backend, f.relation, 5, -1), "nothing is made");
            assertFalse(f.relation.exists(ForkNumber.VISIBILITY_MAP));
            int first = map.pin(f.backend, f.relation, 5, -1);
            assertEquals(first, map.pin(f.backend, f.relation, MAP_BLOCKS - 1, first));
            assertEquals(1, f.backend.pins(first));
            assertTrue(VisibilityMap.isPinned(f.backend, 5, first));
            assertFalse(VisibilityMap.isPinned(f.backend, MAP_BLOCKS, first));
            assertEquals(-1, map.pinExisting(f.backend, f.relation, MAP_BLOCKS, first));
            assertEquals(0, f.backend.pinnedBuffers());
            int second = map.pin(f.backend, f.relation, MAP_BLOCKS, -1);
            assertEquals(2, f.relation.nblocks(ForkNumber.VISIBILITY_MAP));
            int again = map.pin(f.backend, f.relation, 0, second);
            assertEquals(0, f.pool.block(again));
            VisibilityMap.release(f.backend, again);
        }
    }

    @Property(tries = 40)
    void theMapIsTheModel(@ForAll long seed) {
        Random random = new Random(seed);
        int blocks = MAP_BLOCKS + 4000;
        int[] model = new int[blocks];
        VisibilityMap map = new VisibilityMap();
        try (PrimaryFixture f = new PrimaryFixture(random.nextBoolean())) {
            f.heapBlocks(blocks);
            for (int i = 0; i < 150; i++) {
                int block =
                        random.nextInt(3) == 0
                                ? MAP_BLOCKS - 4 + random.nextInt(8)
                                : random.nextInt(blocks);
                switch (random.nextInt(8)) {
                    case 0, 1, 2, 3 -> {
                        int bits = random.nextBoolean() ? ALL_VISIBLE : VALID_BITS;
                        setVisible(f, f.backend, map, block, bits);
                        model[block] |= bits;
                    }
                    case 4, 5 -> {
                        int bits = random.nextBoolean() ? ALL_FROZEN : VALID_BITS;
                        int held = map.pin(f.backend, f.relation, block, -1);
                        boolean set = map.clear(f.backend, block, held, bits);
                        f.backend.release(held);
                        assertEquals((model[block] & bits) != 0, set);
                        model[block] &= ~bits;
                    }
                    case 6 -> {
                        if (random.nextInt(4) == 0) {
                            map.prepareTruncate(f.backend, f.insert, f.relation, block);
                            int end = (block / MAP_BLOCKS + 1) * MAP_BLOCKS;
                            int last = Math.min(blocks, end);
                            if (block % MAP_BLOCKS != 0) {
                                Arrays.fill(model, block, last, 0);
                            }
                        }
                    }
                    default -> assertEquals(model[block], map.status(f.backend, f.relation, block));
                }
            }
            VisibilityMap.Count count = map.count(f.backend, f.relation);
            assertEquals(
                    Arrays.stream(model).filter(m -> (m & ALL_VISIBLE) != 0).count(),
                    count.allVisible());
            assertEquals(
                    Arrays.stream(model).filter(m -> (m & ALL_FROZEN) != 0).count(),
                    count.allFrozen());
            for (int block = 0; block < blocks; block++) {
                assertEquals(model[block], map.status(f.backend, f.relation, block));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {32_001, 4, 1, 0, MAP_BLOCKS, MAP_BLOCKS + 3, 39_999})
    @DisplayName("C18 a truncation clears the bits of removed blocks, all of them and no other")
    void truncationClearsExactlyTheTail(int heapBlocks) {
        int blocks = 40_000;
        try (PrimaryFixture f = new PrimaryFixture(true)) {
            f.heapBlocks(blocks);
            RecordInsert wal = new RecordInsert(f.wal);
            for (int block = 0; block < blocks; block += block % 37 == 0 ? 1 : 5) {
                setVisible(f, f.backend, map, wal, block, VALID_BITS);
            }
            int[] before = statuses(f, blocks);
            int mapBlocks = map.prepareTruncate(f.backend, f.insert, f.relation, heapBlocks);
            int expected = (heapBlocks + MAP_BLOCKS - 1) / MAP_BLOCKS;
            if (expected == 2) {
                assertEquals(BlockNumber.INVALID, mapBlocks, "as long as it is");
            } else {
                assertEquals(expected, mapBlocks);
                ForkNumber[] forks = {ForkNumber.VISIBILITY_MAP};
                f.pool.dropRelationForks(f.relation, forks, new int[] {mapBlocks}, 1);
                f.relation.truncate(ForkNumber.VISIBILITY_MAP, mapBlocks);
            }
            // Added again, the blocks must not look all-visible.
            assertEquals(expected, f.relation.nblocks(ForkNumber.VISIBILITY_MAP));
            VisibilityMap.release(f.backend, map.pin(f.backend, f.relation, blocks, -1));
            int[] after = statuses(f, blocks);
            for (int block = 0; block < blocks; block++) {
                assertEquals(block < heapBlocks ? before[block] : 0, after[block]);
            }
            for (int page = 0; page < 2; page++) {
                UnsafeBuffer mapPage = f.page(ForkNumber.VISIBILITY_MAP, page);
                assertEquals(Page.SIZE, Page.upper(mapPage));
            }
        }
    }

    private int[] statuses(PrimaryFixture f, int blocks) {
        int[] all = new int[blocks];
        int held = -1;
        for (int block = 0; block < blocks; block++) {
            held = map.pinExisting(f.backend, f.relation, block, held);
            all[block] = map.status(f.backend, block, held);
        }
        VisibilityMap.release(f.backend, held);
        return all;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTruncationLogsTheTailPageWhereHintsAreLogged(boolean checksums) {
        try (PrimaryFixture f = new PrimaryFixture(checksums)) {
            f.heapBlocks(100);
            setVisible(f, f.backend, map, 50, VALID_BITS);
            int before = f.records().size();
            map.prepareTruncate(f.backend, f.insert, f.relation, 20);
            List<String> logged = f.records();
            assertEquals(
                    checksums ? List.of("0/176 VISIBILITY_MAP0!") : List.of(),
                    logged.subList(before, logged.size()));
            map.prepareTruncate(f.backend, null, f.relation, 10);
            assertEquals(logged, f.records(), "a relation that is not logged");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("R13 a damaged map page is taken as nothing visible, made anew, and set again")
    void aDamagedPageIsMadeAnew(boolean checksums) {
        try (PrimaryFixture f = new PrimaryFixture(checksums)) {
            f.heapBlocks(10);
            setVisible(f, f.backend, map, 3, VALID_BITS);
            setVisible(f, f.backend, map, 4, VALID_BITS);
            byte[] garbage = new byte[24];
            new Random(5).nextBytes(garbage);
            f.damage(ForkNumber.VISIBILITY_MAP, 0, 0, garbage);
            assertEquals(0, map.status(f.backend, f.relation, 3));
            assertEquals(new VisibilityMap.Count(0, 0), map.count(f.backend, f.relation));
            setVisible(f, f.backend, map, 3, ALL_VISIBLE);
            assertEquals(ALL_VISIBLE, map.status(f.backend, f.relation, 3));
            assertEquals(0, map.status(f.backend, f.relation, 4));
            f.damage(ForkNumber.VISIBILITY_MAP, 0, 8000, new byte[] {0});
            assertEquals(ALL_VISIBLE, map.status(f.backend, f.relation, 3), "written, and sound");
        }
    }

    @Test
    @DisplayName("R13 backends that find the map missing or damaged at once make it once")
    void manyBackendsAtOnce() throws Exception {
        int threads = 4;
        for (int round = 0; round < 20; round++) {
            try (PrimaryFixture f = new PrimaryFixture(true)) {
                f.heapBlocks(64);
                if (round % 2 == 1) {
                    VisibilityMap.release(f.backend, map.pin(f.backend, f.relation, 0, -1));
                    byte[] garbage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
                    f.damage(ForkNumber.VISIBILITY_MAP, 0, 0, garbage);
                }
                ExecutorService pool = Executors.newFixedThreadPool(threads);
                try {
                    List<Future<?>> all = new ArrayList<>();
                    for (int t = 0; t < threads; t++) {
                        BackendBuffers mine = f.backend("thread " + t);
                        int number = t;
                        all.add(
                                pool.submit(
                                        () -> {
                                            VisibilityMap own = new VisibilityMap();
                                            for (int b = number; b < 64; b += threads) {
                                                setVisible(f, mine, own, b, VALID_BITS);
                                            }
                                        }));
                    }
                    for (Future<?> one : all) {
                        one.get();
                    }
                } finally {
                    pool.shutdownNow();
                }
                assertEquals(new VisibilityMap.Count(64, 64), map.count(f.backend, f.relation));
                assertEquals(1, f.relation.nblocks(ForkNumber.VISIBILITY_MAP));
            }
        }
    }
}
