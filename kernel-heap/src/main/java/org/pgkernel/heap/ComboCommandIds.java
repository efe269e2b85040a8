package org.pgkernel.heap;

import java.util.function.IntFunction;
import org.agrona.collections.Long2LongHashMap;

/**
 * One transaction's pairs of inserting and deleting command for rows that it both made and removed:
 * the tuple has room for one number only, so it carries the pair's index here. One thread.
 *
 * <p>HEAP-9 (R03): when memory for a new pair cannot be had, the error goes to the caller and all
 * is as before: arrays grow before anything is entered, and a pair that the map could not take is
 * taken out again. (PostgreSQL: combocid.c.)
 */
public final class ComboCommandIds {
    private static final int FIRST_CAPACITY = 64;
    private static final long NONE = -1;

    private final Long2LongHashMap byPair;
    private final IntFunction<int[]> memory;
    private int[] cmins;
    private int[] cmaxs;
    private int used;

    public ComboCommandIds() {
        this(new Long2LongHashMap(NONE), int[]::new);
    }

    ComboCommandIds(Long2LongHashMap byPair, IntFunction<int[]> memory) {
        this.byPair = byPair;
        this.memory = memory;
        cmins = memory.apply(FIRST_CAPACITY);
        cmaxs = memory.apply(FIRST_CAPACITY);
    }

    /** The pair's number; the same for the same pair. (PostgreSQL: GetComboCommandId.) */
    public int combine(int cmin, int cmax) {
        long pair = (long) cmin << 32 | cmax & 0xFFFFFFFFL;
        long known = byPair.get(pair);
        if (known != NONE) {
            return (int) known;
        }
        if (used == cmins.length) {
            grow();
        }
        try {
            byPair.put(pair, used);
        } catch (OutOfMemoryError e) {
            byPair.remove(pair);
            throw e;
        }
        cmins[used] = cmin;
        cmaxs[used] = cmax;
        return used++;
    }

    private void grow() {
        int[] newCmins = memory.apply(2 * used);
        int[] newCmaxs = memory.apply(2 * used);
        System.arraycopy(cmins, 0, newCmins, 0, used);
        System.arraycopy(cmaxs, 0, newCmaxs, 0, used);
        cmins = newCmins;
        cmaxs = newCmaxs;
    }

    public int cmin(int combo) {
        check(combo);
        return cmins[combo];
    }

    public int cmax(int combo) {
        check(combo);
        return cmaxs[combo];
    }

    private void check(int combo) {
        if (combo < 0 || combo >= used) {
            throw new IllegalStateException("combo command id " + combo + " of " + used);
        }
    }

    /** At the end of the transaction. */
    public void clear() {
        byPair.clear();
        used = 0;
    }
}
