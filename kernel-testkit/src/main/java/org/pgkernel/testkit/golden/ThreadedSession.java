package org.pgkernel.testkit.golden;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A session whose steps run on a thread of its own. Keeps what both a kernel and PostgreSQL do
 * about errors: a failed transaction does nothing more until it is rolled back.
 */
public abstract class ThreadedSession implements ScriptSession {
    /** An error that the script may expect, in words. */
    public static final class Failure extends Exception {
        private static final long serialVersionUID = 1;

        public Failure(String words) {
            super(words, null, false, false);
        }
    }

    /** What has no result to show. */
    public static final String OK = "ok";

    private static final String NOT_DONE = "-";

    private final ExecutorService thread;
    private final Object change;

    /** Written by the session's thread only. */
    private boolean inTransaction;

    private boolean failed;

    private volatile boolean finished = true;
    private volatile String result = OK;
    private volatile Throwable broken;

    /**
     * @param change notified when a step is over
     */
    protected ThreadedSession(String name, Object change) {
        this.change = change;
        this.thread =
                Executors.newSingleThreadExecutor(
                        run -> {
                            Thread thread = new Thread(run, name);
                            thread.setDaemon(true);
                            return thread;
                        });
    }

    /**
     * Carries out a statement, on the session's thread.
     *
     * @return its result, {@link #OK} if there is none
     * @throws Failure if it failed in a way that a script may expect
     */
    protected abstract String execute(GoldenScript.Statement statement) throws Exception;

    /** Gives up what the session holds, on its thread. */
    protected abstract void release() throws Exception;

    @Override
    public final void start(GoldenScript.Step step) {
        finished = false;
        thread.execute(
                () -> {
                    try {
                        result = executeAll(step.statements());
                    } catch (Throwable e) {
                        broken = e;
                        result = "broken";
                    }
                    tellFinished();
                });
    }

    private void tellFinished() {
        synchronized (change) {
            finished = true;
            change.notifyAll();
        }
    }

    private String executeAll(List<GoldenScript.Statement> statements) throws Exception {
        List<String> results = new ArrayList<>();
        for (GoldenScript.Statement statement : statements) {
            String one = executeUnlessFailed(statement);
            if (!one.equals(OK)) {
                results.add(one);
            }
        }
        return results.isEmpty() ? OK : String.join(" ", results);
    }

    private String executeUnlessFailed(GoldenScript.Statement statement) throws Exception {
        boolean ends =
                statement.parsed() instanceof ScriptStatement.Commit
                        || statement.parsed() instanceof ScriptStatement.Rollback;
        if (failed && !ends && !(statement.parsed() instanceof ScriptStatement.RollbackTo)) {
            return NOT_DONE;
        }
        boolean undone = failed;
        GoldenScript.Statement now =
                failed && ends ? GoldenScript.Statement.of("rollback") : statement;
        failed = false;
        if (statement.parsed() instanceof ScriptStatement.Begin) {
            inTransaction = true;
        } else if (ends) {
            inTransaction = false;
        }
        try {
            String one = execute(now);
            return undone && ends ? "rolled back" : one;
        } catch (Failure e) {
            failed = inTransaction;
            return e.getMessage();
        }
    }

    @Override
    public final boolean finished() {
        return finished;
    }

    @Override
    public final String result() {
        if (broken != null) {
            throw new AssertionError("a session broke: " + broken, broken);
        }
        return result;
    }

    /** Ends the thread after {@link #release}; waits for it. */
    public final void close() {
        thread.execute(
                () -> {
                    try {
                        release();
                    } catch (Throwable e) {
                        broken = e;
                    }
                });
        thread.close();
        result();
    }

    /** The usual {@link ScriptTarget#awaitChange}: a step's end, or a moment. */
    public static void awaitChange(Object change) {
        synchronized (change) {
            try {
                change.wait(1);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(e);
            }
        }
    }
}
