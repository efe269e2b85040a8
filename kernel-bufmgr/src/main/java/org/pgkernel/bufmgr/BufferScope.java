package org.pgkernel.bufmgr;

/**
 * What owns pins and content locks: a statement, a transaction. For try-with-resources: close
 * without {@link #succeeded} is the way out after a failure, and gives up silently what is held;
 * after a success nothing should be held, and each leak is told by name. Scopes nest; closing one
 * closes those inside it. (PostgreSQL: ResourceOwnerRelease.)
 */
public final class BufferScope implements AutoCloseable {
    private final BackendBuffers backend;
    final String name;

    /** The scope around this one; null for the backend's own. */
    final BufferScope outer;

    /** Pins of the backend from this one on are the scope's or an inner one's. */
    final int firstPin;

    /** The same for its locks; moves down when an earlier lock is given up. */
    int firstLock;

    private boolean succeeded;
    private boolean closed;

    BufferScope(
            BackendBuffers backend, String name, BufferScope outer, int firstPin, int firstLock) {
        this.backend = backend;
        this.name = name;
        this.outer = outer;
        this.firstPin = firstPin;
        this.firstLock = firstLock;
    }

    /** Says that the work of the scope is done: what it still holds at its end is a leak. */
    public void succeeded() {
        succeeded = true;
    }

    /** Gives up what the scope holds. A second call does nothing. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            backend.leave(this, succeeded);
        }
    }

    /** Closes a scope with the one around it, in that one's way. */
    void closed() {
        closed = true;
    }
}
