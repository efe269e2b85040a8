package org.pgkernel.bufmgr;

/**
 * What finding buffers costs, in nanoseconds, measured on a 2-core machine with cold caches; only
 * their ratio matters, and it only decides which of two right ways is taken. One probe of the
 * mapping table costs as much as 1,000 to 1,200 fingerprints in a pool that no cache holds (100 GB:
 * 13,107,200 buffers in 0.9 ms, a probe 80 ns), so lookups pay up to about NBuffers/1024 blocks. In
 * a pool whose metadata is in cache a probe is cheaper and the scan costs mostly its start (128 MB:
 * break-even near NBuffers/300).
 */
final class DropCosts {
    /**
     * Fingerprints beyond this number are not compared one by one but looked up in a set of bits.
     */
    static final int FINGERPRINTS_COMPARED = 16;

    private static final int SCAN_START_NANOS = 100;
    private static final int SCAN_BYTES_PER_NANO = 28;

    /** Each further fingerprint is compared with a block that is in cache. */
    private static final int COMPARE_BYTES_PER_NANO = 60;

    /** Two bytes looked up in a set of bits: 0.8 ns. */
    private static final int SET_BYTES_PER_10_NANOS = 25;

    private static final int PROBE_NANOS = 80;
    private static final int CACHED_PROBE_NANOS = 25;

    /** A block of fingerprints that holds one is looked through word by word. */
    private static final int HELD_BLOCK_NANOS = 100;

    /** A word of the dirty bitmap that is not 0. */
    private static final int DIRTY_WORD_NANOS = 10;

    /** State word and tag of a dirty buffer. */
    private static final int DIRTY_BUFFER_NANOS = 60;

    /** Tags, states and chains of so many buffers, 32 bytes each, are in a cache of 2 MiB. */
    private static final int CACHED_BUFFERS = 1 << 16;

    /**
     * A scan that looks too dear to avoid may still be avoided by this part of its cost in lookups:
     * see {@link AdaptiveDropper}.
     */
    private static final int TRIAL_DIVISOR = 16;

    private final int probeNanos;

    DropCosts(int nbuffers) {
        probeNanos = nbuffers <= CACHED_BUFFERS ? CACHED_PROBE_NANOS : PROBE_NANOS;
    }

    long lookups(long probes) {
        return probes * probeNanos;
    }

    /**
     * @param pages to be found, spread evenly; each is then looked up all the same, to be taken out
     *     of its chain
     */
    long scan(int buffers, int fingerprints, long pages) {
        long bytes = buffers * 2L;
        long heldBlocks = Math.min(pages, buffers / Fingerprints.BLOCK_BUFFERS);
        long nanos =
                SCAN_START_NANOS
                        + bytes / SCAN_BYTES_PER_NANO
                        + heldBlocks * HELD_BLOCK_NANOS
                        + pages * probeNanos;
        return fingerprints > FINGERPRINTS_COMPARED
                ? nanos + bytes * 10 / SET_BYTES_PER_10_NANOS
                : nanos + (fingerprints - 1) * bytes / COMPARE_BYTES_PER_NANO;
    }

    /**
     * Walking the dirty bitmap: its words that are not 0, and a tag and a state word for each bit.
     */
    long dirtyWalk(long words, long buffers) {
        return words * DIRTY_WORD_NANOS + buffers * DIRTY_BUFFER_NANOS;
    }

    /** {@link DirtyBitmap#estimate}, when so many groups are not empty. */
    long estimate(int groups) {
        return (long) Math.min(groups, DirtyBitmap.SAMPLED_GROUPS) * probeNanos;
    }

    /** Probes worth trying before a scan of this cost. */
    long trialProbes(long scanNanos) {
        return 1 + scanNanos / TRIAL_DIVISOR / probeNanos;
    }
}
