package org.pgkernel.bufmgr;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Page;

/**
 * What a thread needs of its own to write and to check pages: a private page and a view. One a
 * thread, made at its first use.
 */
final class BackendScratch {
    private static final ThreadLocal<BackendScratch> SCRATCH =
            ThreadLocal.withInitial(BackendScratch::new);

    /** Freed with the thread. */
    private final MemorySegment memory = Arena.ofAuto().allocate(Page.SIZE, 4096);

    /** The private page. */
    final UnsafeBuffer copy = new UnsafeBuffer(memory.address(), Page.SIZE);

    /** Points wherever its user likes. */
    final UnsafeBuffer view = new UnsafeBuffer(0L, 0);

    /** Addresses of the pages of a run that is read at once. */
    final long[] addresses = new long[VectoredReader.MAX_RUN];

    /** Buffers of an extension by one page. */
    final int[] buffers = new int[1];

    private BackendScratch() {}

    static BackendScratch mine() {
        return SCRATCH.get();
    }

    long copyAddress() {
        return memory.address();
    }
}
