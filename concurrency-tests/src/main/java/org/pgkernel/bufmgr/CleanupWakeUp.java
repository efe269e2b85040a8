package org.pgkernel.bufmgr;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Mode;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.Signal;
import org.openjdk.jcstress.annotations.State;

/** Who waits for a cleanup lock gets it once the other pin is released. (BUF-17) */
@JCStressTest(Mode.Termination)
@Outcome(id = "TERMINATED", expect = ACCEPTABLE, desc = "got the lock")
@Outcome(id = "STALE", expect = FORBIDDEN, desc = "sleeps on: a lost wake-up")
@State
public class CleanupWakeUp {
    private final int buffer = Words.buffer(2);

    @Actor
    public void waiter() {
        Words.WAITERS.lockForCleanup(buffer);
        Words.CONTENT.unlock(buffer);
    }

    @Signal
    public void release() {
        if (Words.DESCRIPTORS.unpin(buffer)) {
            Words.WAITERS.wake(buffer);
        }
    }
}
