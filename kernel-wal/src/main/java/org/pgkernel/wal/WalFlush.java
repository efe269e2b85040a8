package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;

import java.nio.ByteBuffer;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.error.KernelStoppedException;

/**
 * Brings the ring into the files, for all who wait: group commit.
 *
 * <p>One thread leads at a time; only the leader touches the files. Who needs the log written or
 * durable up to some point leads if nobody does, and else waits. The leader takes all that is
 * complete, not only his own records, writes it, syncs once, and wakes everybody. Most of them are
 * served; one of the rest leads next. No thread of its own is needed; {@link WalInserter#doWork}
 * leads like anybody else.
 *
 * <p>No deadlock with inserters that wait for the ring while they hold a slot: the leader needs no
 * slot; he writes what is complete, tells it at once, and looks again. The unfinished record that
 * comes first in the log waits only for bytes that lie a ring's size before its own, all complete,
 * so each look finds more until all are through.
 *
 * <p>A failure is told by {@link #stopped}, which everybody who waits sees. An inserter that fails
 * sets it before it lets go of its slot; the leader asks for it after he read the slots; hence
 * bytes that never arrived in the ring are never written. (PostgreSQL: XLogFlush, XLogWrite,
 * LWLockAcquireOrWait.)
 */
final class WalFlush implements WalRing.Room, AutoCloseable {
    private final WalBytePositions positions;
    private final InsertionSlots slots;
    private final WalRing ring;
    private final WalSegmentOutput output;

    /** The most that is written before waiters are told. */
    private final int pieceBytes;

    /** A page in the making, with zeros behind the last record, and a page of zeros. Leader's. */
    private final ByteBuffer scratchMemory = ByteBuffer.allocateDirect(2 * PAGE_SIZE);

    private final UnsafeBuffer scratch = new UnsafeBuffer(scratchMemory);

    private final ReentrantLock lock = new ReentrantLock();

    /** For who needs the log written up to some point: signalled by each piece. */
    private final Condition wrote = lock.newCondition();

    /**
     * For who needs it durable: signalled when a leader resigns, not by pieces, or all would wake
     * in vain.
     */
    private final Condition synced = lock.newCondition();

    /** Somebody leads. Guarded by the lock. */
    private boolean led;

    /** All before it is in the files. Set by the leader. */
    private volatile long written;

    /** All before it is durable. Set by the leader. */
    private volatile long flushed;

    /** How often the log was synced. Set by the leader. */
    private volatile long syncs;

    /** Why nothing more is written; set once, under the lock. */
    private volatile KernelStoppedException stopped;

    WalFlush(
            WalBytePositions positions,
            InsertionSlots slots,
            WalRing ring,
            WalSegmentOutput output,
            long startLsn) {
        this.positions = positions;
        this.slots = slots;
        this.ring = ring;
        this.output = output;
        pieceBytes = Math.max(PAGE_SIZE, ring.size() / 4);
        written = startLsn;
        flushed = startLsn;
    }

    long written() {
        return written;
    }

    long flushed() {
        return flushed;
    }

    long syncs() {
        return syncs;
    }

    /** Returns when all before the LSN is durable. */
    void flush(long lsn) {
        while (flushed < lsn) {
            if (lead(lsn, true)) {
                try {
                    work(lsn, true);
                } finally {
                    resign();
                }
            }
        }
        throwIfStopped();
    }

    @Override
    public void awaitWritten(long lsn) {
        while (written < lsn) {
            if (lead(lsn, false)) {
                try {
                    work(lsn, false);
                } finally {
                    resign();
                }
            }
        }
    }

    /**
     * Writes whole pages that are complete, unless somebody else is at it; makes all durable if
     * that much was written since.
     *
     * @return bytes written
     */
    long background(long syncAfterBytes) {
        long target = completeLsn() & -PAGE_SIZE;
        if (target <= written || !tryLead()) {
            return 0;
        }
        try {
            long before = written;
            work(target, false);
            if (written - flushed >= syncAfterBytes) {
                work(written, true);
            }
            return written - before;
        } finally {
            resign();
        }
    }

