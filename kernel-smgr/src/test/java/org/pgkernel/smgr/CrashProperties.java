package org.pgkernel.smgr;

import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.pgkernel.testkit.CrashSearch;
import org.pgkernel.testkit.DiskCall;
import org.pgkernel.testkit.Fault.Effect;

/**
 * Any work on files, crashed at any change, in many outcomes, with and without failing calls: redo
 * from the last checkpoint brings every fork back as a model of files has it (SMGR-11). C07, C08,
 * R12 and R14 in general; their scenarios, one by one, are in {@link SyncRequestsTest} and {@link
 * SimulatedDiskCasesTest}.
 */
class CrashProperties {
    @Provide
    Arbitrary<List<CrashRun.Step>> steps() {
        return Combinators.combine(
                        Arbitraries.of(CrashRun.Kind.class),
                        Arbitraries.integers().between(0, 2),
                        Arbitraries.of(true, true, false),
                        Arbitraries.integers().between(0, 7))
                .as(CrashRun.Step::new)
                .list()
                .ofMinSize(20)
                .ofMaxSize(60);
    }

    @Property(tries = 300)
    void redoFromTheLastCheckpointRestoresEveryFork(
            @ForAll("steps") List<CrashRun.Step> steps,
            @ForAll boolean standby,
            @ForAll SizePolicy policy,
            @ForAll boolean ordered) {
        search("smgr", steps, standby, policy)
                .prepare(disk -> disk.orderedMetadata(ordered))
                .mostCrashes(40)
                .outcomes(3)
                .run();
    }

    @Property(tries = 150)
    void soDoesASecondCrashInRecovery(
            @ForAll("steps") List<CrashRun.Step> steps, @ForAll boolean standby) {
        search("smgr-again", steps, standby, SizePolicy.SHARED)
                .mostCrashes(12)
                .outcomes(1)
                .crashesInRecovery(12)
                .run();
    }

    @Property(tries = 300)
    void failingCallsAndDroppedPagesLoseNothingThatACheckpointPromised(
            @ForAll("steps") List<CrashRun.Step> steps,
            @ForAll boolean standby,
            @ForAll SizePolicy policy) {
        search("smgr-faults", steps, standby, policy)
                .seeds(8)
                .prepare(
                        disk ->
                                disk.chance(DiskCall.SYNC, 0.1, Effect.EIO, Effect.ENOSPC)
                                        .chance(DiskCall.SYNC_DIRECTORY, 0.1, Effect.EIO)
                                        .chance(DiskCall.CLOSE, 0.05, Effect.EIO)
                                        .chance(DiskCall.WRITE, 0.02, Effect.EIO, Effect.SHORT))
                .mostCrashes(8)
                .outcomes(1)
                .run();
    }

    private static CrashSearch search(
            String name, List<CrashRun.Step> steps, boolean standby, SizePolicy policy) {
        return CrashRun.search(name, steps, standby, policy, CrashRun.Parts::new);
    }
}
