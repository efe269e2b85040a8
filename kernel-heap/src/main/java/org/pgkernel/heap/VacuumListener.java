package org.pgkernel.heap;

/** Told of a vacuum's progress, by its thread, with no lock held. */
public interface VacuumListener {
    /** Tells nobody. */
    VacuumListener NONE = new VacuumListener() {};

    /**
     * The vacuum comes to a block. What this throws ends the vacuum there, with all done so far in
     * place: how a vacuum is cancelled.
     *
     * @param block unsigned
     * @param blocks how many there were when the vacuum began, unsigned
     */
    default void atBlock(HeapRelation relation, int block, int blocks) {}

    /** A sentence that somebody may want to read. */
    default void message(String text) {}
}
