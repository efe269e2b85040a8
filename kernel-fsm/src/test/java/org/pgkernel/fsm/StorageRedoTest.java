package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.ReadMode;

final class StorageRedoTest {
    private final StorageRedo storage = new StorageRedo();
    private final FreeSpaceMap freeSpaceMap = new FreeSpaceMap();
    private final VisibilityMap visibilityMap = new VisibilityMap();

    @TempDir Path directory;
    private RedoFixture redo;

    @BeforeEach
    void open() {
        redo = new RedoFixture(directory, false);
    }

    @AfterEach
    void close() {
        redo.close();
    }

    private RedoFixture truncate(int blocks, int flags) {
        UnsafeBuffer main =
                RedoFixture.part(blocks, RedoFixture.SPC, RedoFixture.DB, RedoFixture.REL, flags);
        return redo.begin(StorageRecords.RMID, StorageRecords.TRUNCATE, 0, main).apply(storage);
    }

    private RedoFixture create(int fork) {
        UnsafeBuffer main =
                RedoFixture.part(RedoFixture.SPC, RedoFixture.DB, RedoFixture.REL, fork);
        return redo.begin(StorageRecords.RMID, StorageRecords.CREATE, 0, main).apply(storage);
    }

    /** {@code heapBlocks} dirty heap pages, each with free space and visibility recorded. */
    private void fill(int heapBlocks) {
        redo.context.readExtended(
                RedoFixture.SPC,
                RedoFixture.DB,
                RedoFixture.REL,
                ForkNumber.MAIN,
                heapBlocks - 1,
                ReadMode.ZERO_AND_LOCK);
        int last = redo.pool.read(redo.relation, ForkNumber.MAIN, heapBlocks - 1, ReadMode.NORMAL);
        redo.pool.release(last);
        redo.pool.unlock(last);
        redo.pool.release(last);
        visibilityMap.clear(redo.pool, redo.relation, heapBlocks - 1, VisibilityMap.VALID_BITS);
        for (int block = 0; block < heapBlocks; block++) {
            int b = block;
            redo.change(ForkNumber.MAIN, block, page -> Page.init(page, 0));
            freeSpaceMap.recordInRedo(
                    redo.context,
                    RedoFixture.SPC,
                    RedoFixture.DB,
                    RedoFixture.REL,
                    block,
                    32 * (block + 1));
            redo.change(
                    ForkNumber.VISIBILITY_MAP,
                    0,
                    page -> VisibilityMap.set(page, b, VisibilityMap.VALID_BITS, 1));
        }
    }

    @Test
    void createMakesTheForkOnce() {
        create(1);
        assertTrue(redo.relation.exists(ForkNumber.FSM));
        assertFalse(redo.relation.exists(ForkNumber.MAIN));
        create(1);
        assertEquals(0, redo.relation.nblocks(ForkNumber.FSM));
    }

    @Test
    void truncateCutsAllThreeForksAndWhatTheMapsSayOfTheTail() {
        fill(10);
        truncate(4, 7);
        assertEquals(4, redo.relation.nblocks(ForkNumber.MAIN));
        assertEquals(4, freeSpaceMap.recordedCategory(redo.pool, redo.relation, 3));
        assertEquals(0, freeSpaceMap.recordedCategory(redo.pool, redo.relation, 4));
        assertEquals(VisibilityMap.VALID_BITS, visibilityMap.status(redo.pool, redo.relation, 3));
        assertEquals(0, visibilityMap.status(redo.pool, redo.relation, 4));
        UnsafeBuffer root = redo.page(ForkNumber.FSM, 0);
        assertEquals(4, FsmPage.maxAvail(root), "upper levels follow");
    }

    /** FSM-6: a dirty page past the new end would bring the file back to its old size. */
    @Test
    void noBufferOfTheTailIsLeftToBeWritten() {
        fill(10);
        truncate(4, 7);
        assertEquals(4 * 8192, redo.file("").length);
        assertEquals(6, redo.pool.dropStatistics().buffersDropped);
        assertEquals(1, redo.pool.dropStatistics().calls, "all forks in one call");
    }

    @Test
    void onlyTheForksThatTheFlagsNameAreCut() {
        fill(10);
        truncate(4, StorageRecords.TRUNCATE_HEAP);
        assertEquals(4, redo.relation.nblocks(ForkNumber.MAIN));
        assertEquals(10, freeSpaceMap.recordedCategory(redo.pool, redo.relation, 9));
        assertEquals(VisibilityMap.VALID_BITS, visibilityMap.status(redo.pool, redo.relation, 9));
        truncate(2, StorageRecords.TRUNCATE_VM);
        assertEquals(4, redo.relation.nblocks(ForkNumber.MAIN));
        assertEquals(0, visibilityMap.status(redo.pool, redo.relation, 9));
    }

    @Test
    void truncationToNothingLeavesTheUpperPagesOfTheFreeSpaceMap() {
        fill(10);
        truncate(0, 7);
        assertEquals(0, redo.file("").length);
        assertEquals(2 * 8192, redo.file("_fsm").length);
        assertEquals(0, redo.file("_vm").length);
    }

    @Test
    @DisplayName(
            "C26 3: a truncation, first of all records, of a relation that is gone makes an empty file")
    void truncateMakesARelationThatIsGone() {
        truncate(3, 7);
        assertTrue(redo.relation.exists(ForkNumber.MAIN));
        assertFalse(redo.relation.exists(ForkNumber.FSM));
    }

    @Test
    @DisplayName("C30: the minimum recovery point covers the truncation before any file shrinks")
    void theMinimumRecoveryPointIsMovedBeforeAnyFileShrinks() {
        fill(10);
        redo.pool.flushAll();
        List<Long> flushed = new ArrayList<>();
        redo.beforeShrinking =
                lsn -> {
                    assertEquals(10 * 8192, redo.file("").length);
                    assertEquals(3 * 8192, redo.file("_fsm").length);
                    flushed.add(lsn);
                };
        truncate(3, 7);
        assertEquals(3 * 8192, redo.file("").length);
        assertEquals(List.of(redo.record.endLsn()), flushed);
    }

    @Test
    @DisplayName("C26 1: a page missing from the tail that is cut is no error")
    void missingPagesOfTheTailAreForgotten() {
        create(0);
        redo.context.readExtended(
                RedoFixture.SPC,
                RedoFixture.DB,
                RedoFixture.REL,
                ForkNumber.MAIN,
                8,
                ReadMode.NORMAL);
        assertEquals(1, redo.context.missingPages());
        truncate(9, 7);
        assertEquals(1, redo.context.missingPages());
        truncate(8, 7);
        assertEquals(0, redo.context.missingPages());
    }

    @Test
    void damagedRecordsAreRefusedWithTheirLsn() {
        redo.begin(StorageRecords.RMID, StorageRecords.TRUNCATE, 0, RedoFixture.part(1, 2, 3));
        String message =
                assertThrows(DamagedDataException.class, () -> redo.apply(storage)).getMessage();
        assertTrue(message.contains("lsn=0/100028"), message);
        assertThrows(DamagedDataException.class, () -> create(4));
        assertThrows(DamagedDataException.class, () -> create(-1));
    }

    @Test
    void typesAreNamedAsPgWaldumpNamesThem() {
        assertEquals("CREATE", storage.identify(0x10));
        assertEquals("TRUNCATE", storage.identify(0x21));
        assertNull(storage.identify(0x30));
        assertFalse(storage.covers(0x30));
    }
}
