package org.pgkernel.bufmgr;

import org.agrona.concurrent.AtomicBuffer;

/**
 * One bit a buffer: which buffers may be dirty. A checkpoint looks here instead of at every
 * descriptor. The descriptor's flag decides; a bit may be set for a clean buffer, but once {@code
 * markDirty} has returned, the bit of a dirty buffer is set.
 */
final class DirtyBitmap {
    private final AtomicBuffer words;

    DirtyBitmap(AtomicBuffer words) {
        this.words = words;
    }

    void set(int buffer) {
        int offset = buffer >>> 6 << 3;
        long bit = 1L << buffer;
        for (; ; ) {
            long word = words.getLongVolatile(offset);
            if ((word & bit) != 0 || words.compareAndSetLong(offset, word, word | bit)) {
                return;
            }
        }
    }

    /** Only under the buffer's header lock, with the buffer about to be clean. */
    void clear(int buffer) {
        int offset = buffer >>> 6 << 3;
        long bit = 1L << buffer;
        for (; ; ) {
            long word = words.getLongVolatile(offset);
            if ((word & bit) == 0 || words.compareAndSetLong(offset, word, word & ~bit)) {
                return;
            }
        }
    }

    boolean isSet(int buffer) {
        return (words.getLongVolatile(buffer >>> 6 << 3) & 1L << buffer) != 0;
    }

    /** The first set bit at or after {@code from} and below {@code end}, or -1. */
    int next(int from, int end) {
        int buffer = from;
        while (buffer < end) {
            long word = words.getLongVolatile(buffer >>> 6 << 3) & -1L << buffer;
            if (word != 0) {
                int found = (buffer & ~63) + Long.numberOfTrailingZeros(word);
                return found < end ? found : -1;
            }
            buffer = (buffer & ~63) + 64;
        }
        return -1;
    }
}
