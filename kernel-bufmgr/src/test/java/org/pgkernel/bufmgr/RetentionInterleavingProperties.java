package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertNull;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.bufmgr.RetentionAdversary.Mutant;

/** BUF-24: retained pins are what they should be whatever others do between two steps. */
class RetentionInterleavingProperties {
    @Property(tries = 2_000)
    void whateverOthersDoBetweenTheSteps(@ForAll long seed) {
        Throwable found = RetentionMutantsTest.run(Mutant.NONE, seed);
        assertNull(found, () -> "seed " + seed + ": " + found);
    }
}