    void throwIfStopped() {
        KernelStoppedException why = stopped;
        if (why != null) {
            throw new KernelStoppedException(
                    "WAL cannot be written any more: " + why.getMessage(), why);
        }
    }

    /** WAL-12. What ring or file holds now is unknown: nothing is tried again. */
    KernelStoppedException stop(Throwable cause) {
        return stop("WAL could not be written", cause);
    }

    KernelStoppedException stop(String what, Throwable cause) {
        KernelStoppedException why =
                new KernelStoppedException(
                        what + ": " + cause.getMessage() + " lsn=" + Lsn.format(written), cause);
        lock.lock();
        try {
            if (stopped == null) {
                stopped = why;
            }
            wrote.signalAll();
            synced.signalAll();
        } finally {
            lock.unlock();
        }
        return why;
    }

    /** The caller is the last to use this object. */
    @Override
    public void close() {
        output.close();
        BufferUtil.free(scratchMemory);
    }

    /** Waits until the LSN is reached, or one may lead. @return true when one leads */
    private boolean lead(long lsn, boolean durable) {
        lock.lock();
        try {
            while (led && stopped == null && (durable ? flushed : written) < lsn) {
                (durable ? synced : wrote).awaitUninterruptibly();
            }
            throwIfStopped();
            if ((durable ? flushed : written) >= lsn) {
                return false;
            }
            led = true;
            return true;
        } finally {
            lock.unlock();
        }
    }

    private boolean tryLead() {
        lock.lock();
        try {
            throwIfStopped();
            if (led) {
                return false;
            }
            led = true;
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void resign() {
        lock.lock();
        try {
            led = false;
            wrote.signalAll();
            synced.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** The leader's work, until the LSN is reached; one that need not be durable is a page's. */
    private void work(long lsn, boolean durable) {
        for (int idle = 0; written < lsn; ) {
            // Who wants room or works in the background wants whole pages; the next flush would
            // write the page in the making again.
            long upTo = durable ? completeLsn() : completeLsn() & -PAGE_SIZE;
            throwIfStopped();
            if (upTo <= written) {
                InsertionSlots.pause(idle++);
                continue;
            }
            idle = 0;
            try {
                // A commit takes along what came in behind it; an inserter wants room soon.
                write(durable ? upTo : Math.min(upTo, written + pieceBytes & -PAGE_SIZE));
            } catch (RuntimeException e) {
                throw stop(e);
            } catch (Error e) {
                stop(e);
                throw e;
            }
            tell();
        }
        if (durable && flushed < lsn) {
            try {
                sync();
            } catch (RuntimeException e) {
                throw stop(e);
            } catch (Error e) {
                stop(e);
                throw e;
            }
        }
    }

    private long completeLsn() {
        return positions.endLsn(slots.completeTo());
    }

    private void tell() {
        lock.lock();
        try {
            wrote.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void sync() {
        long upTo = written;
        if ((upTo & PAGE_SIZE - 1) == 0) {
            output.zeroPage(scratch.addressOffset() + PAGE_SIZE, upTo);
        }
        output.sync();
        syncs++;
        flushed = upTo;
    }

    /** Writes from where the last write ended; the page that it ended in is written again. */
    private void write(long upTo) {
        long from = written & -PAGE_SIZE;
        while (from < upTo) {
            long segmentEnd =
                    from
                            - WalSegmentName.offsetIn(from, positions.segmentSize)
                            + positions.segmentSize;
            int at = ring.offset(from);
            long to =
                    Math.min(
                            Math.min(upTo & -PAGE_SIZE, segmentEnd),
                            Math.min(from + ring.size() - at, from + pieceBytes));
            if (to > from) {
                output.write(ring.buffer().addressOffset() + at, (int) (to - from), from);
                from = to;
                written = Math.max(written, to);
            } else {
                int used = (int) (upTo - from);
                scratch.putBytes(0, ring.buffer(), at, used);
                scratch.setMemory(used, PAGE_SIZE - used, (byte) 0);
                output.write(scratch.addressOffset(), PAGE_SIZE, from);
                from = upTo;
                written = upTo;
            }
        }
    }
}
