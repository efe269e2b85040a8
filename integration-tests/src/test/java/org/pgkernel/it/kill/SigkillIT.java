package org.pgkernel.it.kill;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.pgkernel.testkit.WorkDirectory;

/**
 * No acknowledged commit is lost when the process is killed. Rounds: property {@code
 * pgkernel.sigkill.rounds}, 3 unless said; the profile {@code sigkill} runs 100.
 */
class SigkillIT {
    @Test
    void noAcknowledgedCommitIsLostWhenTheProcessIsKilled() throws Exception {
        int rounds = Integer.getInteger("pgkernel.sigkill.rounds", 3);
        long seed = Long.getLong("pgkernel.sigkill.seed", System.nanoTime());
        System.out.println("-Dpgkernel.sigkill.seed=" + seed);
        // Where the build is: on a disk, so that syncs are real.
        try (WorkDirectory work = WorkDirectory.createIn(Path.of("target"), "sigkill")) {
            SigkillRounds all = new SigkillRounds(work.resolve("data").toAbsolutePath(), seed);
            all.create();
            for (int i = 1; i <= rounds; i++) {
                all.round(i);
            }
            System.out.println(rounds + " rounds of kill -9: " + all.told());
            assertTrue(all.acknowledgedInAll() > 0);
        }
    }
}
