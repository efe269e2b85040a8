package org.pgkernel.bufmgr;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;
import static org.pgkernel.bufmgr.BufferState.*;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A waiter sets its flag and looks whether it is alone; the other pin goes. First: the waiter need
 * not wait; second: the release will wake it. (BUF-17)
 */
@JCStressTest
@Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "the pin went before the flag came")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "the release found the flag")
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "both: a wake-up too many")
@Outcome(id = "0, 0", expect = FORBIDDEN, desc = "a lost wake-up")
@State
public class CleanupWaiterFlag {
    private final int buffer = Words.buffer(2);

    @Actor
    public void waiter(II_Result r) {
        int state = Words.DESCRIPTORS.lockHeader(buffer);
        Words.DESCRIPTORS.unlockHeader(buffer, state | PIN_COUNT_WAITER);
        r.r1 = refcount(Words.DESCRIPTORS.state(buffer)) == 1 ? 1 : 0;
    }

    @Actor
    public void release(II_Result r) {
        r.r2 = Words.DESCRIPTORS.unpin(buffer) ? 1 : 0;
    }
}
