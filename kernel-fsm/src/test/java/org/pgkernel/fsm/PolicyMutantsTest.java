package org.pgkernel.fsm;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.util.Arrays;
import java.util.function.IntFunction;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.base.BlockNumber;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.smgr.SmgrRelation;

/** The policies keep their rules in any history; with a fault planted the same check fails. */
@Timeout(120)
final class PolicyMutantsTest {
    private static final int RUNS = 80;
    private static final int STEPS = 150;

    enum Mutant {
        MAP_LOSES_RECORDS(FsmPolicy.ALWAYS),
        MAP_ROUNDS_THE_NEED_DOWN(FsmPolicy.ALWAYS),
        MAP_GIVES_UP_AFTER_A_FULL_PAGE(FsmPolicy.ALWAYS),
        MAP_IS_FOLLOWED_PAST_THE_HEAP(FsmPolicy.ALWAYS),

        LOCAL_IS_NOT_FORGOTTEN(FsmPolicy.SMALL_TABLES_LOCAL),
        LOCAL_TRIES_EVERY_PAGE(FsmPolicy.SMALL_TABLES_LOCAL),
        LOCAL_FORGETS_WHAT_IT_TRIED(FsmPolicy.SMALL_TABLES_LOCAL),
        LOCAL_GIVES_UP_AFTER_THE_TARGET(FsmPolicy.SMALL_TABLES_LOCAL),
        LOCAL_MAKES_THE_MAP_TOO_EARLY(FsmPolicy.SMALL_TABLES_LOCAL),
        LOCAL_DOES_NOT_ASK_THE_MAP(FsmPolicy.SMALL_TABLES_LOCAL),

        SHARED_IS_NOT_TOLD_OF_A_FULL_PAGE(FsmPolicy.SMALL_TABLES_SHARED),
        SHARED_IS_NOT_TOLD_BY_VACUUM(FsmPolicy.SMALL_TABLES_SHARED),
        SHARED_TAKES_THE_NEIGHBOURS_BYTE(FsmPolicy.SMALL_TABLES_SHARED),
        SHARED_SURVIVES_A_TRUNCATION(FsmPolicy.SMALL_TABLES_SHARED),
        SHARED_IS_LEFT_BEHIND(FsmPolicy.SMALL_TABLES_SHARED),
        SHARED_MAKES_THE_MAP_TOO_EARLY(FsmPolicy.SMALL_TABLES_SHARED);

        final FsmPolicy policy;

        Mutant(FsmPolicy policy) {
            this.policy = policy;
        }
    }

    @Property(tries = 150)
    void everyPolicyKeepsItsRules(
            @ForAll FsmPolicy policy,
            @ForAll @IntRange(min = 0, max = FsmOptions.MOST_THRESHOLD) int threshold,
            @ForAll long seed) {
        FsmOptions options = new FsmOptions(policy, threshold);
        Throwable found = run(options, i -> options.newFreeSpace(), false, seed);
        assertNull(found, () -> options + " seed " + seed + ": " + found);
    }

    @ParameterizedTest
    @EnumSource(Mutant.class)
    void everyMutantIsCaught(Mutant mutant) {
        boolean keeps = mutant == Mutant.SHARED_SURVIVES_A_TRUNCATION;
        for (int seed = 0; seed < RUNS; seed++) {
            Throwable found = run(FsmOptions.of(mutant.policy), i -> space(mutant, i), keeps, seed);
            if (found instanceof AssertionError) {
                return;
            }
            assertNull(found);
        }
        fail(mutant + " survived " + RUNS + " runs");
    }

    @Test
    void everyPolicyHasMutants() {
        for (FsmPolicy policy : FsmPolicy.values()) {
            assertTrue(
                    Arrays.stream(Mutant.values()).filter(m -> m.policy == policy).count() >= 3,
                    policy.toString());
        }
    }

    private static Throwable run(
            FsmOptions options, IntFunction<FreeSpace> spaces, boolean keepsHint, long seed) {
        PolicyHistory history = new PolicyHistory(seed, options, spaces, keepsHint);
        try {
            history.run(STEPS);
        } catch (AssertionError | RuntimeException e) {
            return e;
        } finally {
            history.close();
        }
        return null;
    }

    private static FreeSpace space(Mutant mutant, int number) {
        return switch (mutant.policy) {
            case ALWAYS -> new FaultyMap(mutant);
            case SMALL_TABLES_LOCAL -> new FaultyLocal(mutant);
            case SMALL_TABLES_SHARED -> new FaultyShared(mutant, number);
        };
    }

    private static final class FaultyMap implements FreeSpace {
        private final FreeSpaceMap map = new FreeSpaceMap();
        private final Mutant mutant;
        private int records;

        FaultyMap(Mutant mutant) {
            this.mutant = mutant;
        }

        private int need(int bytes) {
            return mutant == Mutant.MAP_ROUNDS_THE_NEED_DOWN ? Math.max(0, bytes - 31) : bytes;
        }

