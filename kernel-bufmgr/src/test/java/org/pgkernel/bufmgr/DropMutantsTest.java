package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.smgr.ForkSize;
import org.pgkernel.smgr.SizePolicy;
import org.pgkernel.smgr.SmgrRelation;

/**
 * Strategies with a fault each: the check of {@link DropStrategyProperties} finds every one of
 * them, by what the drops left or took, not by looking at the strategy's own bookkeeping.
 */
@Timeout(120)
class DropMutantsTest {
    private static final int RUNS = 60;

    /** What is wrong; {@link Parts} does it. */
    enum Mutant {
        SCAN_STARTS_ONE_BLOCK_LATE(DropStrategy.FULL_SCAN),
        SCAN_FORGETS_A_FORK(DropStrategy.FULL_SCAN),
        SCAN_FORGETS_THE_LAST_RELATION(DropStrategy.FULL_SCAN),
        SCAN_FORGETS_THE_FIRST_BUFFER(DropStrategy.FULL_SCAN),
        SCAN_IGNORES_THE_FIRST_BLOCK(DropStrategy.FULL_SCAN),

        LOOKUP_STOPS_ONE_BLOCK_EARLY(DropStrategy.LOOKUP),
        LOOKUP_TAKES_UNKNOWN_FOR_EMPTY(DropStrategy.LOOKUP),
        LOOKUP_TRUSTS_A_STALE_SIZE(DropStrategy.LOOKUP),
        LOOKUP_FORGETS_A_FORK(DropStrategy.LOOKUP),
        LOOKUP_STARTS_ONE_BLOCK_LATE(DropStrategy.LOOKUP),

        LIST_NODE_NOT_UNLINKED(DropStrategy.DLIST),
        LIST_FORGETS_A_FORK(DropStrategy.DLIST),
        LIST_WALK_MISSES_THE_LAST(DropStrategy.DLIST),
        LIST_WALK_STARTS_ONE_BLOCK_LATE(DropStrategy.DLIST),
        LIST_WALK_IGNORES_THE_FIRST_BLOCK(DropStrategy.DLIST),

        COUNT_ONE_TOO_LOW(DropStrategy.ADAPTIVE),
        COUNT_FORGETS_A_FORK(DropStrategy.ADAPTIVE),
        END_ONE_TOO_LOW(DropStrategy.ADAPTIVE),
        END_LOWERED_TOO_FAR(DropStrategy.ADAPTIVE),
        COLLISION_NOT_HANDLED(DropStrategy.ADAPTIVE),
        FINGERPRINT_NOT_SET(DropStrategy.ADAPTIVE),
        DATABASE_LIST_MISSES_A_FORK(DropStrategy.ADAPTIVE),
        TRUNCATION_STARTS_ONE_BLOCK_LATE(DropStrategy.ADAPTIVE),
        TRUNCATION_IGNORES_THE_FIRST_BLOCK(DropStrategy.ADAPTIVE);

        final DropStrategy strategy;

