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
 * A backend uses its idle pin again, by the page's tag; somebody takes the pin back and gives the
 * buffer to another page. First: the backend has the page; second: it has left. (BUF-24)
 */
@JCStressTest
@Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "used: there is nothing to take")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "taken: the backend has to look the page up")
@Outcome(id = "1, 1", expect = FORBIDDEN, desc = "another page under a pin")
@Outcome(id = "0, 0", expect = FORBIDDEN, desc = "each gave way to the other")
@State
public class RetainedPinUsedOrTaken {
    private final PinRetention retention = Words.retention(PinRetention.When.ALWAYS);
    private final int buffer = Words.buffer(1);
    private final RetainedPins backend = retention.pins();

    public RetainedPinUsedOrTaken() {
        backend.release(buffer);
    }

    @Actor
    public void backend(II_Result r) {
        r.r1 = backend.pin(1, 1, 1, 0, 1) == buffer ? 1 : 0;
    }

    @Actor
    public void evict(II_Result r) {
        retention.takeBack(buffer);
        int state = Words.DESCRIPTORS.lockHeader(buffer);
        if (refcount(state) == 0) {
            Words.DESCRIPTORS.setTag(buffer, 1, 1, 1, 0, 2);
            r.r2 = 1;
        }
        Words.DESCRIPTORS.unlockHeader(buffer, state);
    }
}
