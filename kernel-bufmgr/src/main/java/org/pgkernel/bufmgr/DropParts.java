package org.pgkernel.bufmgr;

/**
 * Puts the descriptors and the strategies of dropping and replacement together. Tests put faulty or
 * narrower parts in the place of these.
 */
class DropParts {
    static final int FINGERPRINT_BITS = 16;

    ResidencyTracker tracker(DropStrategy strategy, int nbuffers) {
        return switch (strategy) {
            case FULL_SCAN, LOOKUP -> Untracked.INSTANCE;
            case DLIST -> new BufferLists(nbuffers);
            case ADAPTIVE -> new ResidentForks(nbuffers, FINGERPRINT_BITS);
        };
    }

    BufferDescriptors descriptors(PoolMemory memory, DirtyBitmap dirty) {
        return new BufferDescriptors(memory, dirty);
    }

    /** Locks of the mapping table. */
    int partitions() {
        return BufferTable.PARTITIONS;
    }

    PinRetention retention(
            BufferPoolOptions options, BufferDescriptors descriptors, WaitTable cleanupWaits) {
        return new PinRetention(
                descriptors,
                cleanupWaits,
                switch (options.lookupStyle()) {
                    case OPTIMISTIC -> PinRetention.When.ON_CONTENTION;
                    case PARTITION_LOCK -> PinRetention.When.NEVER;
                });
    }

    BufferReplacement replacement(
            BufferPoolOptions options,
            PoolMemory memory,
            BufferDescriptors descriptors,
            PinRetention retention) {
        return new BufferReplacement(
                memory,
                descriptors,
                policy(options, memory, descriptors, retention),
                options.nbuffers());
    }

    ReplacementPolicy policy(
            BufferPoolOptions options,
            PoolMemory memory,
            BufferDescriptors descriptors,
            PinRetention retention) {
        int nbuffers = options.nbuffers();
        return switch (options.replacement()) {
            case CLOCK_SWEEP -> new ClockSweep(descriptors, retention, nbuffers);
            case SIEVE -> new Sieve(memory, descriptors, retention, nbuffers);
            case S3_FIFO -> new S3Fifo(memory, descriptors, retention, nbuffers);
        };
    }

    RelationDropper dropper(
            BufferPoolOptions options,
            ResidencyTracker tracker,
            BufferDescriptors descriptors,
            BufferAllocator allocator,
            BufferReplacement replacement) {
        FullScanDropper scan = new FullScanDropper(descriptors, allocator, options.nbuffers());
        return switch (options.strategy()) {
            case FULL_SCAN -> scan;
            case LOOKUP ->
                    new LookupDropper(
                            allocator, options.nbuffers() / options.lookupDivisor(), scan);
            case DLIST -> new ListDropper(descriptors, allocator, (BufferLists) tracker, scan);
            case ADAPTIVE ->
                    new AdaptiveDropper(
                            descriptors,
                            allocator,
                            replacement,
                            (ResidentForks) tracker,
                            new DropCosts(options.nbuffers()));
        };
    }

    RelationFlusher flusher(BufferPool pool, WriteOut out, DropCosts costs) {
        return new RelationFlusher(
                pool.descriptors,
                pool.dirty,
                pool.replacement,
                pool.allocator,
                out,
                pool.tracker,
                costs);
    }
}