        Mutant(DropStrategy strategy) {
            this.strategy = strategy;
        }
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyMutantIsCaught(Mutant mutant) throws IOException {
        for (int seed = 0; seed < RUNS; seed++) {
            if (run(mutant.strategy, new Parts(mutant), seed) != null) {
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " runs");
    }

    /** The same runs pass without a fault, so it is the fault that is caught. */
    @ParameterizedTest
    @EnumSource(DropStrategy.class)
    void strategiesWithoutAFaultAreNot(DropStrategy strategy) throws IOException {
        for (int seed = 0; seed < RUNS / 3; seed++) {
            Throwable found = run(strategy, new DropStrategyProperties.NarrowFingerprints(2), seed);
            int failed = seed;
            assertNull(found, () -> "seed " + failed + ": " + found);
        }
    }

    /**
     * A fault that is only visible when a list or a count itself is inspected is caught by that:
     * BUF-9 to BUF-12.
     */
    @Test
    void everyStrategyHasMutants() {
        for (DropStrategy strategy : DropStrategy.values()) {
            long mutants =
                    Arrays.stream(Mutant.values()).filter(m -> m.strategy == strategy).count();
            if (mutants < 3) {
                fail(strategy + " has " + mutants + " mutants");
            }
        }
    }

    /**
     * In a thread of its own: a fault may be found while locks are held, and which locks a thread
     * holds is noted for it.
     *
     * @return what the check found, or null
     */
    private static Throwable run(DropStrategy strategy, DropParts parts, int seed)
            throws IOException {
        FutureTask<Throwable> run = new FutureTask<>(() -> runHere(strategy, parts, seed));
        new Thread(run).start();
        try {
            return run.get();
        } catch (ExecutionException | InterruptedException e) {
            throw new IOException(e);
        }
    }

    private static Throwable runHere(DropStrategy strategy, DropParts parts, int seed)
            throws IOException {
        Path directory = Files.createTempDirectory("mutant");
        int[] pools = {64, 256, 1024, 4096};
        BufferPoolOptions options =
                BufferPoolOptions.of(pools[seed % pools.length]).withStrategy(strategy);
        SizePolicy policy = SizePolicy.values()[seed / 4 % 2];
        try (DropRun run = new DropRun(directory, options, policy, parts)) {
            run.inspectTracker = false;
            for (DropStep step : DropStep.random(seed, strategy != DropStrategy.LOOKUP)) {
                run.apply(step);
                run.check();
            }
            run.finish();
            return null;
        } catch (AssertionError | RuntimeException e) {
            return e;
        } finally {
            DropRun.delete(directory);
        }
    }

    private static int[] plus(int[] blocks, int count, int more) {
        int[] changed = blocks.clone();
        for (int i = 0; i < count; i++) {
            changed[i] += more;
        }
        return changed;
    }

    private static final class Parts extends DropParts {
        private final Mutant mutant;

        Parts(Mutant mutant) {
            this.mutant = mutant;
        }

        @Override
        ResidencyTracker tracker(DropStrategy strategy, int nbuffers) {
            return switch (strategy) {
                case FULL_SCAN, LOOKUP -> super.tracker(strategy, nbuffers);
                case DLIST -> new FaultyLists(nbuffers, mutant);
                case ADAPTIVE -> new FaultyForks(nbuffers, mutant);
            };
        }

        @Override
        RelationDropper dropper(
                BufferPoolOptions options,
                ResidencyTracker tracker,
                BufferDescriptors descriptors,
                BufferAllocator allocator,
                BufferReplacement replacement) {
            FullScanDropper scan = new FullScanDropper(descriptors, allocator, options.nbuffers());
            return switch (options.strategy()) {
                case FULL_SCAN ->
                        new FaultyScan(descriptors, allocator, options.nbuffers(), mutant);
                case LOOKUP ->
                        new FaultyLookup(
                                allocator,
                                options.nbuffers() / options.lookupDivisor(),
                                scan,
                                mutant);
                case DLIST ->
                        new FaultyWalk(descriptors, allocator, (BufferLists) tracker, scan, mutant);
                case ADAPTIVE ->
                        new FaultyAdaptive(
                                descriptors,
                                allocator,
                                replacement,
                                (ResidentForks) tracker,
                                options.nbuffers(),
                                mutant);
            };
        }
    }

    private static final class FaultyScan extends FullScanDropper {
        private final Mutant mutant;
        private final BufferDescriptors descriptors;

        FaultyScan(
                BufferDescriptors descriptors,
                BufferAllocator allocator,
                int nbuffers,
                Mutant mutant) {
            super(descriptors, allocator, nbuffers);
            this.mutant = mutant;
            this.descriptors = descriptors;
        }

        @Override
        boolean isFrom(int buffer, ForkNumber[] forks, int[] firstBlocks, int count) {
            return switch (mutant) {
                case SCAN_STARTS_ONE_BLOCK_LATE ->
                        super.isFrom(buffer, forks, plus(firstBlocks, count, 1), count);
                case SCAN_FORGETS_A_FORK ->
                        super.isFrom(buffer, forks, firstBlocks, Math.max(1, count - 1));
                case SCAN_FORGETS_THE_FIRST_BUFFER ->
                        buffer != 0 && super.isFrom(buffer, forks, firstBlocks, count);
                case SCAN_IGNORES_THE_FIRST_BLOCK ->
                        super.isFrom(buffer, forks, new int[count], count);
                default -> super.isFrom(buffer, forks, firstBlocks, count);
            };
        }

        @Override
        public int dropRelations(SmgrRelation[] relations, int count, DropWork work) {
            int dropped =
                    mutant == Mutant.SCAN_FORGETS_THE_LAST_RELATION && count > 1
                            ? count - 1
                            : count;
            return super.dropRelations(relations, dropped, work);
        }
    }

    private static final class FaultyLookup extends LookupDropper {
        private final Mutant mutant;

        FaultyLookup(
                BufferAllocator allocator, long threshold, FullScanDropper scan, Mutant mutant) {
            super(allocator, threshold, scan);
            this.mutant = mutant;
        }

        @Override
        int blocks(SmgrRelation relation, ForkNumber fork) {
            int blocks = super.blocks(relation, fork);
            return switch (mutant) {
                case LOOKUP_STOPS_ONE_BLOCK_EARLY ->
                        blocks == UNKNOWN || blocks == 0 ? blocks : blocks - 1;
                case LOOKUP_TAKES_UNKNOWN_FOR_EMPTY -> blocks == UNKNOWN ? 0 : blocks;
                case LOOKUP_TRUSTS_A_STALE_SIZE -> {
                    long size = relation.rememberedSize(fork);
                    yield blocks == UNKNOWN && ForkSize.isKnown(size)
                            ? ForkSize.blocks(size)
                            : blocks;
                }
                case LOOKUP_FORGETS_A_FORK -> fork == ForkNumber.FSM ? 0 : blocks;
                default -> blocks;
            };
        }

        @Override
        int dropFork(SmgrRelation relation, ForkNumber fork, int first, int blocks, DropWork work) {
            int from = mutant == Mutant.LOOKUP_STARTS_ONE_BLOCK_LATE ? first + 1 : first;
            return super.dropFork(relation, fork, from, blocks, work);
        }
    }

    private static final class FaultyLists extends BufferLists {
        private final Mutant mutant;

        FaultyLists(int nbuffers, Mutant mutant) {
            super(nbuffers);
            this.mutant = mutant;
        }

        @Override
        public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
            if (mutant != Mutant.LIST_FORGETS_A_FORK || fork != 1) {
                super.mapped(buffer, spc, db, rel, fork, block);
            }
        }

        @Override
        public void unmapped(int buffer, int spc, int db, int rel, int fork) {
            if (mutant == Mutant.LIST_NODE_NOT_UNLINKED && buffer % 3 == 0
                    || mutant == Mutant.LIST_FORGETS_A_FORK && fork == 1) {
                return;
            }
            super.unmapped(buffer, spc, db, rel, fork);
        }

        @Override
        int copy(int spc, int db, int rel, int fork, DropWork work) {
            int count = super.copy(spc, db, rel, fork, work);
            return mutant == Mutant.LIST_WALK_MISSES_THE_LAST && count > 0 ? count - 1 : count;
        }
    }

