package org.pgkernel.bufmgr;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;
import static org.pgkernel.bufmgr.BufferState.*;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A backend makes its pin idle and looks for the flag; a cleanup waiter sets his flag and takes
 * idle pins back. First: who took the pin, 1 the waiter, 0 not he; second: pins once both are
 * through, the waiter's own among them. (BUF-24)
 */
@JCStressTest
@Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "the waiter found the pin idle")
@Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "the backend found the flag")
@Outcome(id = "0, 2", expect = FORBIDDEN, desc = "neither saw the other: the waiter sleeps on")
@Outcome(id = "1, 2", expect = FORBIDDEN, desc = "taken, and still in the count")
@State
public class RetainedPinAndWaiterFlag {
    private final PinRetention retention = Words.retention(PinRetention.When.ALWAYS);
    private final int buffer = Words.buffer(2);
    private final RetainedPins backend = retention.pins();

    public RetainedPinAndWaiterFlag() {
        backend.release(buffer);
        if (!backend.pin(buffer)) { // active from here on
            throw new AssertionError("not retained");
        }
    }

    @Actor
    public void backend() {
        backend.release(buffer);
    }

    @Actor
    public void waiter(II_Result r) {
        int state = Words.DESCRIPTORS.lockHeader(buffer);
        Words.DESCRIPTORS.unlockHeader(buffer, state | PIN_COUNT_WAITER);
        r.r1 = retention.takeBack(buffer);
    }

    @Arbiter
    public void look(II_Result r) {
        r.r2 = refcount(Words.DESCRIPTORS.state(buffer));
    }
}
