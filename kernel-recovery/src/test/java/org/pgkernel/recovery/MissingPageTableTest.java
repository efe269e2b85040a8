package org.pgkernel.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.error.DamagedDataException;

class MissingPageTableTest {
    private final MissingPageTable table = new MissingPageTable();

    @Test
    @DisplayName(
            "C26 1: a page missing before consistency is forgotten when its relation is truncated below it")
    void truncationForgetsBlocksFromTheNewEndOn() {
        table.remember(1663, 5, 100, ForkNumber.MAIN, 4, false, 0x1000, false);
        table.remember(1663, 5, 100, ForkNumber.MAIN, 5, false, 0x1000, false);
        table.remember(1663, 5, 100, ForkNumber.FSM, 5, false, 0x1000, false);
        table.remember(1663, 5, 101, ForkNumber.MAIN, 5, false, 0x1000, false);
        table.forget(1663, 5, 100, ForkNumber.MAIN, 5);
        assertEquals(3, table.size());
        table.forget(1663, 5, 100, ForkNumber.MAIN, 0);
        assertEquals(2, table.size());
    }

    @Test
    void blockNumbersAreUnsigned() {
        table.remember(1663, 5, 100, ForkNumber.MAIN, 0x80000001, false, 0x1000, false);
        table.forget(1663, 5, 100, ForkNumber.MAIN, 7);
        assertTrue(table.isEmpty());
    }

    @Test
    @DisplayName("C26 1: dropping a database forgets its pages and no others")
    void droppingADatabaseForgetsItsPagesOnly() {
        table.remember(1663, 5, 100, ForkNumber.MAIN, 0, false, 0x1000, false);
        table.remember(1664, 0, 1260, ForkNumber.MAIN, 0, false, 0x1000, false);
        table.forgetDatabase(5);
        assertEquals(1, table.size());
    }

    @Test
    @DisplayName(
            "C26 2: what is left at the end stops recovery with a message that names the blocks")
    void whatIsLeftIsNamed() {
        table.remember(1663, 5, 100, ForkNumber.MAIN, 5, false, 0x1000, false);
        table.remember(1663, 5, 101, ForkNumber.VISIBILITY_MAP, 0, true, 0x2000, false);
        String message =
                assertThrows(DamagedDataException.class, () -> table.check(0x3000)).getMessage();
        assertTrue(
                message.contains(
                        "rel=1663/5/100 fork=MAIN block=5 does not exist (record ending at 0/1000)"),
                message);
        assertTrue(
                message.contains("rel=1663/5/101 fork=VISIBILITY_MAP block=0 is uninitialized"),
                message);
        assertTrue(message.endsWith("lsn=0/3000"), message);
    }

    @Test
    void aThousandMissingPagesMakeAShortMessage() {
        for (int i = 0; i < 1000; i++) {
            table.remember(1663, 5, 100, ForkNumber.MAIN, i, false, 0x1000, false);
        }
        String message =
                assertThrows(DamagedDataException.class, () -> table.check(0x3000)).getMessage();
        assertTrue(message.contains("and 990 more"), message);
    }

    @Test
    @DisplayName("C26 2: after consistency a missing page stops recovery at once")
    void afterConsistencyAMissingPageIsAnErrorAtOnce() {
        String message =
                assertThrows(
                                DamagedDataException.class,
                                () ->
                                        table.remember(
                                                1663,
                                                5,
                                                100,
                                                ForkNumber.MAIN,
                                                5,
                                                false,
                                                0x1000,
                                                true))
                        .getMessage();
        assertTrue(message.contains("rel=1663/5/100 fork=MAIN block=5"), message);
        assertTrue(table.isEmpty());
    }

    @Test
    void anEmptyTablePasses() {
        table.check(0x3000);
        assertTrue(table.isEmpty());
        assertFalse(table.size() > 0);
    }
}
