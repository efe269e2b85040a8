package org.pgkernel.wal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;

class RecordInsertTest {
    private final WalLog log = new WalLog(1 << 16);
    private final WalInserter wal = log.inserter(1 << 16);
    private final RecordInsert insert = new RecordInsert(wal);
    private final UnsafeBuffer bytes = new UnsafeBuffer(new byte[64]);

    @AfterEach
    void removeLog() {
        wal.close();
        log.close();
    }

    private static UnsafeBuffer page(int seed) {
        UnsafeBuffer page = new UnsafeBuffer(new byte[Page.SIZE]);
        Page.init(page, 0);
        page.putInt(Page.SIZE - 4, seed);
        Page.setUpper(page, Page.SIZE - 8);
        return page;
    }

    private RecordInsert begin() {
        return insert.begin(10, 0x30, 700).data(bytes, 0, 8);
    }

    private void page(int id, UnsafeBuffer page, int flags) {
        insert.page(id, 1663, 5, 100 + id, ForkNumber.MAIN, id, page, flags)
                .pageData(id, bytes, 0, 20);
    }

    private List<WalLog.Copy> read() {
        wal.flush(wal.insertLsn());
        return log.read();
    }

    private void logAndStamp(UnsafeBuffer page) {
        begin();
        page(0, page, RecordInsert.STANDARD);
        Page.setLsn(page, insert.insert());
    }

    /** WAL-15: the first change after the redo point has the image, the second has the data. */
    @Test
    void theFirstRecordAfterTheRedoPointHoldsThePageAndTheNextOnesTheChange() {
        UnsafeBuffer page = page(77);
        wal.moveRedo();
        logAndStamp(page);
        assertTrue(insert.hasImage(0));
        logAndStamp(page);
        assertFalse(insert.hasImage(0));
        wal.moveRedo();
        logAndStamp(page);
        List<WalLog.Copy> read = read();
        for (int i : new int[] {0, 2}) {
            WalLog.Block block = read.get(i).blocks().get(0);
            assertNotNull(block.image());
            assertEquals(0, block.data().limit(), "the image says it all");
            assertEquals(77, new UnsafeBuffer(block.image()).getInt(Page.SIZE - 4));
        }
        WalLog.Block block = read.get(1).blocks().get(0);
        assertNull(block.image());
        assertEquals(ByteBuffer.wrap(new byte[20]), block.data());
        assertEquals(read.get(2).lsn(), insert.startLsn());
        assertEquals(Page.lsn(page), read.get(2).end());
    }

    @Test
    void flagsDecideAgainstThePagesLsn() {
        UnsafeBuffer old = page(1);
        UnsafeBuffer young = page(2);
        Page.setLsn(young, 1L << 40);
        wal.moveRedo();
        begin();
        page(0, young, RecordInsert.FORCE_IMAGE | RecordInsert.KEEP_DATA);
        page(1, old, RecordInsert.NO_IMAGE);
        page(2, old, RecordInsert.WILL_INIT | RecordInsert.STANDARD);
        page(3, old, RecordInsert.STANDARD | RecordInsert.KEEP_DATA);
        page(4, young, RecordInsert.STANDARD);
        page(7, old, 0);
        insert.insert();
        var blocks = read().getLast().blocks();
        assertEquals(6, blocks.size());
        assertNotNull(blocks.get(0).image());
        assertEquals(20, blocks.get(0).data().limit());
        assertNull(blocks.get(1).image());
        assertFalse(blocks.get(1).willInit());
        assertNull(blocks.get(2).image());
        assertTrue(blocks.get(2).willInit());
        assertEquals(20, blocks.get(2).data().limit());
        assertNotNull(blocks.get(3).image());
        assertEquals(20, blocks.get(3).data().limit());
        assertNull(blocks.get(4).image());
        assertNotNull(blocks.get(7).image());
        assertEquals(107, blocks.get(7).rel());
        assertEquals(7, blocks.get(7).block());
    }

    /** The redo point moves between the look at the page and the insertion, once for each try. */
    @Test
    void redoPointThatMovesUnderwayIsSeen() {
        UnsafeBuffer page = page(5);
        int[] moves = {0};
        WalInserter.Parts moving =
                new WalInserter.Parts() {
                    @Override
                    InsertionSlots slots(InsertReservation reservation) {
                        return new InsertionSlots(reservation, 16) {
                            @Override
                            int acquire() {
                                if (moves[0] > 0) {
                                    moves[0]--;
                                    moved.moveRedo();
                                }
                                return super.acquire();
                            }
                        };
                    }
                };
        try (WalLog other = new WalLog(1 << 16);
                WalInserter inserter = other.inserter(other.start, 0, 1 << 16, moving)) {
            moved = inserter;
            RecordInsert record = new RecordInsert(inserter);
            record.begin(10, 0, 0).page(0, 1, 2, 3, ForkNumber.MAIN, 0, page, 0);
            Page.setLsn(page, record.insert());
            moves[0] = 1;
            record.begin(10, 0, 0).page(0, 1, 2, 3, ForkNumber.MAIN, 0, page, 0);
            record.pageData(0, bytes, 0, 4);
            inserter.flush(record.insert());
            assertEquals(0, moves[0]);
            assertTrue(record.hasImage(0));
            List<WalLog.Copy> read = other.read();
            assertEquals(2, read.size(), "the first try left nothing");
            assertEquals(0, read.get(1).blocks().get(0).data().limit());
        }
    }

    private WalInserter moved;

    @Test
    void withFullPageWritesOffThereAreNoImagesUntilTheyAreOnAgain() {
        UnsafeBuffer page = page(6);
        wal.moveRedo();
        wal.fullPageWrites(false);
        logAndStamp(page);
        assertFalse(insert.hasImage(0));
        wal.moveRedo();
        logAndStamp(page);
        assertFalse(insert.hasImage(0));
        wal.moveRedo();
        wal.fullPageWrites(true);
        logAndStamp(page);
        assertTrue(insert.hasImage(0));
    }

    @Test
    void insertingAllocatesNothing() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        UnsafeBuffer page = page(8);
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 20; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 10; i++) {
                logAndStamp(page);
                if (i == 5) {
                    wal.moveRedo();
                }
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertEquals(0, least);
    }
}
