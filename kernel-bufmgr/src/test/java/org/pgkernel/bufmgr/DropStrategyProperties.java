package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.statistics.Statistics;
import org.pgkernel.smgr.SizePolicy;

/**
 * Whatever sequence of reads, changes, extensions, evictions, truncations, drops and checkpoints a
 * pool has seen, in recovery and outside, with sizes known, stale and unknown: under every strategy
 * it holds the same pages in the same state as under FULL_SCAN (in other buffers, as they are freed
 * in another order), the files are the same bytes, and all are what a model without a pool says: no
 * page of a victim is left, no other page is lost, every change is there.
 *
 * <p>Once the clock has had to choose a victim the pools may differ in which pages they hold, but
 * in nothing else.
 */
class DropStrategyProperties {
    private static final List<DropStrategy> ALL = List.of(DropStrategy.values());
    private static final List<DropStrategy> WITHOUT_SIZES =
            List.of(DropStrategy.FULL_SCAN, DropStrategy.DLIST, DropStrategy.ADAPTIVE);

    @Provide
    Arbitrary<List<DropStep>> steps() {
        return DropStep.arbitrary(false);
    }

    @Provide
    Arbitrary<List<DropStep>> stepsWithGhosts() {
        return DropStep.arbitrary(true);
    }

    /** Small ones to have evictions, large ones to have lookups. */
    @Provide
    Arbitrary<Integer> pools() {
        return Arbitraries.of(64, 64, 64, 150, 256, 511, 1024, 4096);
    }

    /** 16 as in life; 1 and 2 so that relations collide, often enough for the coverage. */
    @Provide
    Arbitrary<Integer> bits() {
        return Arbitraries.of(1, 2, 2, 2, 4, 16);
    }

    @Property(tries = 130, edgeCases = EdgeCasesMode.NONE)
    void everyStrategyLeavesWhatTheFullScanLeaves(
            @ForAll("steps") List<DropStep> steps,
            @ForAll("pools") int nbuffers,
            @ForAll("bits") int bits,
            @ForAll SizePolicy policy)
            throws IOException {
        List<DropRun> runs = compare(ALL, steps, nbuffers, bits, policy);
        DropStatistics lookup = runs.get(DropStrategy.LOOKUP.ordinal()).f.pool.dropStatistics();
        DropStatistics adaptive = runs.get(DropStrategy.ADAPTIVE.ordinal()).f.pool.dropStatistics();
        occurs("nothing resident", adaptive.nothingResident > 0);
        occurs("lookup", adaptive.lookups > 0);
        occurs("fingerprint scan", adaptive.fingerprintScans > 0);
        occurs(
                "early stop of lookups",
                any(adaptive, DropPath.LOOKUP, null, DropStopReason.COUNT_REACHED));
        occurs(
                "early stop of a scan",
                any(adaptive, DropPath.FINGERPRINT_SCAN, null, DropStopReason.COUNT_REACHED));
        occurs(
                "scan by unknown size",
                any(lookup, DropPath.FULL_SCAN, DropReason.UNKNOWN_SIZE, null));
        occurs(
                "scan by threshold of LOOKUP",
                any(lookup, DropPath.FULL_SCAN, DropReason.ABOVE_THRESHOLD, null));
        occurs("lookup of LOOKUP", lookup.lookups > 0);
        occurs(
                "scan by threshold",
                any(adaptive, DropPath.FINGERPRINT_SCAN, DropReason.ABOVE_THRESHOLD, null));
        occurs("fingerprint collision", adaptive.fingerprintCollisions > 0);
        occurs(
                "count not reached after lookups",
                any(adaptive, null, DropReason.COUNT_NOT_REACHED, null));
        occurs(
                "list walk",
                runs.get(DropStrategy.DLIST.ordinal()).f.pool.dropStatistics().listWalks > 0);
        Statistics.label("eviction by the clock").collect(runs.getFirst().evicting());
        Statistics.label("eviction by the clock").coverage(c -> c.check(true).count(n -> n > 0));
    }

    private static void occurs(String decision, boolean occurred) {
        Statistics.label(decision).collect(occurred);
        Statistics.label(decision).coverage(c -> c.check(true).percentage(p -> p >= 5));
    }

    private static boolean any(
            DropStatistics in, DropPath path, DropReason reason, DropStopReason stop) {
        return in.decisions().stream()
                .anyMatch(
                        d ->
                                (path == null || d.path() == path)
                                        && (reason == null || d.reason() == reason)
                                        && (stop == null || d.stop() == stop));
    }

    /**
     * Pages past every size that anybody could know, up to block 2^32 - 2: LOOKUP misses them by
     * its nature.
     */
    @Property(tries = 40, edgeCases = EdgeCasesMode.NONE)
    void strategiesWithoutSizesFindPagesPastTheEnd(
            @ForAll("stepsWithGhosts") List<DropStep> steps,
            @ForAll("pools") int nbuffers,
            @ForAll("bits") int bits,
            @ForAll SizePolicy policy)
            throws IOException {
        compare(WITHOUT_SIZES, steps, nbuffers, bits, policy);
    }

    /**
     * Runs them side by side, the first as reference; closed, but for their statistics, on return.
     */
    private static List<DropRun> compare(
            List<DropStrategy> strategies,
            List<DropStep> steps,
            int nbuffers,
            int bits,
            SizePolicy policy)
            throws IOException {
        Path directory = Files.createTempDirectory("drop");
        List<DropRun> runs = new ArrayList<>();
        try {
            for (DropStrategy strategy : strategies) {
                BufferPoolOptions options = BufferPoolOptions.of(nbuffers).withStrategy(strategy);
                runs.add(
                        new DropRun(
                                directory.resolve(strategy.name()),
                                options,
                                policy,
                                new NarrowFingerprints(bits)));
            }
            DropRun reference = runs.getFirst();
            for (DropStep step : steps) {
                for (DropRun run : runs) {
                    run.apply(step);
                    run.check();
                    if (run != reference && !run.evicting()) {
                        assertEquals(reference.pages(), run.pages(), () -> "after " + step);
                        assertEquals(
                                reference.f.pool.dropStatistics().buffersDropped,
                                run.f.pool.dropStatistics().buffersDropped,
                                () -> "after " + step);
                    }
                }
            }
            for (DropRun run : runs) {
                run.finish();
                assertEquals(reference.files(), run.files());
                run.check();
            }
        } finally {
            runs.forEach(DropRun::close);
            DropRun.delete(directory);
        }
        return runs;
    }

    static final class NarrowFingerprints extends DropParts {
        private final int bits;

        NarrowFingerprints(int bits) {
            this.bits = bits;
        }

        @Override
        ResidencyTracker tracker(DropStrategy strategy, int nbuffers) {
            return strategy == DropStrategy.ADAPTIVE
                    ? new ResidentForks(nbuffers, bits)
                    : super.tracker(strategy, nbuffers);
        }
    }
}
