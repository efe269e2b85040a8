package org.pgkernel.it.crash;

import java.util.function.LongFunction;

/** What {@link CrashMutantsIT} runs inside a {@link MutantLoader}: the matrix, until it fails. */
public final class MutantSearch {
    private static final int STEPS = 45;

    private MutantSearch() {}

    /**
     * @return what was found first, null if nothing in so many seeds
     */
    public static String find(int seeds, boolean fullPageWrites) {
        LongFunction<MatrixKernel.Settings> settings =
                seed ->
                        fullPageWrites
                                ? MatrixKernel.Settings.of(seed)
                                : MatrixKernel.Settings.of(seed).withoutFullPageWrites();
        for (long seed = 1; seed <= seeds; seed++) {
            try {
                MatrixRun.search(seed, STEPS, settings.apply(seed))
                        .seed(seed)
                        .outcomes(2)
                        .mostCrashes(60)
                        .run();
            } catch (AssertionError e) {
                return "seed " + seed + ": " + e.getMessage();
            }
        }
        return null;
    }
}
