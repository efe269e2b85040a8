package org.pgkernel.bufmgr;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * A pin as a scope, with the page and its content lock: made by {@link BackendBuffers#pin}, closed
 * once, and then used again for another page, so keep no reference to a closed one.
 *
 * <pre>
 *  try (BufferPin pin = backend.pin(relation, ForkNumber.MAIN, 7, ReadMode.NORMAL);
 *          ContentLock lock = pin.lockExclusive()) {
 *      pin.page().putInt(...);
 *      pin.markDirty();
 *  }
 * </pre>
 */
public final class BufferPin implements AutoCloseable {
    private final BackendBuffers backend;
    private final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    private final ContentLock lock;
    private BufferPool pool;

    /** The buffer; -1 when closed. */
    private int buffer = -1;

    /** Next of the backend's unused ones. */
    BufferPin next;

    BufferPin(BackendBuffers backend) {
        this.backend = backend;
        lock = new ContentLock(this);
    }

    void hold(int buffer, BufferPool pool) {
        this.buffer = buffer;
        this.pool = pool;
        pool.wrap(buffer, page);
    }

    /** The pool's number of the buffer. */
    public int buffer() {
        requireOpen();
        return buffer;
    }

    public int block() {
        return pool.block(buffer());
    }

    /** The page, 8192 bytes from index 0; to be read or changed only as the locks allow. */
    public UnsafeBuffer page() {
        requireOpen();
        return page;
    }

    public ContentLock lockShared() {
        backend.lockShared(buffer());
        return lock;
    }

    public ContentLock lockExclusive() {
        backend.lockExclusive(buffer());
        return lock;
    }

    /**
     * @return null when the lock cannot be had at once; try-with-resources closes no null
     */
    public ContentLock tryLockExclusive() {
        return backend.tryLockExclusive(buffer()) ? lock : null;
    }

    /**
     * @return null when the lock cannot be had at once
     */
    public ContentLock tryLockShared() {
        return backend.tryLockShared(buffer()) ? lock : null;
    }

    /** See {@link BackendBuffers#lockForCleanup}. */
    public ContentLock lockForCleanup() {
        backend.lockForCleanup(buffer());
        return lock;
    }

    /**
     * @return null when the lock cannot be had at once
     */
    public ContentLock tryLockForCleanup() {
        return backend.tryLockForCleanup(buffer()) ? lock : null;
    }

    /** The lock with which the page came: from a locking mode, or an extension that locks. */
    public ContentLock heldLock() {
        requireOpen();
        return lock;
    }

    public void markDirty() {
        backend.markDirty(buffer());
    }

    /** See {@link BackendBuffers#markDirtyHint}. */
    public void markDirtyHint(boolean standardPage) {
        backend.markDirtyHint(buffer(), standardPage);
    }

    void unlock() {
        backend.unlock(buffer());
    }

    /** Releases the pin. The lock must have been closed before. */
    @Override
    public void close() {
        int held = buffer();
        backend.release(held);
        buffer = -1;
        page.wrap(0L, 0);
        backend.unused(this);
    }

    private void requireOpen() {
        if (buffer < 0) {
            throw new IllegalStateException("the pin is closed backend=" + backend.name());
        }
    }
}
