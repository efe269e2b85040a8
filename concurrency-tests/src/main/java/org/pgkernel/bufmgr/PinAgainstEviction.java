package org.pgkernel.bufmgr;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;
import static org.pgkernel.bufmgr.BufferState.*;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** A page is pinned, or its buffer given to another page; first: pinned, second: evicted. */
@JCStressTest
@Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "the eviction found the pin")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "the pin found another tag, or a changed word")
@Outcome(id = "1, 1", expect = FORBIDDEN, desc = "a pinned page was thrown out")
@Outcome(id = "0, 0", expect = FORBIDDEN, desc = "each gave way to the other")
@State
public class PinAgainstEviction {
    private final int buffer = Words.buffer(1); // pinned by the evictor

    /** As the optimistic lookup: word, tag, pin unless the word changed. */
    @Actor
    public void pin(II_Result r) {
        for (; ; ) {
            long word = Words.DESCRIPTORS.word(buffer);
            if ((word & LOCKED) != 0) {
                Thread.onSpinWait();
                continue;
            }
            if (!Words.DESCRIPTORS.hasTag(buffer, 1, 1, 1, 0, 1)) {
                return;
            }
            if (Words.DESCRIPTORS.pinUnchanged(buffer, word, MAX_USAGE_COUNT)) {
                r.r1 = 1;
                return;
            }
        }
    }

    /** As the allocator gives a victim another tag. */
    @Actor
    public void evict(II_Result r) {
        int state = Words.DESCRIPTORS.lockHeader(buffer);
        if (refcount(state) == 1) {
            Words.DESCRIPTORS.setTag(buffer, 1, 1, 1, 0, 2);
            r.r2 = 1;
        }
        Words.DESCRIPTORS.unlockHeader(buffer, state);
    }
}
