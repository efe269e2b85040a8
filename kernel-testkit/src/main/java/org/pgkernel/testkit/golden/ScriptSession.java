package org.pgkernel.testkit.golden;

/** One session of a golden script, which carries out one step at a time. */
public interface ScriptSession {
    /** Begins a step and returns at once; the one before has finished. */
    void start(GoldenScript.Step step);

    /** True if nothing is going on: no step was begun, or the last one is over. */
    boolean finished();

    /**
     * True if the step waits for another session, and can do nothing more before that one does: its
     * search for a deadlock is over, too. As the session's lock manager knows it, not by its
     * silence.
     */
    boolean blocked();

    /** What the last step came to, in one line. */
    String result();
}
