package org.pgkernel.cluster;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.SleepingIdleStrategy;

/**
 * The cluster's workers: a thread each, or none, then {@link #doWork} is called by hand. A failure
 * that does not stop the kernel is logged, and the worker goes on; one that does ends all workers.
 */
final class Workers implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("org.pgkernel.cluster");

    /** How long a worker with nothing to do sleeps before it looks again. */
    private static final long NAP_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final KernelStop stop;
    private final List<Agent> agents = new ArrayList<>();
    private final List<AgentRunner> runners = new ArrayList<>();

    Workers(KernelStop stop, List<Agent> agents, boolean byHand) {
        this.stop = stop;
        for (Agent agent : agents) {
            Agent guarded = new Guarded(agent);
            this.agents.add(guarded);
            if (!byHand) {
                runners.add(
                        new AgentRunner(
                                new SleepingIdleStrategy(NAP_NANOS), this::failed, null, guarded));
            }
        }
    }

    void start() {
        for (AgentRunner runner : runners) {
            AgentRunner.startOnThread(
                    runner,
                    work -> {
                        Thread thread = new Thread(work, runner.agent().roleName());
                        thread.setDaemon(true);
                        return thread;
                    });
        }
    }

    boolean isByHand() {
        return runners.isEmpty();
    }

    /** One step of each, where no threads run them. */
    int doWork() {
        int work = 0;
        for (Agent agent : agents) {
            try {
                work += agent.doWork();
            } catch (Exception e) {
                throw e instanceof RuntimeException unchecked
                        ? unchecked
                        : new IllegalStateException(e);
            }
        }
        return work;
    }

    /** Ends naps: there is something to do. */
    void wake() {
        for (AgentRunner runner : runners) {
            Thread thread = runner.thread();
            if (thread != null && thread != AgentRunner.TOMBSTONE) {
                LockSupport.unpark(thread);
            }
        }
    }

    private void failed(Throwable failure) {
        if (!stop.isStopped()) {
            LOG.log(System.Logger.Level.WARNING, failure.getMessage());
        }
    }

    /** Ends the threads and waits for them. */
    @Override
    public void close() {
        for (AgentRunner runner : runners) {
            runner.close();
        }
    }

    /** Ends with the kernel, and ends the kernel when that is what its failure means. */
    private final class Guarded implements Agent {
        private final Agent agent;

        Guarded(Agent agent) {
            this.agent = agent;
        }

        @Override
        public int doWork() throws Exception {
            if (stop.isStopped()) {
                if (isByHand()) {
                    stop.check();
                }
                throw new AgentTerminationException();
            }
            try {
                return agent.doWork();
            } catch (Throwable failure) {
                if (KernelStop.isFatal(failure)) {
                    stop.stop(failure);
                }
                throw failure;
            }
        }

        @Override
        public String roleName() {
            return agent.roleName();
        }
    }
}
