package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.pgkernel.base.error.RefusedException;

/**
 * Cleanup locks: an exclusive content lock while nobody else has a pin. (PostgreSQL:
 * LockBufferForCleanup.)
 *
 * <p>Who finds other pins sets PIN_COUNT_WAITER, gives the content lock up (the others may need it
 * to finish) and parks. Only he clears the flag, however his wait ends; a second waiter sees it and
 * is refused, so there is never more than one whom a release could wake.
 *
 * <p>No wake-up is lost. The flag is set before the waiter looks at the pins for the last time, and
 * a release takes its pin away and looks at the flag in one atomic change. If that change comes
 * before the flag, the waiter sees the pin gone; if after, the release sees the flag, and wakes him
 * if one pin is left. {@link WaitTable} closes the gap between his look and his parking. A pin that
 * comes between the wake-up and his look makes him park again, and its release wakes him again, as
 * the flag is still set. Interrupts do not end the wait.
 *
 * <p>Pins that backends retain without using them are taken back, see {@link PinRetention}: after
 * the flag is set, so that no pin becomes idle unseen.
 */
final class PinWaiters {
    private final BufferDescriptors descriptors;
    private final LockTable content;
    private final WaitTable waits;
    private final PinRetention retention;

    PinWaiters(
            BufferDescriptors descriptors,
            LockTable content,
            WaitTable waits,
            PinRetention retention) {
        this.descriptors = descriptors;
        this.content = content;
        this.waits = waits;
        this.retention = retention;
    }

    /**
     * Returns with the cleanup lock. The caller has exactly one pin and no lock.
     *
     * @throws RefusedException when another thread waits for the same: both have a pin, so neither
     *     could ever get it
     */
    void lockForCleanup(int buffer) {
        for (; ; ) {
            content.lockExclusive(buffer);
            int state = descriptors.lockHeader(buffer);
            if (refcount(state) == 1) {
                descriptors.unlockHeader(buffer, state);
                return;
            }
            if ((state & PIN_COUNT_WAITER) != 0) {
                descriptors.unlockHeader(buffer, state);
                content.unlock(buffer);
                throw new RefusedException(
                        "two threads wait for the cleanup lock of one page "
                                + descriptors.place(buffer));
            }
            descriptors.unlockHeader(buffer, state | PIN_COUNT_WAITER);
            try {
                content.unlock(buffer);
                awaitOnlyPin(buffer);
            } finally {
                state = descriptors.lockHeader(buffer);
                descriptors.unlockHeader(buffer, state & ~PIN_COUNT_WAITER);
            }
        }
    }

    boolean tryLockForCleanup(int buffer) {
        if (!content.tryLockExclusive(buffer)) {
            return false;
        }
        if (isOnlyPin(buffer)) {
            return true;
        }
        content.unlock(buffer);
        return false;
    }

    /** True if there is one pin, the caller's. Idle pins are taken back for it. */
    boolean isOnlyPin(int buffer) {
        return refcount(descriptors.state(buffer)) == 1
                || retention.takeBack(buffer) != 0 && refcount(descriptors.state(buffer)) == 1;
    }

    /** {@link PinRetention#takeBack}, for who waits for pins in his own way. */
    int takeBackIdle(int buffer) {
        return retention.takeBack(buffer);
    }

    void wake(int buffer) {
        waits.wake(buffer);
    }

    private void awaitOnlyPin(int buffer) {
        retention.takeBack(buffer); // after the flag was set: who makes a pin idle now sees it
        waits.enter(buffer);
        try {
            while (refcount(descriptors.state(buffer)) != 1) {
                waits.await(buffer);
            }
        } finally {
            waits.leave(buffer);
        }
    }
}
