package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** BASE-9. */
final class LockRankTest {
    @AfterEach
    void nothingIsLeftBehind() {
        for (LockRank rank : LockRank.values()) {
            assertFalse(rank.isHeld(), rank.toString());
        }
    }

    @Test
    void locksAreTakenInOrder() {
        // The leaves exclude each other: one of them at the end of every chain.
        LockRank[] ranks = LockRank.values();
        int firstLeaf = LockRank.HEADER.ordinal();
        for (int leaf = firstLeaf; leaf < ranks.length; leaf++) {
            for (int i = 0; i < firstLeaf; i++) {
                assertTrue(ranks[i].enter());
            }
            assertTrue(ranks[leaf].enter());
            assertTrue(ranks[leaf].leave());
            for (int i = 0; i < firstLeaf; i++) {
                assertTrue(ranks[i].leave());
            }
        }
    }

    @Test
    void lockThatRanksBeforeAHeldOneIsOurBug() {
        LockRank.HEADER.enter();
        AssertionError e = assertThrows(AssertionError.class, LockRank.MAPPING_PARTITION::enter);
        assertTrue(
                e.getMessage().contains("MAPPING_PARTITION taken while holding HEADER"),
                e.getMessage());
        LockRank.HEADER.leave();
        LockRank.MAPPING_PARTITION.enter();
        LockRank.MAPPING_PARTITION.leave();
    }

    @Test
    void everyPairOutOfOrderIsCaught() {
        for (LockRank held : LockRank.values()) {
            for (LockRank taken : LockRank.values()) {
                if (taken.ordinal() < held.ordinal()) {
                    held.enter();
                    assertThrows(AssertionError.class, taken::enter, held + ", then " + taken);
                    held.leave();
                }
            }
        }
    }

    @Test
    void onlyContentReadsAndPartitionsAreHeldSeveralAtATime() {
        Set<LockRank> several =
                EnumSet.of(LockRank.CONTENT, LockRank.READ_IN_PROGRESS, LockRank.MAPPING_PARTITION);
        for (LockRank rank : LockRank.values()) {
            rank.enter();
            if (several.contains(rank)) {
                rank.enter();
                rank.leave();
                assertTrue(rank.isHeld());
            } else {
                assertThrows(AssertionError.class, rank::enter, rank.toString());
            }
            rank.leave();
        }
    }

    @Test
    void underALeafNothingIsTaken() {
        for (LockRank leaf : EnumSet.range(LockRank.HEADER, LockRank.CONTROL_FILE)) {
            leaf.enter();
            for (LockRank rank : LockRank.values()) {
                assertThrows(AssertionError.class, rank::enter, leaf + ", then " + rank);
                assertThrows(AssertionError.class, rank::enterTried, leaf + ", then " + rank);
            }
            leaf.leave();
        }
    }

    @Test
    void aTryMayGoAgainstTheOrderSinceItDoesNotWait() {
        LockRank.RELATION_EXTENSION.enter();
        assertThrows(AssertionError.class, LockRank.CONTENT::enter);
        LockRank.CONTENT.enterTried();
        LockRank.CONTENT.leave();
        LockRank.RELATION_EXTENSION.leave();
    }

    @Test
    void unheldLockCannotBeGivenUp() {
        assertThrows(AssertionError.class, LockRank.CONTENT::leave);
    }

    @Test
    void ranksAreOfTheThread() throws Exception {
        LockRank.CONTROL_FILE.enter();
        Thread other =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    LockRank.CONTENT.enter();
                                    LockRank.CONTENT.leave();
                                });
        other.join();
        LockRank.CONTROL_FILE.leave();
    }
}
