package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.VALID;

/**
 * A pool whose pages are never read, <strong>for comparing replacement policies</strong>: mapping
 * table, state words, free buffers, policy and rings are the very ones that a read uses, only the
 * page's bytes never come. Its searches for victims are timed. One thread at a time.
 */
public final class ReplacementTrial implements AutoCloseable {
    private final BufferPool pool;
    private TimedReplacement searches;

    /**
     * @param timed false: nothing is timed, so nothing but the work takes time
     */
    public ReplacementTrial(Replacement policy, int nbuffers, boolean timed) {
        BufferPoolOptions options =
                BufferPoolOptions.of(nbuffers)
                        .withChecksums(false)
                        .withStrategy(DropStrategy.FULL_SCAN)
                        .withReplacement(policy);
        DropParts parts =
                new DropParts() {
                    @Override
                    BufferReplacement replacement(
                            BufferPoolOptions options,
                            PoolMemory memory,
                            BufferDescriptors descriptors,
                            PinRetention retention) {
                        if (!timed) {
                            return super.replacement(options, memory, descriptors, retention);
                        }
                        searches =
                                new TimedReplacement(
                                        memory,
                                        descriptors,
                                        policy(options, memory, descriptors, retention),
                                        options.nbuffers());
                        return searches;
                    }
                };
        // No page is read or written, so there is no storage manager, and no gate is asked.
        pool = BufferPool.open(options, null, lsn -> {}, parts);
    }

    /**
     * Uses the page: pins and unpins it, having given it a buffer if it had none.
     *
     * @param ring the reader's own, or null
     * @return true when it was in the pool
     */
    public boolean use(int spc, int db, int rel, int fork, int block, BufferAccessStrategy ring) {
        int buffer = pool.allocator.allocate(spc, db, rel, fork, block, ring);
        boolean hit = buffer >= 0;
        if (!hit) {
            buffer = ~buffer;
            pool.io.terminate(buffer, false, VALID);
        }
        pool.allocator.unpin(buffer);
        return hit;
    }

    /** Searches for a victim so far: not those of free buffers, nor of a ring in itself. */
    public long victimSearches() {
        return searches == null ? 0 : searches.count;
    }

    /** What they took, the reading of the clock taken off. */
    public long victimNanos() {
        return searches == null ? 0 : searches.nanos();
    }

    @Override
    public void close() {
        pool.close();
    }

    private static final class TimedReplacement extends BufferReplacement {
        private static final int CALIBRATIONS = 100_000;
        private final int nbuffers;
        long count;
        private long nanos;

        TimedReplacement(
                PoolMemory memory,
                BufferDescriptors descriptors,
                ReplacementPolicy policy,
                int nbuffers) {
            super(memory, descriptors, policy, nbuffers);
            this.nbuffers = nbuffers;
        }

        @Override
        int victim(int hash) {
            if (highWater() < nbuffers) {
                return super.victim(hash);
            }
            long begin = System.nanoTime();
            int victim = super.victim(hash);
            nanos += System.nanoTime() - begin;
            count++;
            return victim;
        }

        long nanos() {
            return Math.max(0, nanos - Math.round(count * clockNanos()));
        }

        /**
         * What two readings of the clock are apart if nothing is between them: the least of ten.
         */
        private static double clockNanos() {
            double least = Double.MAX_VALUE;
            for (int i = 0; i < 10; i++) {
                long sum = 0;
                for (int k = 0; k < CALIBRATIONS; k++) {
                    long begin = System.nanoTime();
                    sum += System.nanoTime() - begin;
                }
                least = Math.min(least, (double) sum / CALIBRATIONS);
            }
            return least;
        }
    }
}
