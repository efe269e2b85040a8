package org.pgkernel.bufmgr;

/**
 * Where the hand is and how fast it goes: what the background writer paces itself by. Both counts
 * only grow, so that whoever asks takes differences, and nobody disturbs another. (PostgreSQL:
 * StrategySyncStart, freelist.c, whose allocation count starts anew at each call.)
 *
 * @param buffer the buffer that the hand will look at next; {@link BufferReplacement#after} tells
 *     how it goes on
 * @param ticks how often the hand has moved; a pass is {@code nbuffers} of them
 * @param allocations buffers handed out, those freed or never used before too, but not those that a
 *     ring took from itself
 */
record SyncStart(int buffer, long ticks, long allocations) {}
