package org.pgkernel.heap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.agrona.collections.Long2LongHashMap;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** HEAP-9. */
final class ComboCommandIdsTest {
    @Test
    void aPairHasOneNumberAndANumberOnePair() {
        ComboCommandIds combos = new ComboCommandIds();
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 1000; i++) {
                assertEquals(i, combos.combine(i, i * 7));
            }
        }
        for (int i = 0; i < 1000; i++) {
            assertEquals(i, combos.cmin(i));
            assertEquals(i * 7, combos.cmax(i));
        }
        assertEquals(1000, combos.combine(-1, -2));
        assertEquals(-2, combos.cmax(1000));
        assertThrows(IllegalStateException.class, () -> combos.cmin(1001));
        combos.clear();
        assertThrows(IllegalStateException.class, () -> combos.cmin(0));
        assertEquals(0, combos.combine(5, 6));
    }

    @Test
    @DisplayName("R03: when the table cannot grow it is unchanged and the transaction goes on")
    void whenTheTableCannotGrowItIsUnchanged() {
        boolean[] fail = new boolean[2];
        Long2LongHashMap map =
                new Long2LongHashMap(-1) {
                    @Override
                    public long put(long key, long value) {
                        long old = super.put(key, value);
                        if (fail[0]) {
                            throw new OutOfMemoryError("planted");
                        }
                        return old;
                    }
                };
        ComboCommandIds combos =
                new ComboCommandIds(
                        map,
                        length -> {
                            if (fail[1]) {
                                throw new OutOfMemoryError("planted");
                            }
                            return new int[length];
                        });
        for (int i = 0; i < 64; i++) {
            if (i == 40) {
                fail[0] = true;
                assertThrows(OutOfMemoryError.class, () -> combos.combine(900, 901));
                fail[0] = false;
            }
            assertEquals(i, combos.combine(i, i + 1));
        }
        fail[1] = true;
        assertThrows(OutOfMemoryError.class, () -> combos.combine(900, 901));
        assertEquals(63, combos.combine(63, 64), "known pairs need no memory");
        assertEquals(41, combos.cmax(40));
        assertThrows(IllegalStateException.class, () -> combos.cmin(64));
        fail[1] = false;
        assertEquals(64, combos.combine(902, 903));
        assertEquals(65, combos.combine(900, 901));
        assertEquals(900, combos.cmin(65));
        assertEquals(903, combos.cmax(64));
    }
}
