package org.pgkernel.bufmgr;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.RandomDistribution;
import net.jqwik.api.Tuple;

/** One thing that {@link DropRun} does to a pool; what {@code number} means is the kind's. */
record DropStep(Kind kind, int relation, int fork, int number) {
    static final int RELATIONS = 5;
    static final int FORKS = 4;
    static final int MAX_NUMBER = 40;
    private static final Integer[] MOSTLY_MAIN = {0, 0, 0, 0, 0, 1, 1, 2, 3};

    enum Kind {
        /** Adds dirty pages. */
        EXTEND(9),
        CHANGE(6),
        READ(4),
        /** Writes a page anew without reading it. */
        RESTORE(2),
        FLUSH(1),
        /** All or some forks at once. */
        TRUNCATE(4),
        DROP(5),
        /** Two relations. */
        DROP_BATCH(1),
        FORGET_SIZES(1),
        /** Begins or ends recovery. */
        RECOVERY(1),
        /** Pages only: the files stay. */
        DROP_DATABASE(1),
        /** Evicts all pages of a fork, of every relation, but the first few. */
        EVICT_TAIL(4),
        /** Evicts all pages of a fork, of every relation, but the last. */
        EVICT_BUT_LAST(5),
        /**
         * Outside recovery: another process extends the file, so that remembered sizes are too
         * small.
         */
        STALE_SIZE(1),
        /** A clean page far past the file's end, up to block 2^32 - 2. */
        GHOST(2);

        final int weight;

        Kind(int weight) {
            this.weight = weight;
        }
    }

    /**
     * @param ghosts pages past the end too
     */
    static Arbitrary<List<DropStep>> arbitrary(boolean ghosts) {
        List<Tuple.Tuple2<Integer, Arbitrary<Kind>>> frequencies = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            if (ghosts || kind != Kind.GHOST) {
                frequencies.add(Tuple.of(kind.weight, Arbitraries.just(kind)));
            }
        }
        return Combinators.combine(
                        Arbitraries.frequencyOf(frequencies),
                        Arbitraries.integers().between(0, RELATIONS - 1),
                        Arbitraries.of(MOSTLY_MAIN),
                        Arbitraries.integers()
                                .between(0, MAX_NUMBER)
                                .withDistribution(RandomDistribution.uniform()))
                .as(DropStep::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(100)
                .withSizeDistribution(RandomDistribution.uniform());
    }

    /** The same by a seed, for the mutants. */
    static List<DropStep> random(long seed, boolean ghosts) {
        Random random = new Random(seed);
        List<Kind> bag = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            for (int i = 0; i < kind.weight && (ghosts || kind != Kind.GHOST); i++) {
                bag.add(kind);
            }
        }
        List<DropStep> steps = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            steps.add(
                    new DropStep(
                            bag.get(random.nextInt(bag.size())),
                            random.nextInt(RELATIONS),
                            MOSTLY_MAIN[random.nextInt(MOSTLY_MAIN.length)],
                            random.nextInt(MAX_NUMBER + 1)));
        }
        return steps;
    }
}
