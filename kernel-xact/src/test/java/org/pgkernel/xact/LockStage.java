package org.pgkernel.xact;

import java.util.ArrayList;
import java.util.List;

/**
 * Sessions on threads of their own, stepped one at a time: a step returns when it is done or sleeps
 * for a lock. The clock moves when it is told to.
 */
final class LockStage implements LockParking, AutoCloseable {
    static final long DEADLOCK_TIMEOUT = 1_000;

    /** A session and its thread. All fields are guarded by the stage. */
    final class Actor {
        final TransactionSession session;
        final SessionLocks locks;
        final Thread thread;
        private Runnable step;
        private boolean parked;
        private boolean permit;
        private long deadline;
        private Throwable failure;

        private Actor(TransactionSession session) {
            this.session = session;
            locks = session.locks();
            thread = new Thread(this::run, "session " + session.slot);
            thread.setDaemon(true);
            thread.start();
        }

        private void run() {
            try {
                while (true) {
                    Runnable next = nextStep();
                    Throwable thrown = null;
                    try {
                        next.run();
                    } catch (RuntimeException | AssertionError e) {
                        thrown = e;
                    }
                    synchronized (LockStage.this) {
                        failure = thrown;
                        step = null;
                        LockStage.this.notifyAll();
                    }
                }
            } catch (InterruptedException e) {
                // The stage is closed.
            }
        }

        private Runnable nextStep() throws InterruptedException {
            synchronized (LockStage.this) {
                while (step == null) {
                    LockStage.this.wait();
                }
                return step;
            }
        }

        /** Takes a step. @return true if it is done, false if it sleeps */
        boolean does(Runnable action) {
            attempts(action);
            return isDone();
        }

        /** The same; its failure is asked for later. */
        void attempts(Runnable action) {
            synchronized (LockStage.this) {
                assert step == null : "it has not ended its last step";
                step = action;
                failure = null;
                LockStage.this.notifyAll();
            }
            settle();
        }

        boolean isDone() {
            synchronized (LockStage.this) {
                if (step == null && failure instanceof Error error) {
                    throw error;
                }
                if (step == null && failure instanceof RuntimeException exception) {
                    throw exception;
                }
                return step == null;
            }
        }

        /** How its last step failed, null if it did not. */
        Throwable failure() {
            synchronized (LockStage.this) {
                assert step == null : "it sleeps still";
                return failure;
            }
        }

        boolean sleeps() {
            synchronized (LockStage.this) {
                return step != null;
            }
        }
    }

    private final List<Actor> actors = new ArrayList<>();
    private final TransactionManager manager;
    private long now;

    LockStage(int sessions) {
        this(XactFixture.module(1000), new XactFixture.CountingWal(), sessions);
    }

    LockStage(XactModule module, XactWal wal, int sessions) {
        manager =
                TransactionManager.start(
                        module,
                        XactFixture.options(sessions, 2),
                        wal,
                        XactFixture.SILENT,
                        (locators, count) -> {},
                        () -> 1,
                        new LockOptions(DEADLOCK_TIMEOUT, this));
        for (int i = 0; i < sessions; i++) {
            TransactionSession session = manager.openSession(5);
            session.begin();
            actors.add(new Actor(session));
        }
    }

    TransactionManager manager() {
        return manager;
    }

    Actor actor(int number) {
        return actors.get(number);
    }

    /** Returns once every actor has ended its step or sleeps. */
    private synchronized void settle() {
        try {
            while (actors.stream().anyMatch(this::runs)) {
                wait();
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private boolean runs(Actor actor) {
        return actor.step != null && !(actor.parked && !wakes(actor));
    }

    private boolean wakes(Actor actor) {
        return actor.permit || now >= actor.deadline || actor.thread.isInterrupted();
    }

    /** Lets time pass for all. */
    void passes(long nanos) {
        synchronized (this) {
            now += nanos;
            notifyAll();
        }
        settle();
    }

    /** The actor's thread is interrupted. */
    void interrupt(Actor actor) {
        actor.thread.interrupt();
        settle();
    }

    @Override
    public synchronized long nanoTime() {
        return now;
    }

    @Override
    public synchronized void park(Object lock, long nanos) {
        Actor actor = current(Thread.currentThread());
        actor.deadline = nanos == Long.MAX_VALUE ? nanos : now + nanos;
        actor.parked = true;
        notifyAll();
        try {
            while (!wakes(actor)) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        actor.parked = false;
        actor.permit = false;
    }

    @Override
    public synchronized void unpark(Thread thread) {
        current(thread).permit = true;
        notifyAll();
    }

    private Actor current(Thread thread) {
        return actors.stream().filter(a -> a.thread == thread).findFirst().orElseThrow();
    }

    @Override
    public void close() {
        actors.forEach(actor -> actor.thread.interrupt());
    }
}
