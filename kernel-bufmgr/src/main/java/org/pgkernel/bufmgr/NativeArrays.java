package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.NativeMemory;

/**
 * Lazily reserved, zeroed arrays outside the heap, each below 2 GiB and wrapped once, and stretches
 * of any size without a wrapper; released together. Made and released by one thread.
 */
final class NativeArrays {
    private static final int MOST = 16;
    private static final long HUGE_PAGE = 2L << 20;

    private final UnsafeBuffer[] arrays = new UnsafeBuffer[MOST];
    private final long[] addresses = new long[MOST];
    private final long[] lengths = new long[MOST];
    private int count;

    /**
     * @return an array of {@code bytes} zeros; what was reserved before is released when the system
     *     refuses
     */
    UnsafeBuffer reserve(long bytes) {
        assert bytes > 0 && bytes < 1L << 31 : "array of 2 GiB or more";
        UnsafeBuffer array = new UnsafeBuffer(reserveAddress(bytes), (int) bytes);
        arrays[count - 1] = array;
        return array;
    }

    /**
     * The same of any size, for who takes care of bounds himself. @return the address, a multiple
     * of the system's page size
     */
    long reserveAddress(long bytes) {
        boolean reserved = false;
        try {
            addresses[count] = NativeMemory.reserve(bytes);
            reserved = true;
        } finally {
            if (!reserved) {
                release();
            }
        }
        if (bytes >= HUGE_PAGE) {
            NativeMemory.adviseHuge(addresses[count], bytes);
        }
        lengths[count] = bytes;
        return addresses[count++];
    }

    /** Gives the memory back; later use is an index error, not a crash. */
    void release() {
        while (count > 0) {
            count--;
            if (arrays[count] != null) {
                arrays[count].wrap(0L, 0);
            }
            NativeMemory.release(addresses[count], lengths[count]);
        }
    }
}
