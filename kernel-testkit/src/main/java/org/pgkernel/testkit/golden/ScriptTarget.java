package org.pgkernel.testkit.golden;

import java.util.List;

/** What golden scripts run on: a kernel, or a real PostgreSQL. */
public interface ScriptTarget {
    /** Carries out statements one by one while no session is at work; their results in one line. */
    String alone(List<GoldenScript.Statement> statements);

    /**
     * @param level isolation of each transaction that a session begins
     */
    ScriptSession open(String name, String level);

    /** Waits until a session may have finished or may wait; not for long. */
    void awaitChange();

    /** Ends all sessions of the run and what they left open. */
    void closeSessions();
}
