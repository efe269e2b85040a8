package org.pgkernel.recovery;

import java.time.Clock;
import org.pgkernel.bufmgr.DropStrategy;
import org.pgkernel.smgr.SizePolicy;

/**
 * How to recover.
 *
 * @param sharedBuffers buffers of the pool, 8 KB each
 * @param dropStrategy how a dropped relation's buffers are found
 * @param sizePolicy when a remembered fork size is proof
 * @param fullPageWrites what checkpoints say from the end of recovery on; null keeps what the WAL
 *     said last
 * @param listener told of progress
 * @param clock for the times in checkpoints
 */
public record RecoveryOptions(
        int sharedBuffers,
        DropStrategy dropStrategy,
        SizePolicy sizePolicy,
        Boolean fullPageWrites,
        ReplayListener listener,
        Clock clock) {}
