package org.pgkernel.heap;

import java.util.function.IntSupplier;
import org.pgkernel.bufmgr.PageBuffers;
import org.pgkernel.fsm.FreeSpace;
import org.pgkernel.smgr.SmgrRelation;

/** Answers what a test wants, at the moment when a page with room is looked for. */
final class AskedFreeSpace implements FreeSpace {
    IntSupplier answer = () -> -1;

    @Override
    public int pageWithFreeSpace(PageBuffers buffers, SmgrRelation relation, int bytes) {
        return answer.getAsInt();
    }

    @Override
    public int recordAndFind(
            PageBuffers buffers, SmgrRelation relation, int oldBlock, int oldFree, int bytes) {
        return answer.getAsInt();
    }

    @Override
    public void record(PageBuffers buffers, SmgrRelation relation, int block, int free) {}

    @Override
    public int recordedFree(PageBuffers buffers, SmgrRelation relation, int heapBlock) {
        return 0;
    }

    @Override
    public void vacuumRange(PageBuffers buffers, SmgrRelation relation, int start, int end) {}
}
