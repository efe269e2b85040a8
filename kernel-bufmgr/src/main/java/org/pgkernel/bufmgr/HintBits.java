package org.pgkernel.bufmgr;

import static org.pgkernel.bufmgr.BufferState.*;

import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.ForkNumber;
import org.pgkernel.base.Page;
import org.pgkernel.smgr.StorageManager;

/**
 * Pages made dirty by hints: changes that need not survive, made under a shared content lock, so
 * several at once and beside a writer of the page. (PostgreSQL: MarkBufferDirtyHint.)
 *
 * <p>Where hints are logged the order is: hold checkpoints back; log a copy of the page; set LSN
 * and dirty flags, both under the header lock; let checkpoints go. A checkpoint that starts before
 * finds its redo pointer before the image; one that starts after finds the page dirty. Were the
 * page made dirty first, it could be written, and torn, before its image is in the WAL.
 *
 * <p>Two threads that set the first hints of one page may both log an image. The later LSN need not
 * win: the second finds the page dirty and leaves the first one's LSN, which covers its image; the
 * second image restores at least as much. A writer that copied the page between a hint and its
 * dirty flag wrote a page whose checksum is right, as checksums are computed on copies.
 */
final class HintBits {
    private final BufferDescriptors descriptors;
    private final BufferIo io;
    private final StorageManager smgr;
    private final boolean checksums;

    /** pg_control's wal_log_hints. Written by whoever opens the cluster, read by all. */
    private volatile boolean walLogHints;

    /** Set by whoever brings WAL, before hints are set outside recovery; read by all. */
    private volatile HintImageLog log = HintImageLog.NONE;

    HintBits(BufferDescriptors descriptors, BufferIo io, StorageManager smgr, boolean checksums) {
        this.descriptors = descriptors;
        this.io = io;
        this.smgr = smgr;
        this.checksums = checksums;
    }

    boolean areLogged() {
        return checksums || walLogHints;
    }

    void walLogHints(boolean on) {
        walLogHints = on;
    }

    void log(HintImageLog to) {
        log = to;
    }

    /** The caller has a pin and the content lock, shared at least. */
    void markDirty(int buffer, boolean standard) {
        int state = descriptors.state(buffer);
        if (has(state, DIRTY | JUST_DIRTIED)) {
            return; // looked at without a lock: if it is being cleaned now, the hint waits
        }
        if (!areLogged() || (state & PERMANENT) == 0) {
            markDirtyWithLsn(buffer, 0);
            return;
        }
        HintImageLog to = log;
        if (smgr.inRecovery() || to == HintImageLog.NONE) {
            return;
        }
        to.delayCheckpoint();
        try {
            markDirtyWithLsn(buffer, saveImage(buffer, to, standard));
        } finally {
            to.allowCheckpoint();
        }
    }

    /** The page's LSN, read so that a hint that is logged meanwhile does not tear it. */
    long pageLsn(int buffer) {
        UnsafeBuffer page = page(buffer);
        if (!areLogged()) {
            return Page.lsn(page);
        }
        int state = descriptors.lockHeader(buffer);
        long lsn = Page.lsn(page);
        descriptors.unlockHeader(buffer, state);
        return lsn;
    }

    /**
     * Logs the page unless it has been logged whole since the last checkpoint began. (PostgreSQL:
     * XLogSaveBufferForHint.) @return the image's LSN, or 0
     */
    private long saveImage(int buffer, HintImageLog to, boolean standard) {
        if (Long.compareUnsigned(pageLsn(buffer), to.redoPointer()) > 0) {
            return 0;
        }
        // A private copy, as others may set hints and move the LSN under their shared locks.
        UnsafeBuffer copy = BackendScratch.mine().copy;
        copy.putBytes(0, page(buffer), 0, Page.SIZE);
        return to.logImage(
                descriptors.spc(buffer),
                descriptors.db(buffer),
                descriptors.rel(buffer),
                ForkNumber.of(descriptors.fork(buffer)),
                descriptors.block(buffer),
                copy,
                standard);
    }

    private void markDirtyWithLsn(int buffer, long lsn) {
        UnsafeBuffer page = page(buffer);
        int state = descriptors.lockHeader(buffer);
        if (lsn != 0 && (state & DIRTY) == 0) {
            Page.setLsn(page, lsn);
        }
        descriptors.markDirtyAndUnlockHeader(buffer, state);
    }

    private UnsafeBuffer page(int buffer) {
        UnsafeBuffer page = BackendScratch.mine().view;
        page.wrap(io.address(buffer), Page.SIZE);
        return page;
    }
}
