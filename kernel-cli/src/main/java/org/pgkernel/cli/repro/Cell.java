package org.pgkernel.cli.repro;

import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.cli.SharedBuffers;

/** One point of the experiment: a data set met by a pool size and a strategy. */
record Cell(
        Operation operation, boolean toast, SharedBuffers sharedBuffers, DropStrategy strategy) {}
