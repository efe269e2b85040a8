package org.pgkernel.cli.bench;

import java.util.Arrays;
import java.util.BitSet;

/**
 * The hits that no policy can exceed: of the pages in the pool, the one whose next use is farthest
 * away makes room. (L. A. Belady, 1966: MIN.)
 */
final class Optimum {
    private Optimum() {}

    /** Hits of a trace in a pool of this size that is empty at first. */
    static long hits(Trace trace, int nbuffers) {
        int length = trace.length();
        int[] next = nextUses(trace);
        // The next use of each page in the pool. No two pages are used at one place; those that
        // are never used again come after all places, by their numbers.
        BitSet nextUses = new BitSet(length + trace.numbers());
        boolean[] resident = new boolean[trace.numbers()];
        int free = nbuffers;
        long hits = 0;
        for (int at = 0; at < length; at++) {
            int page = trace.use(at);
            if (resident[page]) {
                hits++;
                nextUses.clear(at);
            } else if (free > 0) {
                free--;
            } else {
                int farthest = nextUses.previousSetBit(nextUses.length() - 1);
                nextUses.clear(farthest);
                resident[farthest < length ? trace.use(farthest) : farthest - length] = false;
            }
            resident[page] = true;
            nextUses.set(next[at]);
        }
        return hits;
    }

    /** For each use the place of the page's next one; after all places, by number, if none. */
    private static int[] nextUses(Trace trace) {
        int length = trace.length();
        int[] next = new int[length];
        int[] last = new int[trace.numbers()];
        Arrays.setAll(last, page -> length + page);
        for (int at = length - 1; at >= 0; at--) {
            int page = trace.use(at);
            next[at] = last[page];
            last[page] = at;
        }
        return next;
    }
}
