package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageChecksum;
import org.pgkernel.base.RelFileLocator;
import org.pgkernel.base.disk.PosixDisk;
import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.bufmgr.ReadMode;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.StorageManager;
import org.pgkernel.smgr.SyncRequests;

/** Both maps over a real pool and real files. */
final class MapsOnDiskTest {
    private final FreeSpaceMap freeSpaceMap = new FreeSpaceMap();
    private final VisibilityMap visibilityMap = new VisibilityMap();
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);

    @TempDir Path directory;
    private StorageManager smgr;
    private BufferPool pool;
    private SmgrRelation relation;

    private void open(boolean checksums) throws IOException {
        Files.createDirectories(directory.resolve("base/5"));
        PosixDisk disk = new PosixDisk();
        String path = directory.toString();
        smgr =
                new StorageManager(
                        disk,
                        path,
                        StorageManager.SEGMENT_BLOCKS,
                        SizePolicy.RECOVERY_ONLY,
                        new SyncRequests(disk, path));
        smgr.inRecovery(true);
        pool = BufferPool.open(64, smgr, lsn -> {}, checksums, DropStrategy.LOOKUP);
        relation = smgr.open(RelFileLocator.DEFAULT_TABLESPACE, 5, 7);
        relation.create(ForkNumber.MAIN, true);
    }

    @AfterEach
    void nothingStaysPinned() {
        assertEquals(0, pool.pinnedBuffers());
        pool.close();
        smgr.close();
    }

    private byte[] file(String suffix) throws IOException {
        pool.flushAll();
        return Files.readAllBytes(directory.resolve("base/5/7" + suffix));
    }

    private void makeMap(int leafPages) {
        relation.create(ForkNumber.FSM, true);
        for (int i = 0; i < leafPages + 2; i++) {
            pool.release(pool.extend(relation, ForkNumber.FSM, false));
        }
    }

    private void record(int heapBlock, int category) {
        int block = FsmAddress.block(0, FsmAddress.leafOf(heapBlock));
        int buffer = pool.read(relation, ForkNumber.FSM, block, ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, page);
        if (Page.isNew(page)) {
            Page.init(page, 0);
        }
        FsmPage.setAvail(page, FsmAddress.slotOf(heapBlock), category);
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    private int rootSlot(int level, int logicalPage, int slot) {
        int buffer =
                pool.read(
                        relation,
                        ForkNumber.FSM,
                        FsmAddress.block(level, logicalPage),
                        ReadMode.NORMAL);
        pool.wrap(buffer, page);
        int category = FsmPage.avail(page, slot);
        pool.release(buffer);
        return category;
    }

    @Test
    void truncationForgetsTheTailOnEveryLevel() throws IOException {
        open(false);
        makeMap(3);
        record(10, 40);
        record(4068, 90);
        record(4069, 100);
        record(9000, 200);
        freeSpaceMap.vacuumRange(pool, relation, 0, BlockNumber.INVALID);
        assertEquals(90, rootSlot(1, 0, 0));
        assertEquals(100, rootSlot(1, 0, 1));
        assertEquals(200, rootSlot(1, 0, 2));
        assertEquals(200, rootSlot(2, 0, 0));

        int blocks = freeSpaceMap.prepareTruncate(pool, null, relation, 4000);
        assertEquals(3, blocks);
        pool.dropRelationForks(relation, new ForkNumber[] {ForkNumber.FSM}, new int[] {blocks}, 1);
        relation.truncate(ForkNumber.FSM, blocks);
        freeSpaceMap.vacuumRange(pool, relation, 4000, BlockNumber.INVALID);
        assertEquals(40, rootSlot(1, 0, 0));
        assertEquals(0, rootSlot(1, 0, 1));
        assertEquals(0, rootSlot(1, 0, 2));
        assertEquals(40, rootSlot(2, 0, 0));
        assertEquals(40, freeSpaceMap.recordedCategory(pool, relation, 10));
        assertEquals(0, freeSpaceMap.recordedCategory(pool, relation, 4068));
        assertEquals(0, freeSpaceMap.recordedCategory(pool, relation, 9000));
        assertEquals(3 * 8192, file("_fsm").length);
    }

    @Test
    void truncationAtALeafBoundaryNeedsNoTail() throws IOException {
        open(false);
        assertEquals(
                BlockNumber.INVALID,
                freeSpaceMap.prepareTruncate(pool, null, relation, 4069),
                "no fork");
        makeMap(2);
        assertEquals(3, freeSpaceMap.prepareTruncate(pool, null, relation, 4069));
        assertEquals(
                BlockNumber.INVALID,
                freeSpaceMap.prepareTruncate(pool, null, relation, 3 * 4069),
                "smaller already");
        assertEquals(
                BlockNumber.INVALID,
                freeSpaceMap.prepareTruncate(pool, null, relation, 3 * 4069 + 5));
    }

    @Test
    void upperPagesThatAreZerosAreFormattedByTheVacuum() throws IOException {
        open(false);
        makeMap(1);
        record(3, 77);
        freeSpaceMap.vacuumRange(pool, relation, 0, 5);
        byte[] file = file("_fsm");
        UnsafeBuffer root = new UnsafeBuffer(file, 0, 8192);
        assertEquals(77, FsmPage.maxAvail(root));
        assertEquals(8192, Page.upper(root));
        assertEquals(24, Page.lower(root));
    }

    @Test
    void withChecksumsRecoverysHintsStayInThePool() throws IOException {
        open(true);
        makeMap(1);
        record(3, 77);
        freeSpaceMap.vacuumRange(pool, relation, 0, 5);
        assertEquals(77, rootSlot(2, 0, 0));
        assertArrayEquals(new byte[8192], Arrays.copyOf(file("_fsm"), 8192));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName(
            "C14 the tail that a truncation clears in recovery reaches the disk, with checksums and without")
    void theClearedTailOfBothMapsReachesTheDisk(boolean checksums) throws IOException {
        open(checksums);
        makeMap(1);
        visibilityMap.clear(pool, relation, 0, VisibilityMap.VALID_BITS);
        for (int block = 5; block < 15; block++) {
            record(block, 200);
            setBits(block, VisibilityMap.ALL_VISIBLE);
        }
        pool.flushAll();
        freeSpaceMap.prepareTruncate(pool, null, relation, 10);
        visibilityMap.prepareTruncate(pool, null, relation, 10);
        UnsafeBuffer leaf = new UnsafeBuffer(file("_fsm"), 2 * 8192, 8192);
        UnsafeBuffer map = new UnsafeBuffer(file("_vm"), 0, 8192);
        for (int block = 5; block < 15; block++) {
            int bits =
                    map.getByte(VisibilityMap.byteOffset(block)) >>> VisibilityMap.bitOffset(block)
                            & 3;
            assertEquals(block < 10 ? 200 : 0, FsmPage.avail(leaf, block), "block " + block);
            assertEquals(block < 10 ? VisibilityMap.ALL_VISIBLE : 0, bits, "block " + block);
        }
        if (checksums) {
            assertEquals(PageChecksum.compute(leaf, 2), Page.checksum(leaf));
            assertEquals(PageChecksum.compute(map, 0), Page.checksum(map));
        }
    }

    @Test
    void clearingABitMakesTheMapAsFarAsNeeded() throws IOException {
        open(true);
        visibilityMap.clear(pool, relation, 2 * 32672 + 1, VisibilityMap.VALID_BITS);
        byte[] file = file("_vm");
        assertEquals(3 * 8192, file.length);
        for (int block = 0; block < 3; block++) {
            UnsafeBuffer map = new UnsafeBuffer(file, block * 8192, 8192);
            UnsafeBuffer expected = new UnsafeBuffer(new byte[8192]);
            Page.init(expected, 0);
            Page.setChecksum(expected, PageChecksum.compute(expected, block));
            assertArrayEquals(
                    expected.byteArray(),
                    Arrays.copyOfRange(file, block * 8192, (block + 1) * 8192));
            assertTrue(Page.checksum(map) != 0);
        }
    }

    private void setBits(int heapBlock, int bits) {
        int buffer =
                pool.read(
                        relation,
                        ForkNumber.VISIBILITY_MAP,
                        VisibilityMap.mapBlock(heapBlock),
                        ReadMode.NORMAL);
        pool.lockExclusive(buffer);
        pool.wrap(buffer, page);
        assertTrue(VisibilityMap.set(page, heapBlock, bits, 9));
        pool.markDirty(buffer);
        pool.unlock(buffer);
        pool.release(buffer);
    }

    @Test
    void clearingTouchesTheGivenBitsOfOneBlockOnly() throws IOException {
        open(false);
        visibilityMap.clear(pool, relation, 0, VisibilityMap.VALID_BITS);
        for (int block = 4; block < 8; block++) {
            setBits(block, VisibilityMap.VALID_BITS);
        }
        visibilityMap.clear(pool, relation, 5, VisibilityMap.ALL_FROZEN);
        visibilityMap.clear(pool, relation, 6, VisibilityMap.VALID_BITS);
        assertEquals(VisibilityMap.VALID_BITS, visibilityMap.status(pool, relation, 4));
        assertEquals(VisibilityMap.ALL_VISIBLE, visibilityMap.status(pool, relation, 5));
        assertEquals(0, visibilityMap.status(pool, relation, 6));
        assertEquals(VisibilityMap.VALID_BITS, visibilityMap.status(pool, relation, 7));
        assertEquals(0, visibilityMap.status(pool, relation, 40_000), "past the map");
    }

    @Test
    void truncationClearsTheBitsOfTheTail() throws IOException {
        open(false);
        assertEquals(
                BlockNumber.INVALID,
                visibilityMap.prepareTruncate(pool, null, relation, 5),
                "no fork");
        visibilityMap.clear(pool, relation, 40_000, VisibilityMap.VALID_BITS);
        for (int block = 4; block < 20; block++) {
            setBits(block, VisibilityMap.VALID_BITS);
        }
        assertEquals(1, visibilityMap.prepareTruncate(pool, null, relation, 6));
        assertEquals(VisibilityMap.VALID_BITS, visibilityMap.status(pool, relation, 5));
        for (int block = 6; block < 20; block++) {
            assertEquals(0, visibilityMap.status(pool, relation, block));
        }
        assertEquals(1, visibilityMap.prepareTruncate(pool, null, relation, 32672));
        assertEquals(
                BlockNumber.INVALID,
                visibilityMap.prepareTruncate(pool, null, relation, 2 * 32672));
        assertFalse(relation.exists(ForkNumber.FSM));
    }
}
