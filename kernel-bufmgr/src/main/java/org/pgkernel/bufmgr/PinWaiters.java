package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.pgkernel.base.error.RefusedException;

/**
 * Cleanup locks: an exclusive content lock while nobody else has a pin. (PostgreSQL:
 * LockBufferForCleanup.)
 */
final class PinWaiters {
    private final BufferDescriptors descriptors;
    private final LockTable content;
    private final WaitTable waits = new WaitTable(16);

    PinWaiters(BufferDescriptors descriptors, LockTable content) {
        this.descriptors = descriptors;
        this.content = content;
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
            content.unlock(buffer);
            awaitOnlyPin(buffer);
        }
    }

    boolean tryLockForCleanup(int buffer) {
        if (!content.tryLockExclusive(buffer)) {
            return false;
        }
        if (refcount(descriptors.state(buffer)) == 1) {
            return true;
        }
        content.unlock(buffer);
        return false;
    }

    void wake(int buffer) {
        waits.wake(buffer);
    }

    private void awaitOnlyPin(int buffer) {
        waits.enter(buffer);
        try {
            while (refcount(descriptors.state(buffer)) != 1) {
                waits.await(buffer);
            }
        } finally {
            waits.leave(buffer);
        }
        int state = descriptors.lockHeader(buffer);
        descriptors.unlockHeader(buffer, state & ~PIN_COUNT_WAITER);
    }
}
