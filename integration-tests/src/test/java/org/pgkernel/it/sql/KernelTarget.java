package org.pgkernel.it.sql;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.pgkernel.cluster.Cluster;
import org.pgkernel.cluster.Isolation;
import org.pgkernel.testkit.golden.GoldenScript;
import org.pgkernel.testkit.golden.ScriptSession;
import org.pgkernel.testkit.golden.ScriptTarget;
import org.pgkernel.testkit.golden.ThreadedSession;
import org.pgkernel.xact.LockParking;

/**
 * Golden scripts on the kernel. A session waits if it sleeps in the lock table without a time
 * limit: it has looked for a deadlock then, and only another session wakes it.
 */
public final class KernelTarget implements ScriptTarget {
    /**
     * Where sessions sleep; tells who does. A sleep with a time limit takes no time, its clock goes
     * on instead: a vacuum that waits for a while to cut its table is not waited for.
     */
    public static final class Parking implements LockParking {
        private final Set<Thread> asleep = new HashSet<>();

        /** Woken before they slept. */
        private final Set<Thread> woken = new HashSet<>();

        private final Object change = new Object();
        private final AtomicLong passed = new AtomicLong();

        @Override
        public long nanoTime() {
            return System.nanoTime() + passed.get();
        }

        @Override
        public void park(Object lock, long nanos) {
            Thread thread = Thread.currentThread();
            synchronized (this) {
                if (woken.remove(thread)) {
                    return;
                }
                if (nanos != Long.MAX_VALUE) {
                    passed.addAndGet(nanos);
                    return;
                }
                asleep.add(thread);
            }
            synchronized (change) {
                change.notifyAll();
            }
            LockSupport.parkNanos(lock, nanos);
            synchronized (this) {
                asleep.remove(thread);
                woken.remove(thread);
            }
        }

        /** From here on it does not sleep, whenever it is that it notices. */
        @Override
        public void unpark(Thread thread) {
            synchronized (this) {
                asleep.remove(thread);
                woken.add(thread);
            }
            LockSupport.unpark(thread);
        }

        private synchronized boolean sleeps(Thread thread) {
            return asleep.contains(thread);
        }
    }

    private final Cluster cluster;
    private final Parking parking;
    private final List<Session> open = new ArrayList<>();

    /**
     * @param cluster runs with {@code parking}, and looks for deadlocks at once
     */
    public KernelTarget(Cluster cluster, Parking parking) {
        this.cluster = cluster;
        this.parking = parking;
    }

    @Override
    public String alone(List<GoldenScript.Statement> statements) {
        List<String> results = new ArrayList<>();
        try (KernelSql sql = new KernelSql(cluster)) {
            for (GoldenScript.Statement statement : statements) {
                String result = sql.execute(statement.parsed());
                if (!result.equals(ThreadedSession.OK)) {
                    results.add(result);
                }
            }
        } catch (ThreadedSession.Failure e) {
            throw new IllegalStateException(e);
        }
        return String.join(" ", results);
    }

    @Override
    public ScriptSession open(String name, String level) {
        Session session =
                new Session(
                        name,
                        level.equals("repeatable read")
                                ? Isolation.REPEATABLE_READ
                                : Isolation.READ_COMMITTED);
        open.add(session);
        return session;
    }

    @Override
    public void awaitChange() {
        ThreadedSession.awaitChange(parking.change);
    }

    @Override
    public void closeSessions() {
        open.forEach(ThreadedSession::close);
        open.clear();
    }

    private final class Session extends ThreadedSession {
        private final KernelSql sql;
        private volatile Thread thread;

        Session(String name, Isolation isolation) {
            super(name, parking.change);
            sql = new KernelSql(cluster, isolation);
        }

        @Override
        protected String execute(GoldenScript.Statement statement) throws Exception {
            thread = Thread.currentThread();
            return sql.execute(statement.parsed());
        }

        @Override
        public boolean blocked() {
            return thread != null && parking.sleeps(thread);
        }

        @Override
        protected void release() {
            sql.close();
        }
    }
}
