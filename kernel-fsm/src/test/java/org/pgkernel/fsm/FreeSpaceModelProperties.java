package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.testkit.SimulatedDisk;

/** The free space map beside an array with a category a block (FSM-7, FSM-8). */
final class FreeSpaceModelProperties {
    /** Three leaf pages, the last not full. */
    private static final int MOST_BLOCKS = 2 * FsmPage.SLOTS + 500;

    private final int[] model = new int[MOST_BLOCKS];
    private final FreeSpaceMap map = new FreeSpaceMap();
    private PrimaryFixture f;
    private int heapBlocks;

    @Property(tries = 60)
    void whatIsFoundHasRoomAndAfterAVacuumRoomIsFound(
            @ForAll long seed, @ForAll @IntRange(min = 1, max = 400) int steps) {
        Random random = new Random(seed);
        Arrays.fill(model, 0);
        SizePolicy sizes = random.nextBoolean() ? SizePolicy.SHARED : SizePolicy.RECOVERY_ONLY;
        try (PrimaryFixture fixture =
                new PrimaryFixture(random.nextBoolean(), sizes, new SimulatedDisk(seed))) {
            f = fixture;
            grow(1 + random.nextInt(MOST_BLOCKS));
            for (int i = 0; i < steps; i++) {
                step(random);
            }
            vacuumAndCheck();
        }
    }

    private void step(Random random) {
        int wanted = bytes(random);
        switch (random.nextInt(12)) {
            case 0, 1, 2, 3 -> record(block(random), bytes(random));
            case 4, 5, 6 -> {
                int block = block(random);
                int free = bytes(random);
                model[block] = FreeSpaceMap.category(free);
                found(
                        map.recordAndFind(f.backend, f.relation, block, free, wanted),
                        wanted,
                        leafHas(FsmAddress.leafOf(block), wanted));
            }
            case 7, 8 -> found(map.pageWithFreeSpace(f.backend, f.relation, wanted), wanted, false);
            case 9 -> {
                int start = block(random);
                int end = start + 1 + random.nextInt(heapBlocks - start);
                map.vacuumRange(f.backend, f.relation, start, end);
                boolean any = best(start, end) >= FreeSpaceMap.categoryNeeded(wanted);
                found(map.pageWithFreeSpace(f.backend, f.relation, wanted), wanted, any);
            }
            case 10 -> {
                if (random.nextInt(4) == 0) {
                    truncate(1 + random.nextInt(heapBlocks));
                } else {
                    grow(Math.min(MOST_BLOCKS, heapBlocks + random.nextInt(300)));
                }
            }
            default -> vacuumAndCheck();
        }
    }

    private void record(int block, int free) {
        map.record(f.backend, f.relation, block, free);
        model[block] = FreeSpaceMap.category(free);
        assertEquals(model[block], map.recordedCategory(f.backend, f.relation, block));
    }

    private void grow(int blocks) {
        f.heapBlocks(blocks);
        heapBlocks = blocks;
    }

    /** As the caller of the truncation does it. */
    private void truncate(int blocks) {
        int mapBlocks = map.prepareTruncate(f.backend, f.insert, f.relation, blocks);
        if (mapBlocks != BlockNumber.INVALID) {
            ForkNumber[] forks = {ForkNumber.FSM};
            f.pool.dropRelationForks(f.relation, forks, new int[] {mapBlocks}, 1);
            f.relation.truncate(ForkNumber.FSM, mapBlocks);
        }
        f.heapBlocks(blocks);
        map.vacuumRange(f.backend, f.relation, blocks, BlockNumber.INVALID);
        Arrays.fill(model, blocks, MOST_BLOCKS, 0);
        heapBlocks = blocks;
        for (int block = blocks; block < MOST_BLOCKS; block += 97) {
            assertEquals(0, map.recordedCategory(f.backend, f.relation, block));
        }
    }

    /** From here on what is there is found, whatever is asked for. */
    private void vacuumAndCheck() {
        map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
        int best = best(0, heapBlocks);
        for (int category : new int[] {1, best / 2, best, best + 1, 255}) {
            if (category >= 1 && category <= 255) {
                int bytes = FreeSpaceMap.freeBytes(category);
                found(map.pageWithFreeSpace(f.backend, f.relation, bytes), bytes, best >= category);
            }
        }
    }

    private void found(int block, int wanted, boolean mustFind) {
        int needed = FreeSpaceMap.categoryNeeded(wanted);
        if (block == BlockNumber.INVALID) {
            assertTrue(!mustFind, () -> wanted + " bytes are there and were not found");
        } else {
            assertTrue(block >= 0 && block < heapBlocks, () -> "no such block " + block);
            assertTrue(model[block] >= needed, () -> block + " has not " + wanted + " bytes free");
            assertTrue(FreeSpaceMap.freeBytes(model[block]) >= wanted);
        }
    }

    private boolean leafHas(int leaf, int wanted) {
        int start = leaf * FsmPage.SLOTS;
        return best(start, Math.min(heapBlocks, start + FsmPage.SLOTS))
                >= FreeSpaceMap.categoryNeeded(wanted);
    }

    private int best(int start, int end) {
        return Arrays.stream(model, start, end).max().orElse(0);
    }

    private int block(Random random) {
        return random.nextInt(4) == 0
                ? heapBlocks - 1 - random.nextInt(Math.min(3, heapBlocks))
                : random.nextInt(heapBlocks);
    }

    private static int bytes(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> random.nextInt(64);
            case 1 -> FreeSpaceMap.MAX_REQUEST - random.nextInt(64);
            default -> random.nextInt(FreeSpaceMap.MAX_REQUEST + 1);
        };
    }

    @Property(tries = 20)
    void searchersThatFollowEachOtherAreSentToDifferentPages(
            @ForAll long seed, @ForAll @IntRange(min = 2, max = 60) int pages) {
        Random random = new Random(seed);
        try (PrimaryFixture fixture = new PrimaryFixture(false)) {
            f = fixture;
            Arrays.fill(model, 0);
            grow(FsmPage.SLOTS);
            int[] blocks = random.ints(0, heapBlocks).distinct().limit(pages).sorted().toArray();
            for (int block : blocks) {
                record(block, 4000);
            }
            for (int round = 0; round < 2; round++) {
                map.vacuumRange(f.backend, f.relation, 0, BlockNumber.INVALID);
                int[] found = new int[2 * pages];
                for (int i = 0; i < found.length; i++) {
                    found[i] = map.pageWithFreeSpace(f.backend, f.relation, 3000);
                }
                // Each in its turn, from the lowest after a vacuum, twice around.
                for (int i = 0; i < found.length; i++) {
                    assertEquals(blocks[i % pages], found[i]);
                }
            }
        }
    }
}
