package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.pgkernel.base.BufferTag;

class GhostTableTest {
    private static GhostTable table(int remembered) {
        return new GhostTable(new UnsafeBuffer(new byte[GhostTable.bytes(remembered)]), remembered);
    }

    private static int hash(int page) {
        return BufferTag.hash(1663, 1, 16384, 0, page);
    }

    @Test
    void aPageIsRememberedOnce() {
        GhostTable ghosts = table(100);
        assertFalse(ghosts.remove(hash(1)));
        ghosts.add(hash(1));
        ghosts.add(hash(1));
        assertTrue(ghosts.remove(hash(1)));
        assertFalse(ghosts.remove(hash(1)));
    }

    @Test
    void hashZeroIsAPageLikeAnother() {
        GhostTable ghosts = table(100);
        assertFalse(ghosts.remove(0));
        ghosts.add(0);
        assertTrue(ghosts.remove(0));
    }

    @ParameterizedTest
    @ValueSource(ints = {15, 58, 1000, 20_000})
    void theLastAreRememberedAndNoneBefore(int remembered) {
        GhostTable ghosts = table(remembered);
        int pages = 5 * remembered;
        for (int i = 0; i < pages; i++) {
            ghosts.add(hash(i));
        }
        int found = 0;
        for (int i = 0; i < pages; i++) {
            boolean there = ghosts.remove(hash(i));
            assertTrue(!there || i >= pages - remembered, "page " + i + " is too old");
            found += there ? 1 : 0;
        }
        // Buckets fill unevenly, so a few of the last are forgotten early.
        assertTrue(found >= remembered * 0.8, found + " of " + remembered);
    }

    @Test
    void theLastOneAddedIsNeverForgotten() {
        GhostTable ghosts = table(15);
        for (int i = 0; i < 100_000; i++) {
            ghosts.add(hash(i));
            if (i % 7 == 0) {
                assertTrue(ghosts.remove(hash(i)));
            }
        }
    }

    @Test
    void itTakesTwelveBytesForEachOrLittleMore() {
        assertEquals(12.0, GhostTable.bytes(1 << 20) / (double) (1 << 20), 0.1);
    }
}
