package org.pgkernel.bufmgr;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;
import static org.pgkernel.bufmgr.BufferState.DIRTY;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * {@link DirtyFlagAndBitmap} with two threads, as jcstress runs three only where there are three
 * processors. Once all is done a dirty page is found in the bitmap; first: dirty, second: found.
 * (BUF-4)
 */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "dirty and found")
@Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "cleaned last")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "a bit too many: who finds it looks at the flag")
@Outcome(id = "1, 0", expect = FORBIDDEN, desc = "a checkpoint would miss the page")
@State
public class DirtiedWhileCleaned {
    private final int buffer = Words.buffer(1);

    @Actor
    public void change() {
        Words.DESCRIPTORS.markDirty(buffer);
    }

    /** As a writer whose page did not change meanwhile. */
    @Actor
    public void clean() {
        int state = Words.DESCRIPTORS.lockHeader(buffer);
        Words.DESCRIPTORS.cleanAndUnlockHeader(buffer, state);
    }

    @Arbiter
    public void look(II_Result r) {
        r.r1 = (Words.DESCRIPTORS.state(buffer) & DIRTY) != 0 ? 1 : 0;
        r.r2 = Words.DIRTY_BITS.next(buffer, buffer + 1) == buffer ? 1 : 0;
    }
}
