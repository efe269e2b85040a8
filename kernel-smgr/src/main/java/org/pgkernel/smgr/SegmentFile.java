package org.pgkernel.smgr;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.pgkernel.base.disk.DiskFile;

/**
 * One segment file, whose descriptor may come and go: {@link OpenFiles} closes the least recently
 * used ones and {@link #pin} opens them again. A pinned segment keeps its descriptor.
 *
 * <p>The state word holds the pins in its low bits and three flags. Transitions:
 *
 * <pre>
 *   n pins, open      pin, unpin                    n +- 1 pins
 *   0 pins, open      tryEvict                      BUSY, then closeEvicted: CLOSED
 *   CLOSED            pin                           1 pin, open
 *   any but BUSY      retire                        + RETIRED: no pin any more
 *   RETIRED, 0 pins   retire, or the last unpin     RETIRED + CLOSED
 * </pre>
 *
 * (PostgreSQL: Vfd, fd.c; a pin stands for a system call under way there.)
 */
final class SegmentFile {
    /** {@link #pin}: the caller holds a pin. */
    static final int PINNED = 0;

    /** {@link #pin}: the file had been closed and is gone now. */
    static final int MISSING = 1;

    /** {@link #pin}: the fork let go of this object; look the segment up again. */
    static final int RETIRED = 2;

    private static final int CLOSED_FLAG = 1 << 30;
    private static final int BUSY_FLAG = 1 << 29;
    private static final int RETIRED_FLAG = 1 << 28;
    private static final int NOT_PINNABLE = CLOSED_FLAG | BUSY_FLAG | RETIRED_FLAG;
    private static final int PIN_MASK = RETIRED_FLAG - 1;

    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(SegmentFile.class, "state", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * The clock's mark, set by {@link #pin}, cleared by the clock hand; a lost update only ages the
     * file a little.
     */
    boolean recentlyUsed;

    /** Place in the clock, -1 when not there; guarded by {@link OpenFiles}' lock. */
    int slot = -1;

    private final OpenFiles openFiles;
    private final String path;

    /**
     * Null while CLOSED; written under this monitor (opening) or by whoever set BUSY or RETIRED +
     * CLOSED; published by the state.
     */
    private DiskFile file;

    /** CAS only, but for {@link #closeEvicted}, which owns the word through BUSY. */
    private volatile int state;

    /** An open segment without pins, in the clock from here on. */
    SegmentFile(OpenFiles openFiles, String path, DiskFile file) {
        this.openFiles = openFiles;
        this.path = path;
        this.file = file;
        openFiles.admit(this);
    }

    String path() {
        return path;
    }

    /** The open file; the caller holds a pin. */
    DiskFile file() {
        assert (state & PIN_MASK) > 0 : "SMGR-8 not pinned: " + path;
        return file;
    }

    /**
     * Makes sure that the file is open and stays so until {@link #unpin}. May open it (one system
     * call).
     */
    int pin() {
        int now = state;
        while ((now & NOT_PINNABLE) == 0) {
            int seen = (int) STATE.compareAndExchange(this, now, now + 1);
            if (seen == now) {
                if (!recentlyUsed) {
                    recentlyUsed = true;
                }
                return PINNED;
            }
            now = seen;
        }
        return pinClosed();
    }

    void unpin() {
        int left = (int) STATE.getAndAdd(this, -1) - 1;
        assert (left & PIN_MASK) != PIN_MASK : "unpinned too often: " + path;
        if (left == RETIRED_FLAG) {
            closeRetired();
        }
    }

    /** Ends the object's life: no more pins; the descriptor goes now or with the last pin. */
    void retire() {
        for (; ; ) {
            int now = state;
            if ((now & RETIRED_FLAG) != 0) {
                return;
            }
            if ((now & BUSY_FLAG) != 0) {
                Thread.yield();
            } else if (STATE.compareAndSet(this, now, now | RETIRED_FLAG)) {
                if (now == 0) {
                    closeRetired();
                }
                return;
            }
        }
    }

    /**
     * Claims an unpinned open file for closing; the caller holds the clock's lock and goes on with
     * {@link #closeEvicted}.
     */
    boolean tryEvict() {
        return STATE.compareAndSet(this, 0, BUSY_FLAG);
    }

    void closeEvicted() {
        DiskFile victim = file;
        file = null;
        state = CLOSED_FLAG;
        openFiles.closeFile(victim);
    }

    private synchronized int pinClosed() {
        for (; ; ) {
            int now = state;
            if ((now & RETIRED_FLAG) != 0) {
                return RETIRED;
            }
            if ((now & BUSY_FLAG) != 0) {
                Thread.yield();
            } else if (now == CLOSED_FLAG) {
                return reopen();
            } else if (STATE.compareAndSet(this, now, now + 1)) {
                return PINNED;
            }
        }
    }

    private int reopen() {
        DiskFile opened = openFiles.openFile(path, OpenFiles.IF_EXISTS);
        if (opened == null) {
            return MISSING;
        }
        file = opened;
        recentlyUsed = true;
        if (!STATE.compareAndSet(this, CLOSED_FLAG, 1)) {
            // Retired meanwhile; nobody else reads the file of a closed segment.
            file = null;
            openFiles.closeFile(opened);
            return RETIRED;
        }
        openFiles.admit(this);
        return PINNED;
    }

    private void closeRetired() {
        if (STATE.compareAndSet(this, RETIRED_FLAG, RETIRED_FLAG | CLOSED_FLAG)) {
            openFiles.remove(this);
            DiskFile last = file;
            file = null;
            openFiles.closeFile(last);
        }
    }
}
