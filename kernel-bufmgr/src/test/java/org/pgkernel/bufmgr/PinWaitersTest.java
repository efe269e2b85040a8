package org.pgkernel.bufmgr;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.ref.Reference;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.pgkernel.base.error.RefusedException;

/** BUF-17: the one waiter for a page's cleanup lock. */
@Timeout(60)
class PinWaitersTest {
    private static final int BUFFER = 3;

    private final PoolMemory memory =
            new PoolMemory(16, BufferTable.bucketsFor(16), BufferTable.PARTITIONS);
    private final BufferDescriptors descriptors =
            new BufferDescriptors(memory, new DirtyBitmap(memory.dirtyBits, 16));
    private final LockTable content = new LockTable(memory.contentLocks, 3, new WaitTable(4));

    /** Set when a waiter is about to park, with the stripe's lock held. */
    private volatile CountDownLatch parking = new CountDownLatch(1);

    private volatile Error failure;

    private final WaitTable waits =
            new WaitTable(1) {
                @Override
                void await(int index) {
                    parking.countDown();
                    if (failure != null) {
                        throw failure;
                    }
                    super.await(index);
                }
            };
    private final PinRetention retention =
            new PinRetention(descriptors, waits, PinRetention.When.ALWAYS);
    private final PinWaiters waiters = new PinWaiters(descriptors, content, waits, retention);
    private final AtomicReference<Throwable> failed = new AtomicReference<>();

    @AfterEach
    void release() {
        memory.release();
        Reference.reachabilityFence(memory);
    }

    @Test
    void aWaiterThatFailsTakesItsFlagAlong() {
        descriptors.pin(BUFFER);
        descriptors.pin(BUFFER); // somebody else's
        failure = new StackOverflowError("planted");
        assertSame(
                failure,
                assertThrows(StackOverflowError.class, () -> waiters.lockForCleanup(BUFFER)));
        assertEquals(0, descriptors.state(BUFFER) & BufferState.PIN_COUNT_WAITER);
        assertFalse(content.isHeld(BUFFER));
        failure = null;
        unpin();
        waiters.lockForCleanup(BUFFER); // as if nothing had been
        content.unlock(BUFFER);
    }

    @Test
    void anInterruptEndsNoWaitAndIsNotLost() throws Exception {
        descriptors.pin(BUFFER);
        descriptors.pin(BUFFER);
        AtomicBoolean interrupted = new AtomicBoolean();
        Thread waiter =
                start(
                        () -> {
                            waiters.lockForCleanup(BUFFER);
                            interrupted.set(Thread.interrupted());
                            content.unlock(BUFFER);
                        });
        for (int i = 0; i < 3; i++) {
            ReadAndExtendTest.await(parking);
            waiter.interrupt();
        }
        assertNotEquals(0, descriptors.state(BUFFER) & BufferState.PIN_COUNT_WAITER);
        assertThrows(RefusedException.class, () -> waiters.lockForCleanup(BUFFER));
        assertTrue(waiter.isAlive());
        unpin();
        join(waiter);
        assertTrue(interrupted.get());
        assertEquals(0, descriptors.state(BUFFER) & BufferState.PIN_COUNT_WAITER);
    }

    @Test
    void aPinThatComesAndGoesDuringTheWaitWakesAgain() throws Exception {
        descriptors.pin(BUFFER);
        descriptors.pin(BUFFER);
        Thread waiter =
                start(
                        () -> {
                            waiters.lockForCleanup(BUFFER);
                            content.unlock(BUFFER);
                        });
        ReadAndExtendTest.await(parking);
        descriptors.pin(BUFFER);
        unpin(); // two left: no wake-up
        assertTrue(waiter.isAlive());
        unpin();
        join(waiter);
    }

    /** Releases race with waits at every point; a lost wake-up hangs. */
    @Test
    void noWakeUpIsLost() throws Exception {
        descriptors.pin(BUFFER); // the waiter's own
        AtomicBoolean stop = new AtomicBoolean();
        Thread[] pinners = new Thread[3];
        for (int t = 0; t < pinners.length; t++) {
            pinners[t] =
                    start(
                            () -> {
                                while (!stop.get()) {
                                    descriptors.pin(BUFFER);
                                    content.lockShared(BUFFER);
                                    content.unlock(BUFFER);
                                    unpin();
                                    Thread.onSpinWait();
                                }
                            });
        }
        Thread waiter =
                start(
                        () -> {
                            for (int i = 0; i < 20_000; i++) {
                                waiters.lockForCleanup(BUFFER);
                                content.unlock(BUFFER);
                            }
                        });
        join(waiter);
        stop.set(true);
        for (Thread t : pinners) {
            join(t);
        }
        assertEquals(1, BufferState.refcount(descriptors.state(BUFFER)));
        assertEquals(0, descriptors.state(BUFFER) & BufferState.PIN_COUNT_WAITER);
    }

    private void unpin() {
        if (descriptors.unpin(BUFFER)) {
            waiters.wake(BUFFER);
        }
    }

    private Thread start(Runnable body) {
        Thread t =
                new Thread(
                        () -> {
                            try {
                                body.run();
                            } catch (Throwable e) {
                                failed.compareAndSet(null, e);
                            }
                        });
        t.start();
        return t;
    }

    private void join(Thread t) throws InterruptedException {
        t.join(40_000);
        assertFalse(t.isAlive(), "a wake-up was lost");
        assertNull(failed.get());
    }
}
