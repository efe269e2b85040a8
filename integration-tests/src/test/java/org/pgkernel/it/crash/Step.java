package org.pgkernel.it.crash;

import org.pgkernel.testkit.golden.ScriptStatement;

/** One step of a workload that will be crashed. */
sealed interface Step {
    record Statement(ScriptStatement statement) implements Step {
        /** Long values shortened. */
        @Override
        public String toString() {
            return statement.toString().replaceAll("(\\w{8})\\w{24,}", "$1…");
        }
    }

    /** A commit that need not survive. */
    record CommitAsynchronously() implements Step {}

    record Checkpoint() implements Step {}

    /** The workers get so many steps, while their clock goes on by so much each. */
    record Work(int times, long nanos) implements Step {}

    /** Shut down and opened again. */
    record Reopen() implements Step {}
}
