package org.pgkernel.heap;

import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** A tuple in its page; valid while the scan or fetch that shows it keeps the page pinned. */
public final class TupleView {
    final UnsafeBuffer page = new UnsafeBuffer(0L, 0);
    int at;
    int length;
    long tid = TupleId.INVALID;

    /** Where it is, see {@link TupleId}. */
    public long tid() {
        return tid;
    }

    /** The page; the tuple's header is at {@link #at}. */
    public DirectBuffer page() {
        return page;
    }

    public int at() {
        return at;
    }

    /** Bytes with the header. */
    public int length() {
        return length;
    }

    /** Who inserted it, as stored: also of a frozen one. */
    public int xmin() {
        return HeapTupleHeader.xmin(page, at);
    }

    /** Reads the row; values that are not numbers stay in the page. */
    public void read(RowValues row) {
        HeapTuples.deform(page, at, length, row);
    }

    void show(int block, int offset, int at, int length) {
        tid = TupleId.of(block, offset);
        this.at = at;
        this.length = length;
    }
}
