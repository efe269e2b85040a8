package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class FsmAddressTest {
    @Test
    void slotsOfAPage() {
        assertEquals(4069, FsmPage.SLOTS);
        assertEquals(8164, FsmPage.NODES);
    }

    @Test
    void theForkHoldsTheTreeDepthFirst() {
        assertEquals(0, FsmAddress.block(2, 0));
        assertEquals(1, FsmAddress.block(1, 0));
        assertEquals(2, FsmAddress.block(0, 0));
        assertEquals(3, FsmAddress.block(0, 1));
        assertEquals(2 + 4068, FsmAddress.block(0, 4068));
        assertEquals(4071, FsmAddress.block(1, 1));
        assertEquals(4072, FsmAddress.block(0, 4069));
    }

    @Test
    void noTwoPagesShareABlock() {
        Map<Integer, String> seen = new HashMap<>();
        seen.put(FsmAddress.block(2, 0), "root");
        for (int middle = 0; middle < 4; middle++) {
            assertEquals(null, seen.put(FsmAddress.block(1, middle), "middle " + middle));
        }
        for (int leaf = 0; leaf < 4 * 4069; leaf++) {
            assertEquals(null, seen.put(FsmAddress.block(0, leaf), "leaf " + leaf));
        }
        for (int block = 0; block < seen.size(); block++) {
            assertTrue(seen.containsKey(block), "block " + block + " is unused");
        }
    }

    @Test
    void heapBlocksAreUnsigned() {
        int last = 0xFFFFFFFE;
        assertEquals((int) (4294967294L / 4069), FsmAddress.leafOf(last));
        assertEquals((int) (4294967294L % 4069), FsmAddress.slotOf(last));
    }

    @Test
    void parentAndChildAreInverse() {
        for (int page = 0; page < 3; page++) {
            for (int slot = 0; slot < FsmPage.SLOTS; slot += 17) {
                int child = FsmAddress.childPage(page, slot);
                assertEquals(page, FsmAddress.parentPage(child));
                assertEquals(slot, FsmAddress.parentSlot(child));
            }
        }
    }

    @Test
    void categoriesRoundDownAndTheTopOneIsTheLargestTuple() {
        assertEquals(0, FreeSpaceMap.category(0));
        assertEquals(0, FreeSpaceMap.category(31));
        assertEquals(1, FreeSpaceMap.category(32));
        assertEquals(254, FreeSpaceMap.category(8128));
        assertEquals(254, FreeSpaceMap.category(8159));
        assertEquals(255, FreeSpaceMap.category(8160));
        assertEquals(255, FreeSpaceMap.category(8164));
        for (int c = 0; c < 256; c++) {
            assertEquals(c, FreeSpaceMap.category(FreeSpaceMap.freeBytes(c)));
        }
    }
}
