package org.pgkernel.cli.repro;

import org.pgkernel.cli.SharedBuffers;

/**
 * A real server's failover over the same statements, resume until it accepts connections as a
 * primary.
 */
record RivalMeasurement(
        String name,
        Operation operation,
        boolean toast,
        SharedBuffers sharedBuffers,
        int repetition,
        double seconds) {}
