package org.pgkernel.cli.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.pgkernel.bufmgr.Replacement;

class OptimumTest {
    private static final int PAGES = 6;

    private static Trace trace(int... uses) {
        Trace.Page[] pages = new Trace.Page[PAGES];
        for (int i = 0; i < PAGES; i++) {
            pages[i] = new Trace.Page(1663, 5, 16384, 0, i);
        }
        return new Trace("t", pages, uses);
    }

    @Test
    void smallTracesHitAsOftenAsByHand() {
        // 0 and 1 are used again while 2 is in the pool; 3 and 4 come once.
        assertEquals(2, Optimum.hits(trace(0, 1, 2, 0, 1, 3, 4), 3));
        assertEquals(0, Optimum.hits(trace(0, 1, 2, 3, 4, 5), 6));
        assertEquals(5, Optimum.hits(trace(3, 3, 3, 3, 3, 3), 1));
    }

    /** Every choice of every victim is tried. */
    @Test
    void noOtherChoiceOfVictimsHitsMoreOften() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int run = 0; run < 300; run++) {
            int[] uses = random.ints(12, 0, PAGES).toArray();
            int size = 1 + random.nextInt(3);
            assertEquals(best(uses, 0, 0, size), Optimum.hits(trace(uses), size), "seed " + seed);
        }
    }

    /**
     * @param pool a bit for each page in it
     */
    private static int best(int[] uses, int at, int pool, int size) {
        if (at == uses.length) {
            return 0;
        }
        int page = 1 << uses[at];
        if ((pool & page) != 0) {
            return 1 + best(uses, at + 1, pool, size);
        }
        if (Integer.bitCount(pool) < size) {
            return best(uses, at + 1, pool | page, size);
        }
        int best = 0;
        for (int victim = 1; victim < 1 << PAGES; victim <<= 1) {
            if ((pool & victim) != 0) {
                best = Math.max(best, best(uses, at + 1, pool & ~victim | page, size));
            }
        }
        return best;
    }

    @Test
    void noPolicyHitsMoreOften() {
        for (GeneratedTrace generated : GeneratedTrace.values()) {
            Trace trace = generated.make(500, 20_000, 7);
            for (int buffers : new int[] {16, 50, 250, 1000}) {
                long most = Optimum.hits(trace, buffers);
                for (Replacement policy : Replacement.values()) {
                    long hits = ReplacementRun.of(trace, policy, buffers, false).hits();
                    assertTrue(hits <= most, generated + " " + policy + " " + buffers);
                    // With room for all, every use but each page's first is a hit.
                    if (buffers == 1000 && generated != GeneratedTrace.SCAN_RING) {
                        assertEquals(trace.length() - trace.footprint(), hits);
                    }
                }
            }
        }
    }
}
