package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.statistics.Statistics;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Whatever a pool has seen, a flush writes every dirty page of its victims and no other page, found
 * in whichever way: against a walk over all descriptors. Flushers with a fault each are found out.
 */
class FlushProperties {
    /** Evictions in the small ones. */
    @Provide
    Arbitrary<Integer> pools() {
        return Arbitraries.of(40, 64, 150, 1024);
    }

    @Provide
    Arbitrary<List<FlushRun.Step>> steps() {
        return FlushRun.arbitrary();
    }

    @Property(tries = 60, edgeCases = EdgeCasesMode.NONE)
    void aFlushWritesItsVictimsAndNothingElse(
            @ForAll("steps") List<FlushRun.Step> steps,
            @ForAll("pools") int nbuffers,
            @ForAll DropStrategy strategy)
            throws IOException {
        run(steps, nbuffers, strategy, new DropStrategyProperties.NarrowFingerprints(3));
        Statistics.collect(strategy);
    }

    @Property(tries = 60, edgeCases = EdgeCasesMode.NONE)
    void everyWayOfFindingThemIsRight(
            @ForAll("steps") List<FlushRun.Step> steps,
            @ForAll("pools") int nbuffers,
            @ForAll FlushPath way)
            throws IOException {
        FlushStatistics statistics =
                run(steps, nbuffers, DropStrategy.ADAPTIVE, new Forced(way, null));
        boolean gone = statistics.calls(way) > 0;
        Statistics.label("went that way").collect(way, gone);
        for (FlushPath other : FlushPath.values()) {
            if (way != FlushPath.NOTHING_TO_DO
                    && other != FlushPath.NOTHING_TO_DO
                    && other != way) {
                assertEquals(0, statistics.calls(other));
            }
        }
    }

    private static FlushStatistics run(
            List<FlushRun.Step> steps, int nbuffers, DropStrategy strategy, DropParts parts)
            throws IOException {
        Path directory = Files.createTempDirectory("flush");
        BufferPoolOptions options = BufferPoolOptions.of(nbuffers).withStrategy(strategy);
        try (FlushRun run = new FlushRun(directory, options, parts)) {
            for (FlushRun.Step step : steps) {
                run.apply(step);
            }
            PoolInspection.check(run.f.pool);
            assertEquals(0, run.f.pool.pinnedBuffers());
            return run.f.pool.flushStatistics();
        } finally {
            DropRun.delete(directory);
        }
    }

    /** What is wrong, and which way shows it. */
    enum Fault {
        END_ONE_TOO_LOW(FlushPath.LOOKUP),
        DATABASE_IGNORED(FlushPath.DIRTY_BITMAP),
        TABLESPACE_IGNORED(FlushPath.DIRTY_BITMAP),
        SCAN_BELIEVES_FINGERPRINTS(FlushPath.FINGERPRINT_SCAN);

        final FlushPath way;

        Fault(FlushPath way) {
            this.way = way;
        }
    }

    @ParameterizedTest
    @EnumSource(Fault.class)
    void aFaultIsFound(Fault fault) throws IOException {
        for (int seed = 0; seed < 40; seed++) {
            try {
                run(
                        FlushRun.random(seed),
                        1024,
                        DropStrategy.ADAPTIVE,
                        new Forced(fault.way, fault));
            } catch (AssertionError e) {
                return;
            }
        }
        fail(fault + " survived");
    }

    @Test
    void withoutAFaultTheSameRunsPass() throws IOException {
        for (int seed = 0; seed < 10; seed++) {
            for (FlushPath way : FlushPath.values()) {
                run(FlushRun.random(seed), 1024, DropStrategy.ADAPTIVE, new Forced(way, null));
            }
        }
    }

    /** Goes one way if there is anything to do ({@code NOTHING_TO_DO}: the cheapest). */
    static final class Forced extends DropParts {
        private final FlushPath way;
        private final Fault fault;

        Forced(FlushPath way, Fault fault) {
            this.way = way;
            this.fault = fault;
        }

        @Override
        ResidencyTracker tracker(DropStrategy strategy, int nbuffers) {
            return strategy == DropStrategy.ADAPTIVE
                    ? new ResidentForks(nbuffers, 2)
                    : super.tracker(strategy, nbuffers);
        }

        @Override
        RelationFlusher flusher(BufferPool pool, WriteOut out, DropCosts costs) {
            return new RelationFlusher(
                    pool.descriptors,
                    pool.dirty,
                    pool.replacement,
                    pool.allocator,
                    out,
                    pool.tracker,
                    costs) {
                @Override
                FlushPath choose(FlushWork work, int groups) {
                    FlushPath chosen = super.choose(work, groups);
                    return chosen == FlushPath.NOTHING_TO_DO || way == FlushPath.NOTHING_TO_DO
                            ? chosen
                            : way;
                }

                @Override
                int end(long residents) {
                    return super.end(residents) - (fault == Fault.END_ONE_TOO_LOW ? 1 : 0);
                }

                @Override
                boolean isVictim(int buffer, FlushWork work) {
                    int spc = pool.descriptors.spc(buffer);
                    int db = pool.descriptors.db(buffer);
                    int rel = pool.descriptors.rel(buffer);
                    return switch (fault) {
                        case DATABASE_IGNORED ->
                                work.isVictim(spc, PoolFixture.DB, rel)
                                        || super.isVictim(buffer, work);
                        case TABLESPACE_IGNORED ->
                                work.isVictim(PoolFixture.SPC, db, rel)
                                        || super.isVictim(buffer, work);
                        case SCAN_BELIEVES_FINGERPRINTS -> true;
                        case END_ONE_TOO_LOW -> super.isVictim(buffer, work);
                        case null -> super.isVictim(buffer, work);
                    };
                }
            };
        }
    }
}
