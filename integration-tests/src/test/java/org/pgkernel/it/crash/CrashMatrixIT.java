package org.pgkernel.it.crash;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/**
 * A whole kernel crashed in the middle of everything: what was acknowledged is there, nothing else,
 * and the files are whole. See {@link CrashMatrix} for how to run more, or one run again.
 */
class CrashMatrixIT {
    private static final int CRASHES = 3_000;

    @Test
    void whateverTheCrashTheAcknowledgedIsThereAndNothingElse() throws InterruptedException {
        long crashes = CrashMatrix.run(CRASHES);
        long wished = Long.getLong("pgkernel.crashes", CRASHES);
        boolean timed = System.getProperty("pgkernel.crashes.minutes") != null;
        assertTrue(crashes >= wished || timed, "only " + crashes);
    }
}
