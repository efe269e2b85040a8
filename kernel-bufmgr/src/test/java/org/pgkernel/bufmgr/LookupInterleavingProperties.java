package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.assertNull;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.pgkernel.bufmgr.LookupAdversary.Mutant;

/** The optimistic lookup keeps its promises whatever others do between its steps. */
class LookupInterleavingProperties {
    @Property(tries = 3_000)
    void whateverOthersDoBetweenItsSteps(@ForAll long seed) {
        Throwable found = LookupMutantsTest.run(Mutant.NONE, seed);
        assertNull(found, () -> "seed " + seed + ": " + found);
    }
}
