package org.pgkernel.bufmgr;

/** A content lock as a scope; of the pin it was taken through, in whatever mode. */
public final class ContentLock implements AutoCloseable {
    private final BufferPin pin;

    ContentLock(BufferPin pin) {
        this.pin = pin;
    }

    /** Gives the lock up. */
    @Override
    public void close() {
        pin.unlock();
    }
}
