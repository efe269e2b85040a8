package org.pgkernel.testkit;

/**
 * The machine of a {@link SimulatedDisk} has crashed: the call did not return, nor does any later
 * one. An error, since no code may handle it but the test that asked for it.
 */
public final class SimulatedCrash extends Error {
    private static final long serialVersionUID = 1;

    SimulatedCrash(String message) {
        super(message, null, false, true);
    }
}
