package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.bufmgr.RetentionAdversary.Mutant;

/** The check of {@link RetentionInterleavingProperties} finds every fault that is planted. */
class RetentionMutantsTest {
    private static final int ACTS = 200;
    private static final int RUNS = 2_000;

    @ParameterizedTest
    @EnumSource(value = Mutant.class, mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void everyMutantIsCaught(Mutant mutant) {
        for (int seed = 0; seed < RUNS; seed++) {
            Throwable found = run(mutant, seed);
            if (found != null) {
                assertInstanceOf(AssertionError.class, found, "by accident");
                System.out.println(mutant + " found by seed " + seed + ": " + found.getMessage());
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " runs");
    }

    @Test
    void everythingThatMayGoWrongIsTried() {
        int reused = 0;
        int takenBack = 0;
        int waited = 0;
        for (int seed = 0; seed < 20; seed++) {
            try (RetentionAdversary adversary = new RetentionAdversary(Mutant.NONE, seed)) {
                for (int i = 0; i < ACTS; i++) {
                    adversary.act();
                }
                adversary.finish();
                reused += adversary.reused;
                takenBack += adversary.takenBack;
                waited += adversary.waited;
                assertTrue(adversary.interruptions() > ACTS, "nothing came in between");
            }
        }
        int often = 200;
        assertTrue(
                reused > often && takenBack > often && waited > often,
                reused + " used again, " + takenBack + " taken back, " + waited + " waits");
    }

    /**
     * In a thread of its own: a run that fails stops in the middle of things, and the locks that it
     * holds are noted for its thread.
     *
     * @return what the check found, or null
     */
    static Throwable run(Mutant mutant, long seed) {
        AtomicReference<Throwable> found = new AtomicReference<>();
        Thread thread =
                new Thread(
                        () -> {
                            try (RetentionAdversary adversary =
                                    new RetentionAdversary(mutant, seed)) {
                                for (int i = 0; i < ACTS; i++) {
                                    adversary.act();
                                }
                                adversary.finish();
                            } catch (Throwable t) {
                                found.set(t);
                            }
                        });
        thread.start();
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return found.get();
    }
}
