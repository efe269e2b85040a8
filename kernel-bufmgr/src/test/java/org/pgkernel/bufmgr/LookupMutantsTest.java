package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.bufmgr.LookupAdversary.Mutant;

/** The check of {@link LookupInterleavingProperties} finds every fault that is planted. */
class LookupMutantsTest {
    private static final int LOOKUPS = 200;
    private static final int RUNS = 2_000;

    @ParameterizedTest
    @EnumSource(value = Mutant.class, mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void everyMutantIsCaught(Mutant mutant) {
        for (int seed = 0; seed < RUNS; seed++) {
            Throwable found = run(mutant, seed);
            if (found != null) {
                assertInstanceOf(AssertionError.class, found, "by accident");
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " runs");
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
                            try {
                                lookUp(mutant, seed);
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

    private static void lookUp(Mutant mutant, long seed) {
        try (LookupAdversary adversary = new LookupAdversary(mutant, seed)) {
            for (int i = 0; i < LOOKUPS; i++) {
                adversary.lookUp();
            }
            assertTrue(adversary.interruptions() > LOOKUPS, "lookups were not interrupted");
        }
    }
}
