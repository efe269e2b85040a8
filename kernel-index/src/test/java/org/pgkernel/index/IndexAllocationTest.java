package org.pgkernel.index;

import static org.junit.jupiter.api.Assertions.*;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.index.BtreePages.Item;

class IndexAllocationTest {
    private static final int ROUNDS = 2_000;
    private static final long LIMIT = 2_000;

    /**
     * Bytes of the best run; interpreted code allocates what compiled code does not, so it is run
     * until it is compiled.
     */
    static long bytesOfWarm(Runnable round) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long end = System.nanoTime() + 15_000_000_000L;
        long best = Long.MAX_VALUE;
        do {
            long before = threads.getCurrentThreadAllocatedBytes();
            round.run();
            best = Math.min(best, threads.getCurrentThreadAllocatedBytes() - before);
        } while (best >= LIMIT && System.nanoTime() < end);
        return best;
    }

    @Test
    void pageChangesAllocateNothing() {
        UnsafeBuffer original = BtreePages.leaf();
        BtreePages.addHighKey(original, 1_000);
        BtreePages.add(original, new Item(1, List.of(0x10001L, 0x20001L, 0x40001L)));
        for (int i = 0; i < 50; i++) {
            BtreePages.add(original, new Item(2, List.of(0x50001L + i)));
        }
        UnsafeBuffer page = BtreePages.buffer();
        UnsafeBuffer copy = BtreePages.buffer();
        UnsafeBuffer insert = BtreePages.buffer();
        insert.putShort(0, (short) 2);
        UnsafeBuffer tuple = BtreePages.buffer();
        BtreePages.plain(tuple, 1, 0x30001L);
        insert.putBytes(2, tuple, 0, 16);
        UnsafeBuffer intervals = new UnsafeBuffer(new byte[4]);
        intervals.putShort(0, (short) 4);
        intervals.putShort(2, (short) 50);
        UnsafeBuffer deleted = new UnsafeBuffer(new byte[8]);
        for (int i = 0; i < 4; i++) {
            deleted.putShort(i * 2, (short) (10 + i * 3));
        }
        UnsafeBuffer main = new UnsafeBuffer(new byte[10]);
        main.putShort(4, (short) 20);
        main.putShort(6, (short) 10);
        int[] starts = new int[PageItems.MAX_LINE_POINTERS];
        BtreeInsertRedo inserts = new BtreeInsertRedo();
        BtreeDeleteRedo deletes = new BtreeDeleteRedo();
        BtreeSplitRedo splits = new BtreeSplitRedo();
        BtreeDedup dedup = new BtreeDedup();
        UnsafeBuffer splitData = BtreePages.buffer();
        splitData.putBytes(0, tuple, 0, 16);
        splitData.putBytes(16, tuple, 0, 16);
        long bytes =
                bytesOfWarm(
                        () -> {
                            for (int i = 0; i < ROUNDS; i++) {
                                page.putBytes(0, original, 0, Page.SIZE);
                                inserts.insertIntoPosting(page, 3, insert, 18);
                                splits.rebuildLeft(page, main, splitData, 32, true);
                                dedup.rebuild(page, copy, intervals, 1);
                                deletes.change(page, deleted, 8, 4, 0);
                                BtreePage.init(copy);
                                int upper = Page.upper(page);
                                int length = BtreePage.SPECIAL - upper;
                                tuple.putBytes(0, page, upper, length);
                                BtreeParts.restorePage(copy, tuple, length, starts);
                            }
                        });
        assertTrue(bytes < LIMIT, "bytes in " + ROUNDS + " rounds: " + bytes);
    }
}
