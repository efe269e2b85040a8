package org.pgkernel.heap;

import org.pgkernel.bufmgr.BufferPool;
import org.pgkernel.wal.ImageCompression;
import org.pgkernel.wal.WalInserter;
import org.pgkernel.xact.TransactionManager;

/**
 * What the heap builds on and all backends share.
 *
 * @param compression of page images in WAL
 * @param objectIds for values that go out of line
 * @param growth the locks under which heaps grow
 */
public record HeapEnvironment(
        BufferPool pool,
        WalInserter wal,
        ImageCompression compression,
        TransactionManager transactions,
        ObjectIds objectIds,
        RelationGrowth growth) {
    /** With growth locks of its own. */
    public HeapEnvironment(
            BufferPool pool,
            WalInserter wal,
            ImageCompression compression,
            TransactionManager transactions,
            ObjectIds objectIds) {
        this(pool, wal, compression, transactions, objectIds, new RelationGrowth());
    }
}
