package org.pgkernel.heap;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.base.PageItems;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.bufmgr.BufferAccessStrategy;
import org.pgkernel.bufmgr.ReadMode;

/**
 * Reads a relation's tuples in the order of the file, a page at a time: which tuples of a page are
 * seen is decided under one lock, and they are shown while the page is only pinned. That is safe
 * since a tuple that a snapshot sees is not removed while it is pinned, and does not become unseen.
 * Blocks added after the scan began hold nothing that its snapshot sees.
 *
 * <p>Reusable; one backend's. (PostgreSQL: heap_beginscan, heapgetpage, heap_getnext.)
 */
public final class HeapScan implements AutoCloseable {
    private static final int NONE = -1;

    private final HeapBackend backend;
    private final TupleView tuple = new TupleView();
    private final int[] visible = new int[PageItems.MAX_LINE_POINTERS];
    private HeapRelation relation;
    private HeapSnapshot snapshot;
    private BufferAccessStrategy ring;
    private int blocks;
    private int block;
    private int buffer = NONE;
    private int visibleCount;
    private int next;

    public HeapScan(HeapBackend backend) {
        this.backend = backend;
    }

    /** Begins anew. The caller holds a lock on the relation while the scan lasts. */
    public HeapScan begin(HeapRelation relation, HeapSnapshot snapshot) {
        close();
        this.relation = relation;
        this.snapshot = snapshot;
        blocks = relation.storage().nblocks(ForkNumber.MAIN);
        ring = BufferAccessStrategy.forScan(blocks, backend.pool.nbuffers());
        block = 0;
        visibleCount = 0;
        next = 0;
        return this;
    }

    /**
     * Goes to the next tuple, shown in {@link #tuple} until the next call.
     *
     * @return false at the end; nothing is pinned then
     */
    public boolean next() {
        while (next == visibleCount) {
            releasePage();
            if (block == blocks) {
                return false;
            }
            readPage(block++);
        }
        int offset = visible[next++];
        int itemId = Page.itemId(tuple.page, offset);
        tuple.show(block - 1, offset, Page.lpOffset(itemId), Page.lpLength(itemId));
        return true;
    }

    public TupleView tuple() {
        return tuple;
    }

    private void readPage(int at) {
        buffer =
                backend.buffers.read(
                        relation.storage(), ForkNumber.MAIN, at, ReadMode.NORMAL, ring);
        backend.pool.wrap(buffer, tuple.page);
        if (snapshot.isMvcc()) {
            backend.pruner.pruneOnAccess(relation, buffer);
        }
        backend.buffers.lockShared(buffer);
        try {
            decide();
        } catch (DamagedDataException e) {
            throw HeapBackend.damaged(e, relation, at);
        } finally {
            backend.buffers.unlock(buffer);
        }
        next = 0;
    }

    private void decide() {
        UnsafeBuffer page = tuple.page;
        visibleCount = 0;
        int found = 0;
        boolean all = snapshot.isMvcc() && Page.isAllVisible(page);
        HintBits hints = backend.hints.on(buffer, relation.isLogged());
        int last = Page.maxOffsetNumber(page);
        for (int offset = PageItems.FIRST_OFFSET_NUMBER; offset <= last; offset++) {
            if (!Page.lpIsNormal(Page.itemId(page, offset))) {
                continue;
            }
            int at = HeapPage.tupleAt(page, offset);
            if (all || snapshot.sees(backend.visibility, page, at, hints)) {
                visible[found++] = offset;
            }
        }
        visibleCount = found;
    }

    private void releasePage() {
        if (buffer != NONE) {
            int last = buffer;
            buffer = NONE;
            backend.buffers.release(last);
        }
    }

    /** Ends the scan, if one is on. */
    @Override
    public void close() {
        releasePage();
        blocks = 0;
        block = 0;
        visibleCount = 0;
        next = 0;
    }
}
