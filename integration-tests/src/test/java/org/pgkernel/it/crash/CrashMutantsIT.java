package org.pgkernel.it.crash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.pgkernel.it.crash.MutantLoader.Idle;

/**
 * A kernel that is wrong on purpose must not pass the crash matrix: or the matrix proves nothing.
 */
class CrashMutantsIT {
    private static final int SEEDS = 12;

    @Test
    void withoutAMutantTheLoaderItselfChangesNothing() throws Exception {
        assertEquals(null, run(2, true));
    }

    @Test
    void aCommitThatIsNotFlushedIsFound() throws Exception {
        finds(new Idle("org.pgkernel.cluster.TransactionWal", "flush"));
    }

    @Test
    void aPageThatIsWrittenBeforeItsWalIsFound() throws Exception {
        finds(new Idle("org.pgkernel.recovery.MinimumRecoveryPoint", "beforeWrite"));
    }

    @Test
    void pagesThatAreNotLoggedWholeAreFoundTorn() throws Exception {
        assertNotNull(run(SEEDS, false));
    }

    @Test
    void aTruncationThatIsNotLoggedIsFound() throws Exception {
        finds(new Idle("org.pgkernel.fsm.RelationTruncation", "log"));
    }

    @Test
    void aCheckpointThatSyncsNothingIsFound() throws Exception {
        finds(new Idle("org.pgkernel.smgr.SyncRequests", "process"));
    }

    @Test
    void aCheckpointThatLeavesTransactionStatusInMemoryIsFound() throws Exception {
        finds(new Idle("org.pgkernel.xact.Slru", "checkpoint"));
    }

    @Test
    void unloggedTablesThatAreNotEmptiedAreFound() throws Exception {
        finds(new Idle("org.pgkernel.recovery.UnloggedRelations", "cleanUp"));
    }

    private static void finds(Idle idle) throws Exception {
        assertNotNull(run(SEEDS, true, idle), () -> "not found: " + idle);
    }

    private static String run(int seeds, boolean fullPageWrites, Idle... idle) throws Exception {
        MutantLoader loader = new MutantLoader(List.of(idle));
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        // Where ServiceLoader looks for the kernel's modules.
        thread.setContextClassLoader(loader);
        try {
            Object found =
                    loader.loadClass(MutantSearch.class.getName())
                            .getMethod("find", int.class, boolean.class)
                            .invoke(null, seeds, fullPageWrites);
            assertTrue(
                    loader.replaced() >= idle.length,
                    () -> "no such method any more: " + Arrays.toString(idle));
            if (found != null) {
                System.out.println(
                        "found "
                                + Arrays.toString(idle)
                                + ": "
                                + ((String) found).lines().limit(2).toList());
            }
            return (String) found;
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
