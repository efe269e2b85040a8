package org.pgkernel.smgr;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.pgkernel.smgr.SizeRun.Kind;
import org.pgkernel.smgr.SizeRun.Setting;
import org.pgkernel.smgr.SizeRun.Step;

/** The runs of {@link SizesBesideOthersProperties} find each of the seeded faults. */
@Timeout(120)
class SizeMutantsTest {
    private static final int RUNS = 400;

    /** Adding and cutting come oftener than the rest. */
    private static final Kind[] KINDS = {
        Kind.EXTEND,
        Kind.EXTEND,
        Kind.ZERO_EXTEND,
        Kind.ZERO_EXTEND,
        Kind.ZERO_EXTEND,
        Kind.TRUNCATE,
        Kind.TRUNCATE,
        Kind.WRITE_PAST_THE_END,
        Kind.MAKE_ANEW,
        Kind.CLOSE,
        Kind.OTHER_MODE
    };

    @ParameterizedTest
    @EnumSource(SizeMutant.class)
    void everyMutantIsCaught(SizeMutant mutant) throws InterruptedException {
        for (int seed = 0; seed < RUNS; seed++) {
            try {
                new SizeRun(Setting.values()[seed % 4], mutant).run(random(seed));
            } catch (AssertionError e) {
                return;
            }
        }
        fail(mutant + " survived " + RUNS + " runs");
    }

    private static List<List<Step>> random(int seed) {
        Random random = new Random(seed);
        List<List<Step>> changers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            List<Step> steps = new ArrayList<>();
            for (int n = 0; n < 60; n++) {
                Kind kind = KINDS[random.nextInt(KINDS.length)];
                int fails = Math.max(0, random.nextInt(6) - 3);
                steps.add(new Step(kind, 1 + random.nextInt(12), fails));
            }
            changers.add(steps);
        }
        return changers;
    }

    /** The same runs pass without a fault, so it is the fault that is caught. */
    @ParameterizedTest
    @EnumSource(Setting.class)
    void sizesWithoutAFaultAreNot(Setting setting) throws InterruptedException {
        for (int seed = 0; seed < RUNS / 16; seed++) {
            try {
                new SizeRun(setting, RememberedSize::new).run(random(seed));
            } catch (AssertionError e) {
                throw new AssertionError("seed " + seed, e);
            }
        }
    }
}
