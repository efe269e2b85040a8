package org.pgkernel.heap;

/** Which transactions an MVCC reader sees. Immutable while it is used. */
public interface Snapshot {
    /**
     * True if the transaction's changes are not to be seen: it ran or had not begun when the
     * snapshot was taken, whatever became of it since. (PostgreSQL: XidInMVCCSnapshot.)
     */
    boolean isInProgress(int xid);

    /** Of the reader's own changes those of earlier commands are seen. (PostgreSQL: curcid.) */
    int commandId();
}
