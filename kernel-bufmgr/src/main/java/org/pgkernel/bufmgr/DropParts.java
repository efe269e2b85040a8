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

    BufferReplacement replacement(
            BufferPoolOptions options, PoolMemory memory, BufferDescriptors descriptors) {
        return new BufferReplacement(
                memory, descriptors, policy(options, memory, descriptors), options.nbuffers());
    }

    ReplacementPolicy policy(
            BufferPoolOptions options, PoolMemory memory, BufferDescriptors descriptors) {
        int nbuffers = options.nbuffers();
        return switch (options.replacement()) {
            case CLOCK_SWEEP -> new ClockSweep(descriptors, nbuffers);
            case SIEVE -> new Sieve(memory, descriptors, nbuffers);
            case S3_FIFO -> new S3Fifo(memory, descriptors, nbuffers);
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
