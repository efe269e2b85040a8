package org.pgkernel.recovery;

import java.time.Clock;
import org.pgkernel.bufmgr.BufferPoolOptions;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SizePolicy;

/**
 * How to recover.
 *
 * @param sharedBuffers buffers of the pool, 8 KB each
 * @param dropStrategy how a dropped relation's buffers are found
 * @param lookupDivisor the strategy LOOKUP probes when fewer than {@code sharedBuffers} divided by
 *     this many blocks are to be dropped
 * @param sizePolicy when a remembered fork size is proof
 * @param fullPageWrites what checkpoints say from the end of recovery on; null keeps what the WAL
 *     said last
 * @param listener told of progress
 * @param clock for the times in checkpoints
 * @param fsmThreshold redo makes no free space map for a heap of at most so many blocks; 0, as
 *     PostgreSQL 15 has it, makes one for all
 */
public record RecoveryOptions(
        int sharedBuffers,
        DropStrategy dropStrategy,
        int lookupDivisor,
        SizePolicy sizePolicy,
        Boolean fullPageWrites,
        ReplayListener listener,
        Clock clock,
        int fsmThreshold) {
    /** With PostgreSQL's lookup divisor and free space maps. */
    public RecoveryOptions(
            int sharedBuffers,
            DropStrategy dropStrategy,
            SizePolicy sizePolicy,
            Boolean fullPageWrites,
            ReplayListener listener,
            Clock clock) {
        this(
                sharedBuffers,
                dropStrategy,
                BufferPoolOptions.DEFAULT_LOOKUP_DIVISOR,
                sizePolicy,
                fullPageWrites,
                listener,
                clock,
                0);
    }
}
