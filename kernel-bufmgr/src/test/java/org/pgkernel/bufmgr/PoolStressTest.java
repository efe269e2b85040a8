package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Eight backends use everything that a pool can do, on few buffers and a disk with faults, beside a
 * background writer and a checkpointer. No write is lost, no page of a dropped relation stays or is
 * written, no pin is left, no page is written before its WAL: checked at every look, at every
 * write, and over all pages whenever the threads pause. Every drop strategy, replacement policy and
 * lookup by turns.
 *
 * <p>A few seconds; {@code -Pstress} makes it two minutes, {@code -Dpgkernel.stress.seconds=N} any
 * number. {@code -Dpgkernel.stress.seed=N} repeats what the threads do, if not how they meet. In a
 * third of the turns every pin that is given up is retained, with {@code
 * -Dpgkernel.stress.retain=true} in all of them.
 */
@Timeout(1200)
class PoolStressTest {
    private static final int SECONDS = Integer.getInteger("pgkernel.stress.seconds", 4);
    private static final long SEED =
            Long.getLong("pgkernel.stress.seed", System.nanoTime() & 0xFFFFFFL);
    private static final int TURNS = SECONDS < 24 ? 8 : 24;
    private static final int PAUSE_MILLIS = 250;

    @Test
    void nothingIsLostStaleLeakedOrWrittenBeforeItsWal() throws Exception {
        StressRun.Tally tally = new StressRun.Tally();
        long turnMillis = TimeUnit.SECONDS.toMillis(SECONDS) / TURNS;
        int firstTurn = Math.floorMod(SEED, 24);
        for (int i = 0; i < TURNS; i++) {
            StressRun.Plan plan = StressRun.Plan.ofTurn(SEED, (firstTurn + i) % 24);
            repeatable(() -> new StressRun(plan, tally).run(turnMillis, PAUSE_MILLIS));
        }
        System.out.println("Stress of " + SECONDS + " s, seed " + SEED + ": " + tally);
        assertTrue(tally.operations() > 500L * SECONDS, "too little happened");
        for (StressWorker.Operation operation : StressWorker.Operation.values()) {
            assertTrue(tally.operations[operation.ordinal()].sum() > 0, operation + " is missing");
        }
        assertTrue(tally.faults.sum() > 0 && tally.checkpoints.sum() > 0, "no faults");
    }

    /** The kernel stops: no checkpoint completes any more, and all else stays as it must be. */
    @Test
    void afterAFailedSyncNoCheckpointCompletesAndThePoolStaysSound() throws Exception {
        StressRun.Plan plan = StressRun.Plan.ofTurn(SEED, 7).withFailingSync();
        StressRun run = new StressRun(plan, new StressRun.Tally());
        repeatable(() -> run.run(1200, 300));
        assertTrue(run.isKernelStopped(), "no sync failed, seed " + SEED);
    }

    /** The checks can fail: each planted fault is found. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void everyPlantedFaultIsFound(StressMutant mutant) throws Exception {
        for (int turn = 0; turn < 12; turn++) {
            StressRun.Plan plan =
                    StressRun.Plan.ofTurn(SEED, turn).with(mutant, DropStrategy.FULL_SCAN);
            try {
                new StressRun(plan, new StressRun.Tally()).run(1000, 100);
            } catch (AssertionError found) {
                String what = String.valueOf(found.getCause());
                System.out.println(mutant + " found in turn " + turn + ": " + what);
                assertTrue(mutant.isToldBy(what), () -> mutant + " found as " + what);
                return;
            }
        }
        fail(mutant + " was not found, seed " + SEED);
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void repeatable(Body body) throws Exception {
        try {
            body.run();
        } catch (AssertionError e) {
            String command =
                    "mvn -Pstress -pl kernel-bufmgr -am test -Dtest=PoolStressTest"
                            + " -Dsurefire.failIfNoSpecifiedTests=false -Dpgkernel.stress.seed="
                            + SEED
                            + " -Dpgkernel.stress.seconds="
                            + SECONDS;
            throw new AssertionError("seed " + SEED + ", again by: " + command, e);
        }
    }
}
