package org.pgkernel.bufmgr;

import org.agrona.DirectBuffer;
import org.pgkernel.base.ForkNumber;

/**
 * Where a full-page image goes before a hint bit makes a clean page dirty. With checksums (or
 * wal_log_hints) a page torn while its hints are written would be damage, so redo must be able to
 * restore it. Whoever brings WAL implements this; the pool calls it outside recovery only, with the
 * page's content lock held, shared at least. An implementation must not use the pool. Thread-safe.
 */
public interface HintImageLog {
    /**
     * For a pool that has no WAL to write to: then a page is not made dirty by a hint that would
     * have to be logged. The hint lives as long as the page stays in the pool, or until a real
     * change takes it along. (PostgreSQL does so where it must not write WAL.)
     */
    HintImageLog NONE =
            new HintImageLog() {
                @Override
                public void delayCheckpoint() {}

                @Override
                public void allowCheckpoint() {}

                @Override
                public long redoPointer() {
                    throw new AssertionError("no WAL");
                }

                @Override
                public long logImage(
                        int spc,
                        int db,
                        int rel,
                        ForkNumber fork,
                        int block,
                        DirectBuffer page,
                        boolean standard) {
                    throw new AssertionError("no WAL");
                }
            };

    /**
     * From here to {@link #allowCheckpoint} no checkpoint may fix its redo pointer and go on to
     * write: it would not see the page dirty, and its redo would begin after the image. By the
     * calling thread, not nested. (PostgreSQL: DELAY_CHKPT_START.)
     */
    void delayCheckpoint();

    /** Always follows {@link #delayCheckpoint}, in the same thread, also after a failure. */
    void allowCheckpoint();

    /**
     * Where redo would begin if the server stopped now; a page with a later LSN has been logged
     * whole since. (PostgreSQL: GetRedoRecPtr.)
     */
    long redoPointer();

    /**
     * Inserts a full-page image. (PostgreSQL: XLogSaveBufferForHint.)
     *
     * @param page a private copy, which nobody changes; the caller's again on return
     * @param standard what lies between pd_lower and pd_upper may be left out
     * @return the record's end, the page's new LSN; 0 when nothing was logged as full_page_writes
     *     is off
     */
    long logImage(
            int spc,
            int db,
            int rel,
            ForkNumber fork,
            int block,
            DirectBuffer page,
            boolean standard);
}