        @Override
        public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
            return followed(
                    buffers,
                    relation,
                    bytes,
                    map.pageWithFreeSpace(buffers, relation, need(bytes)));
        }

        private int followed(PageBuffers buffers, SmgrRelation relation, int bytes, int found) {
            int blocks = relation.nblocks(ForkNumber.MAIN);
            boolean past = mutant == Mutant.MAP_IS_FOLLOWED_PAST_THE_HEAP;
            return past
                            && found == BlockNumber.INVALID
                            && map.recordedFree(buffers, relation, blocks) >= bytes
                    ? blocks
                    : found;
        }

        @Override
        public int recordAndFind(
                PageBuffers buffers, SmgrRelation relation, int oldBlock, int oldFree, int bytes) {
            int found = map.recordAndFind(buffers, relation, oldBlock, oldFree, need(bytes));
            return mutant == Mutant.MAP_GIVES_UP_AFTER_A_FULL_PAGE
                    ? BlockNumber.INVALID
                    : followed(buffers, relation, bytes, found);
        }

        @Override
        public void record(PageBuffers buffers, SmgrRelation relation, int block, int freeBytes) {
            if (mutant != Mutant.MAP_LOSES_RECORDS || ++records % 3 != 0) {
                map.record(buffers, relation, block, freeBytes);
            }
        }

        @Override
        public int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
            return map.recordedFree(buffers, relation, heapBlock);
        }

        @Override
        public void vacuumRange(PageBuffers buffers, SmgrRelation relation, int start, int end) {
            map.vacuumRange(buffers, relation, start, end);
        }
    }

    private static final class FaultyLocal extends LocalFreeSpace {
        private final Mutant mutant;

        FaultyLocal(Mutant mutant) {
            super(FsmOptions.DEFAULT_THRESHOLD);
            this.mutant = mutant;
        }

        @Override
        public void forget() {
            if (mutant != Mutant.LOCAL_IS_NOT_FORGOTTEN) {
                super.forget();
            }
        }

        @Override
        int step() {
            return mutant == Mutant.LOCAL_TRIES_EVERY_PAGE ? 1 : super.step();
        }

        @Override
        boolean isSmall(int heapBlocks) {
            return mutant == Mutant.LOCAL_MAKES_THE_MAP_TOO_EARLY
                    ? heapBlocks < threshold
                    : super.isSmall(heapBlocks);
        }

        @Override
        boolean usesMap(SmgrRelation relation, int heapBlock, int heapBlocks) {
            return mutant == Mutant.LOCAL_DOES_NOT_ASK_THE_MAP
                    ? !isSmall(heapBlocks)
                    : super.usesMap(relation, heapBlock, heapBlocks);
        }

        @Override
        void tried(SmgrRelation relation, int block, int free, int bytes) {
            begun = searched != null;
            super.tried(relation, block, free, bytes);
        }

        @Override
        int nextOfSmall(SmgrRelation relation, int heapBlocks, int bytes) {
            if (mutant == Mutant.LOCAL_FORGETS_WHAT_IT_TRIED) {
                tried = 0;
            }
            if (mutant == Mutant.LOCAL_GIVES_UP_AFTER_THE_TARGET && !begun) {
                return BlockNumber.INVALID;
            }
            return super.nextOfSmall(relation, heapBlocks, bytes);
        }

        /** A search was under way. */
        private boolean begun;
    }

    private static final class FaultyShared extends SharedFreeSpace {
        private final Mutant mutant;

        FaultyShared(Mutant mutant, int number) {
            super(FsmOptions.DEFAULT_THRESHOLD, number);
            this.mutant = mutant;
        }

        @Override
        boolean isSmall(int heapBlocks) {
            return mutant == Mutant.SHARED_MAKES_THE_MAP_TOO_EARLY
                    ? heapBlocks < threshold
                    : super.isSmall(heapBlocks);
        }

        @Override
        void tried(SmgrRelation relation, int block, int free, int bytes) {
            if (mutant != Mutant.SHARED_IS_NOT_TOLD_OF_A_FULL_PAGE) {
                super.tried(relation, block, free, bytes);
            }
        }

        @Override
        void recordSmall(SmgrRelation relation, int heapBlock, int freeBytes) {
            if (mutant != Mutant.SHARED_IS_NOT_TOLD_BY_VACUUM) {
                super.recordSmall(relation, heapBlock, freeBytes);
            }
        }

        @Override
        void put(SmgrRelation relation, int block, int category) {
            int of = mutant == Mutant.SHARED_TAKES_THE_NEIGHBOURS_BYTE ? block ^ 1 : block;
            super.put(relation, of, category);
        }

        @Override
        void beforeMapIsUsed(PageBuffers buffers, SmgrRelation relation, int heapBlocks) {
            if (mutant != Mutant.SHARED_IS_LEFT_BEHIND) {
                super.beforeMapIsUsed(buffers, relation, heapBlocks);
            }
        }
    }
}
