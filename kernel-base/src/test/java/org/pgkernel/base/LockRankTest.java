package org.pgkernel.base;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
        for (LockRank rank : LockRank.values()) {
            assertTrue(rank.enter());
        }
        for (LockRank rank : LockRank.values()) {
            assertTrue(rank.leave());
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
    void onlyContentAndPartitionsAreHeldSeveralAtATime() {
        LockRank.CONTENT.enter();
        LockRank.CONTENT.enter();
        LockRank.CONTENT.leave();
        assertTrue(LockRank.CONTENT.isHeld());
        LockRank.CONTENT.leave();
        LockRank.HEADER.enter();
        assertThrows(AssertionError.class, LockRank.HEADER::enter);
        LockRank.HEADER.leave();
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
