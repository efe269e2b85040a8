package org.pgkernel.smgr;

import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.pgkernel.smgr.SizeRun.Kind;
import org.pgkernel.smgr.SizeRun.Setting;
import org.pgkernel.smgr.SizeRun.Step;

/**
 * SMGR-4 with threads: whatever two threads do to a relation, failures half-way included, nobody is
 * told a size that it did not have.
 */
class SizesBesideOthersProperties {
    @Provide
    Arbitrary<List<List<Step>>> changers() {
        Arbitrary<Step> step =
                Combinators.combine(
                                Arbitraries.of(Kind.class),
                                Arbitraries.integers().between(1, 12),
                                Arbitraries.of(0, 0, 0, 0, 1, 2))
                        .as(Step::new);
        return step.list().ofMinSize(5).ofMaxSize(60).list().ofSize(2);
    }

    @Property(tries = 150)
    void nobodyIsToldASizeThatWasNot(
            @ForAll Setting setting, @ForAll("changers") List<List<Step>> changers)
            throws InterruptedException {
        new SizeRun(setting, RememberedSize::new).run(changers);
    }
}
