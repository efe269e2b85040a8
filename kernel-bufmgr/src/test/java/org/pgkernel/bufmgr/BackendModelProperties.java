package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.RandomDistribution;
import net.jqwik.api.Tuple;
import net.jqwik.api.statistics.Statistics;

/**
 * The pool is a map of pages: whatever several backends read, pin, lock, change, hint, release,
 * evict, write and leave, each sees the newest version of every page, a page that is pinned stays
 * where it is, locks are had exactly when they may be, a pin counts once for each backend, wrong
 * use is refused and changes nothing, and a scope's leaks are told exactly: also when backends
 * retain all their pins. See {@link BackendRun}.
 */
class BackendModelProperties {
    /** One step of one backend; what {@code value} means is the kind's. */
    record Step(BackendRun.Kind kind, int backend, int block, int value) {}

    @Provide
    Arbitrary<List<Step>> steps() {
        Arbitrary<BackendRun.Kind> kinds =
                Arbitraries.of(BackendRun.Kind.values())
                        .flatMap(k -> Arbitraries.of(k, k, k, BackendRun.Kind.READ));
        // Few blocks, so that backends meet; sometimes any, so that the pool fills with pins.
        Arbitrary<Integer> blocks =
                Arbitraries.frequencyOf(
                        Tuple.of(3, Arbitraries.of(0, 0, 1, 2)),
                        Tuple.of(
                                2,
                                Arbitraries.integers()
                                        .between(0, BackendRun.BLOCKS - 1)
                                        .withDistribution(RandomDistribution.uniform())));
        return Combinators.combine(
                        kinds,
                        Arbitraries.of(0, 0, 0, 1, 2),
                        blocks,
                        Arbitraries.integers().between(1, 1_000_000))
                .as(Step::new)
                .list()
                .ofMaxSize(400)
                .withSizeDistribution(RandomDistribution.uniform());
    }

    @Property(tries = 250, edgeCases = EdgeCasesMode.NONE)
    void aPoolUnderSeveralBackendsIsAMapOfPages(
            @ForAll("steps") List<Step> steps,
            @ForAll DropStrategy strategy,
            @ForAll boolean retaining)
            throws IOException {
        Path directory = Files.createTempDirectory("model");
        try (BackendRun run = new BackendRun(directory, strategy, retaining)) {
            for (Step step : steps) {
                run.apply(step);
                run.check();
            }
            run.finish();
            occurs("refused as wrong use", run.misuses > 0, 50);
            occurs("no unpinned buffer", run.noFreeBuffer > 0, 1);
            occurs("more pins than the array holds", run.overflowed, 1);
            occurs("leak told", run.leaksExpected > 0, 5);
            occurs("scope failed with something held", run.abortedWithPins, 3);
            occurs("lock not had", run.lockRefused > 0, 3);
            occurs("cleanup lock had", run.cleanups > 0, 1);
            occurs("page logged for a hint", !run.log.images.isEmpty(), 1);
            assertEquals(List.of(), run.leaks, "told without a reason");
        } finally {
            try (Stream<Path> files = Files.walk(directory)) {
                files.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
            }
        }
    }

    private static void occurs(String what, boolean occurred, int percent) {
        Statistics.label(what).collect(occurred);
        Statistics.label(what).coverage(c -> c.check(true).percentage(p -> p >= percent));
    }
}
