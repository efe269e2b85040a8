package org.pgkernel.heap;

/**
 * A session's snapshot, as the heap asks it. Filled by {@link HeapBackend#snapshot}, filled again
 * for the next command or transaction.
 */
public final class MvccSnapshot implements Snapshot {
    private final org.pgkernel.xact.Snapshot snapshot;

    MvccSnapshot(org.pgkernel.xact.Snapshot snapshot) {
        this.snapshot = snapshot;
    }

    @Override
    public boolean isInProgress(int xid) {
        return snapshot.isRunning(xid);
    }

    @Override
    public int commandId() {
        return snapshot.curcid();
    }

    /** The transactions' part. */
    public org.pgkernel.xact.Snapshot xact() {
        return snapshot;
    }

    @Override
    public String toString() {
        return snapshot.toString();
    }
}
