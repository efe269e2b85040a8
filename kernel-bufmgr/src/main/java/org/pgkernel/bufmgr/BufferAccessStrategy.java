package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.pgkernel.base.Page;

/**
 * A ring of few buffers that one backend uses again and again for pages that it needs only once, so
 * that a scan of a large relation does not push everything else out. A page read through a ring
 * takes the buffer that the ring used longest ago, if nobody else wants what is in it: unpinned,
 * and used once at most, which was by this ring itself. Otherwise the pool's {@link Replacement}
 * gives a buffer, which takes that place in the ring.
 *
 * <p>A page that is in the pool already is found as always; through a ring it gets a use only if it
 * has none.
 *
 * <p>Belongs to one backend, one thread at a time: nothing here is guarded. The ring has no right
 * to its buffers; others may take them at any time, and each is looked at under its header lock
 * before it is taken again. (PostgreSQL: BufferAccessStrategyData, GetBufferFromRing,
 * AddBufferToRing, StrategyRejectBuffer, freelist.c.)
 */
public class BufferAccessStrategy {
    /** What the pages are needed for. The sizes are PostgreSQL's. */
    public enum Type {
        /**
         * A scan that only reads. 256 KiB, which a processor's cache holds. A dirty page whose
         * write would have to wait for WAL leaves the ring instead.
         */
        BULK_READ(256),
        /** COPY, CREATE TABLE AS: 16 MiB, so that WAL need not be flushed at each page. */
        BULK_WRITE(16 * 1024),
        /** VACUUM: 256 KiB; it flushes WAL itself rather than give its dirty pages to others. */
        VACUUM(256);

        private final int kib;

        Type(int kib) {
            this.kib = kib;
        }
    }

    private final Type type;

    /** Buffer + 1 of each place; 0: not filled. */
    private final int[] buffers;

    private int current;

    /** The last buffer came from the ring, not from the pool. */
    private boolean currentWasInRing;

    BufferAccessStrategy(Type type, int nbuffers) {
        this.type = type;
        buffers = new int[Math.min(nbuffers / 8, type.kib * 1024 / Page.SIZE)];
    }

    /**
     * A ring for this purpose, an eighth of the pool at most. (PostgreSQL: GetAccessStrategy.)
     *
     * @param nbuffers the pool's size
     */
    public static BufferAccessStrategy of(Type type, int nbuffers) {
        return new BufferAccessStrategy(type, nbuffers);
    }

    /**
     * A ring for a scan of so many blocks, or null when they are a quarter of the pool or fewer:
     * such a relation may stay in it. (PostgreSQL: initscan, heapam.c.)
     *
     * @param blocks unsigned
     */
    public static BufferAccessStrategy forScan(int blocks, int nbuffers) {
        return Integer.compareUnsigned(blocks, nbuffers / 4) > 0
                ? of(Type.BULK_READ, nbuffers)
                : null;
    }

    public Type type() {
        return type;
    }

    /** How many buffers it has at most. */
    public int ringSize() {
        return buffers.length;
    }

    /**
     * How many of its buffers one call may pin at once: all when they are only read, else half, so
     * that the ring does not have to write a page as soon as it was changed. (PostgreSQL 17:
     * GetAccessStrategyPinLimit.)
     */
    final int pinLimit() {
        return Math.max(1, type == Type.BULK_READ ? buffers.length : buffers.length / 2);
    }

    /**
     * Goes to the next place of the ring.
     *
     * @return its buffer, now pinned, or -1 when the pool has to give one
     */
    final int next(BufferDescriptors descriptors) {
        current = current + 1 < buffers.length ? current + 1 : 0;
        currentWasInRing = false;
        int buffer = buffers[current] - 1;
        if (buffer < 0) {
            return -1;
        }
        int state = descriptors.lockHeader(buffer);
        if (!mayReuse(refcount(state), usageCount(state))) {
            descriptors.unlockHeader(buffer, state);
            return -1;
        }
        descriptors.pinAndUnlockHeader(buffer, state);
        currentWasInRing = true;
        return buffer;
    }

    /** More than one use: somebody else used the page too, and it is his now. */
    boolean mayReuse(int pins, int uses) {
        return pins == 0 && uses <= 1;
    }

    /** The pool gave this buffer for the place that {@link #next} came to. */
    final void add(int buffer) {
        buffers[current] = buffer + 1;
    }

    /**
     * The buffer is dirty and its write would have to wait for WAL.
     *
     * @return true when another buffer is to be taken instead; it has left the ring then, so that a
     *     ring of nothing but such pages comes to an end
     */
    boolean reject(int buffer) {
        if (type != Type.BULK_READ || !currentWasInRing || buffers[current] != buffer + 1) {
            return false;
        }
        buffers[current] = 0;
        return true;
    }
}