    private static final class FaultyWalk extends ListDropper {
        private final Mutant mutant;

        FaultyWalk(
                BufferDescriptors descriptors,
                BufferAllocator allocator,
                BufferLists lists,
                FullScanDropper scan,
                Mutant mutant) {
            super(descriptors, allocator, lists, scan);
            this.mutant = mutant;
        }

        @Override
        public int dropForks(
                SmgrRelation relation,
                ForkNumber[] forks,
                int[] firstBlocks,
                int count,
                DropWork work) {
            int[] first =
                    switch (mutant) {
                        case LIST_WALK_STARTS_ONE_BLOCK_LATE -> plus(firstBlocks, count, 1);
                        case LIST_WALK_IGNORES_THE_FIRST_BLOCK -> new int[count];
                        default -> firstBlocks;
                    };
            return super.dropForks(relation, forks, first, count, work);
        }
    }

    private static final class FaultyForks extends ResidentForks {
        private final Mutant mutant;

        FaultyForks(int nbuffers, Mutant mutant) {
            super(nbuffers, mutant == Mutant.COLLISION_NOT_HANDLED ? 1 : 16);
            this.mutant = mutant;
        }

        @Override
        public void mapped(int buffer, int spc, int db, int rel, int fork, int block) {
            super.mapped(buffer, spc, db, rel, fork, block);
            if (mutant == Mutant.FINGERPRINT_NOT_SET && buffer % 5 == 0) {
                fingerprints().clear(buffer);
            }
        }

        @Override
        long residents(int hash, int spc, int db, int rel, int fork) {
            long residents = super.residents(hash, spc, db, rel, fork);
            if (residents == 0) {
                return 0;
            }
            return switch (mutant) {
                case COUNT_ONE_TOO_LOW -> pages(residents) == 1 ? 0 : residents - 1;
                case COUNT_FORGETS_A_FORK -> fork == 1 ? 0 : residents;
                case END_ONE_TOO_LOW -> residents - (1L << 32);
                default -> residents;
            };
        }

        @Override
        void lowerEnd(int spc, int db, int rel, int fork, int end) {
            super.lowerEnd(
                    spc, db, rel, fork, mutant == Mutant.END_LOWERED_TOO_FAR ? end - 1 : end);
        }

        @Override
        void addDatabase(int db, DropWork work) {
            super.addDatabase(db, work);
            if (mutant == Mutant.DATABASE_LIST_MISSES_A_FORK && work.forks > 0) {
                work.forks--;
            }
        }
    }

    private static final class FaultyAdaptive extends AdaptiveDropper {
        private final Mutant mutant;

        FaultyAdaptive(
                BufferDescriptors descriptors,
                BufferAllocator allocator,
                BufferReplacement replacement,
                ResidentForks resident,
                int nbuffers,
                Mutant mutant) {
            super(descriptors, allocator, replacement, resident, new DropCosts(nbuffers));
            this.mutant = mutant;
        }

        @Override
        int victim(int spc, int db, int rel, int fork, int block, DropWork work) {
            int at = super.victim(spc, db, rel, fork, block, work);
            return at < 0 && mutant == Mutant.COLLISION_NOT_HANDLED ? 0 : at;
        }

        @Override
        public int dropForks(
                SmgrRelation relation,
                ForkNumber[] forks,
                int[] firstBlocks,
                int count,
                DropWork work) {
            int[] first =
                    switch (mutant) {
                        case TRUNCATION_STARTS_ONE_BLOCK_LATE -> plus(firstBlocks, count, 1);
                        case TRUNCATION_IGNORES_THE_FIRST_BLOCK -> new int[count];
                        default -> firstBlocks;
                    };
            return super.dropForks(relation, forks, first, count, work);
        }
    }
}
