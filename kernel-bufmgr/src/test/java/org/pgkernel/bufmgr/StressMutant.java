package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.JUST_DIRTIED;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.smgr.SmgrRelation;
import org.pgkernel.smgr.SyncRequests;

/** A fault in the pool, or around it, that the stress has to find. */
enum StressMutant {
    NONE(""),
    /** Now and then a page is written without asking the gate. */
    GATE_NOT_CALLED("WAL is durable up to"),
    /** A write that ends cleans its page, although a hint was set in it meanwhile. */
    DIRTY_CLEARED_THOUGH_CHANGED(""),
    /** Now and then a change does not make its page dirty. */
    DIRTY_NOT_SET(""),
    /** A write that failed cleans its page. */
    DIRTY_CLEARED_BY_A_FAILED_WRITE(""),
    /**
     * The drop of a relation leaves its first page in the pool. Whoever reads that block of the
     * next relation of the number, before the checks look, meets it.
     */
    DROP_LEAVES_A_BUFFER("left by a drop", "another page"),
    /** Now and then an operation forgets a pin. */
    PIN_LEFT("buffer leak: pin"),
    /** Now and then a written file is not queued for its sync. */
    SYNC_NOT_QUEUED("after a crash");

    private final List<String> evidence;

    StressMutant(String... evidence) {
        this.evidence = List.of(evidence);
    }

    /** True if this is how the fault should be told; pages that were lost are told in many ways. */
    boolean isToldBy(String what) {
        return evidence.stream().anyMatch(what::contains) && !what.contains("a thread does not");
    }

    private static boolean oneIn(int n) {
        return ThreadLocalRandom.current().nextInt(n) == 0;
    }

    /** True when the worker is to forget a pin now. */
    boolean forgetsPin() {
        return this == PIN_LEFT && oneIn(50);
    }

    DurabilityGate gate(StressWal wal) {
        if (this != GATE_NOT_CALLED) {
            return wal;
        }
        return lsn -> {
            if (!oneIn(20)) {
                wal.beforeWrite(lsn);
            }
        };
    }

    SyncRequests syncRequests(Disk disk, String directory) {
        if (this != SYNC_NOT_QUEUED) {
            return new SyncRequests(disk, directory);
        }
        return new SyncRequests(disk, directory) {
            @Override
            public void register(int spcOid, int dbOid, int relNumber, int fork, int segment) {
                if (!oneIn(4)) {
                    super.register(spcOid, dbOid, relNumber, fork, segment);
                }
            }
        };
    }

    DropParts parts(boolean retaining) {
        return new Parts(this, retaining);
    }

    private static final class Parts extends RetainingParts {
        private final StressMutant mutant;

        Parts(StressMutant mutant, boolean retaining) {
            super(retaining);
            this.mutant = mutant;
        }

        @Override
        BufferDescriptors descriptors(PoolMemory memory, DirtyBitmap dirty) {
            return switch (mutant) {
                case DIRTY_CLEARED_THOUGH_CHANGED, DIRTY_NOT_SET, DIRTY_CLEARED_BY_A_FAILED_WRITE ->
                        new Descriptors(memory, dirty, mutant);
                default -> super.descriptors(memory, dirty);
            };
        }

        @Override
        RelationDropper dropper(
                BufferPoolOptions options,
                ResidencyTracker tracker,
                BufferDescriptors descriptors,
                BufferAllocator allocator,
                BufferReplacement replacement) {
            return mutant == DROP_LEAVES_A_BUFFER
                    ? new LeavesOne(descriptors, allocator, options.nbuffers())
                    : super.dropper(options, tracker, descriptors, allocator, replacement);
        }
    }

    private static final class LeavesOne extends FullScanDropper {
        LeavesOne(BufferDescriptors descriptors, BufferAllocator allocator, int nbuffers) {
            super(descriptors, allocator, nbuffers);
        }

        @Override
        public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
            ForkNumber[] forks = {ForkNumber.MAIN, ForkNumber.FSM};
            return count == 1
                    ? dropForks(relations[0], forks, new int[] {1, 0}, 2, work)
                    : super.dropRelations(relations, count, work);
        }
    }

    private static final class Descriptors extends BufferDescriptors {
        private final StressMutant mutant;

        Descriptors(PoolMemory memory, DirtyBitmap dirty, StressMutant mutant) {
            super(memory, dirty);
            this.mutant = mutant;
        }

        @Override
        int lockHeader(int buffer) {
            int state = super.lockHeader(buffer);
            return mutant == DIRTY_CLEARED_THOUGH_CHANGED ? state & ~JUST_DIRTIED : state;
        }

        @Override
        void unlockHeader(int buffer, int state) {
            if (mutant == DIRTY_CLEARED_BY_A_FAILED_WRITE
                    && BufferState.has(state, BufferState.IO_ERROR | BufferState.DIRTY)) {
                cleanAndUnlockHeader(buffer, state & ~BufferState.IO_ERROR);
            } else {
                super.unlockHeader(buffer, state);
            }
        }

        @Override
        void markDirty(int buffer) {
            if (mutant != DIRTY_NOT_SET || !oneIn(100)) {
                super.markDirty(buffer);
            }
        }
    }
}
