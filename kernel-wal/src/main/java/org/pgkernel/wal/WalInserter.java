package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.error.DamagedDataException;
import org.pgkernel.base.error.DiskException;
import org.pgkernel.base.error.KernelStoppedException;
import org.pgkernel.base.error.RefusedException;

/**
 * Inserts records from many threads at once and makes them durable for all together.
 *
 * <p>A thread lays its record out, takes an insertion slot, reserves its room by one CAS ({@link
 * InsertReservation}), copies the record there while others copy theirs ({@link WalRing}), and
 * frees the slot. {@link WalFlush} writes what the slots ({@link InsertionSlots}) say is complete.
 * Records of 8 MiB and more, segment switches and a new redo point take all slots.
 *
 * <p>From the reservation to the release of the slot is a critical section: a failure in it would
 * leave a gap in the log, so it stops the kernel. (PostgreSQL: XLogInsertRecord, xlog.c.)
 */
public final class WalInserter implements AutoCloseable {
    /** What {@link #insert} returns when the record needs images that it does not have. */
    public static final long NEEDS_IMAGES = 0;

    /** Below the LSN of every page, new ones (0) included. */
    private static final long NO_IMAGES = -1;

    private static final int SLOTS = 16;

    /**
     * A background write makes the log durable after so much. (PostgreSQL: wal_writer_flush_after.)
     */
    private static final long SYNC_AFTER = 1 << 20;

    /** A resting background writer looks again after so much, a power of two. */
    private static final long WAKE_AFTER = 1 << 18;

    private final WalBytePositions positions;
    private final InsertReservation reservation;
    private final InsertionSlots slots;
    private final WalRing ring;
    private final WalSegmentOutput output;
    private final WalFlush flush;
    private final WalSegments segments;

    /** Commits up to here wait for nobody, but want to be durable soon. */
    private final AtomicLong asynchronous = new AtomicLong();

    /** Segment start up to which {@link #doWork} made segments ahead. WAL writer's own. */
    private long prepared;

    /** Written while all slots are held; read under one, or as a hint. */
    private volatile long redoLsn;

    /** {@link #redoLsn}, or {@link #NO_IMAGES}; written and read in the same way. */
    private volatile long imageLsn;

    /** The background writer while it rests, else null. Set by it. */
    private volatile Thread resting;

    private boolean closed;

    /**
     * @param startLsn where the first record goes: the page before it is kept, what follows is
     *     zeroed
     * @param prevLsn start of the record before, for xl_prev
     * @param missingContinuation 0, or the page start at which an OVERWRITE_CONTRECORD record must
     *     go first (then startLsn is there)
     * @param redoLsn redo point of the last checkpoint, for {@link WalRecordBuilder#withoutImage}
     * @param ringBytes a power of two, at least two pages (PostgreSQL: wal_buffers)
     * @throws RefusedException when no record can begin at {@code startLsn}, or for a ring of
     *     another size
     */
    public WalInserter(
            Disk disk,
            String directory,
            int timeline,
            int segmentSize,
            long systemIdentifier,
            long startLsn,
            long prevLsn,
            long missingContinuation,
            long redoLsn,
            int ringBytes) {
        this(
                disk,
                directory,
                timeline,
                segmentSize,
                systemIdentifier,
                startLsn,
                prevLsn,
                missingContinuation,
                redoLsn,
                ringBytes,
                new Parts());
    }

    /** What an inserter is made of; a test seeds faults by making other parts. */
    static class Parts {
        InsertReservation reservation(WalBytePositions positions, long start, long prevLsn) {
            return new InsertReservation(positions, start, start, prevLsn);
        }

        InsertionSlots slots(InsertReservation reservation) {
            return new InsertionSlots(reservation, SLOTS);
        }

        WalRing ring(
                WalBytePositions positions,
                int timeline,
                long system,
                long missingContinuation,
                int size) {
            return new WalRing(positions, timeline, system, missingContinuation, size);
        }

        WalSegmentOutput output(
                Disk disk, String directory, int timeline, int segmentSize, long system) {
            return new WalSegmentOutput(disk, directory, timeline, segmentSize, system);
        }
    }

    WalInserter(
            Disk disk,
            String directory,
            int timeline,
            int segmentSize,
            long systemIdentifier,
            long startLsn,
            long prevLsn,
            long missingContinuation,
            long redoLsn,
            int ringBytes,
            Parts parts) {
        WalWriter.checkStart(directory, segmentSize, startLsn, missingContinuation);
        if (Integer.bitCount(ringBytes) != 1 || ringBytes < 2 * PAGE_SIZE) {
            throw new RefusedException(
                    "WAL buffers cannot have "
                            + ringBytes
                            + " bytes: a power of two from "
                            + 2 * PAGE_SIZE
                            + " on is needed");
        }
        this.redoLsn = redoLsn;
        imageLsn = redoLsn;
        positions = new WalBytePositions(segmentSize);
        long start = positions.of(startLsn);
        reservation = parts.reservation(positions, start, prevLsn);
        slots = parts.slots(reservation);
        ring = parts.ring(positions, timeline, systemIdentifier, missingContinuation, ringBytes);
        output = parts.output(disk, directory, timeline, segmentSize, systemIdentifier);
        flush = new WalFlush(positions, slots, ring, output, startLsn);
        segments = new WalSegments(disk, directory, timeline, segmentSize, output.creation);
        int inPage = (int) startLsn & PAGE_SIZE - 1;
        if (inPage != 0) {
            ring.loadTail(output, startLsn - inPage, inPage);
        }
    }

    /**
     * Inserts the record; any thread, its own builder. The record is durable after {@link #flush}
     * of what this returns.
     *
     * @return the record's end LSN, as pages carry it, or {@link #NEEDS_IMAGES}: nothing was
     *     inserted, since the redo point has moved past a page that the record holds no image of;
     *     the caller looks again which pages need one
     */
    public long insert(WalRecordBuilder record) {
        flush.throwIfStopped();
        assert !closed : "inserter is closed";
        int length = record.prepare();
        int size = (int) WalRecordFormat.align(length);
        if (size >= InsertReservation.LARGE || record.isSwitch()) {
            return insertAlone(record, length);
        }
        int slot = slots.acquire();
        try {
            if (record.lowestWithoutImage() <= imageLsn) {
                return NEEDS_IMAGES;
            }
            long word = reservation.reserve(size);
            long position = reservation.position(word);
            long start = positions.startLsn(position);
            byte[] bytes = record.finish(start, reservation.previousStart(word, start));
            long end = ring.copy(bytes, length, start, position, slots, slot, flush);
            if ((position ^ position + size) >= WAKE_AFTER) {
                wakeWriter();
            }
            return end;
        } catch (RuntimeException e) {
            throw stopInserting(e);
        } catch (Error e) {
            flush.stop(e);
            throw e;
        } finally {
            slots.release(slot);
        }
    }

    /**
     * Returns when all before the LSN, an end that {@link #insert} returned, is durable.
     *
     * @throws KernelStoppedException also when it is, but the kernel was stopped: then no page may
     *     be written any more, see {@link #stop}
     */
    public void flush(long lsn) {
        flush.throwIfStopped();
        if (lsn > flush.flushed() && lsn > insertLsn()) {
            throw new DamagedDataException(
                    "WAL is to be durable up to a place that it has not reached: the page or record"
                            + " that told it is damaged insert="
                            + Lsn.format(insertLsn())
                            + " lsn="
                            + Lsn.format(lsn));
        }
        flush.flush(lsn);
    }

    /**
     * Ends all work, as pages were changed and the change could not be logged: nobody may see them,
     * no file get them. From here on nothing is inserted and {@link #flush}, which pages' writers
     * ask, refuses. The caller still holds the pages' exclusive locks, so that no writer has come
     * past that question. (PostgreSQL: an error in a critical section, which is a PANIC.)
     *
     * @return what the caller throws
     */
    public KernelStoppedException stop(Throwable cause) {
        return stop("a change of pages could not be logged", cause);
    }

    /** The same, saying what change, of which page. An Error is thrown on as it is. */
    public KernelStoppedException stop(String what, Throwable cause) {
        if (cause instanceof KernelStoppedException stopped) {
            return stopped;
        }
        KernelStoppedException stopped = flush.stop(what, cause);
        if (cause instanceof Error error) {
            throw error;
        }
        return stopped;
    }

    private KernelStoppedException stopInserting(RuntimeException e) {
        return e instanceof KernelStoppedException stopped ? stopped : flush.stop(e);
    }

    /**
     * The commit that ends at the LSN does not wait; {@link #doWork} makes it durable next time.
     * (PostgreSQL: XLogSetAsyncXactLSN.)
     */
    public void flushLater(long lsn) {
        long now;
        while ((now = asynchronous.get()) < lsn && !asynchronous.compareAndSet(now, lsn)) {
            Thread.onSpinWait();
        }
    }

    /**
     * One step of the WAL writer, by one thread at a time: asynchronous commits become durable,
     * whole pages are written, the next segment is made before it is needed. (PostgreSQL:
     * XLogBackgroundFlush, walwriter.c.)
     *
     * @return 0 when there was nothing to do
     * @throws DiskException the next segment could not be made; all else was done, and the next
     *     step tries again
     */
    public int doWork() {
        flush.throwIfStopped();
        int work = 0;
        long wanted = asynchronous.get();
        if (wanted > flush.flushed()) {
            flush(wanted);
            work++;
        }
        if (flush.background(SYNC_AFTER) > 0) {
            work++;
        }
        return work + prepareNextSegment();
    }

    /**
     * A round of {@link WalBackgroundWriter}, by one thread at a time.
     *
     * @param all whether everything whole and every asynchronous commit is to be durable; else only
     *     what {@code syncAfter} bytes make worth it
     * @return 0 when there was nothing to do
     * @throws DiskException as {@link #doWork}
     */
    int backgroundRound(boolean all, long syncAfter) {
        flush.throwIfStopped();
        int work = flush.background(all ? Long.MAX_VALUE : syncAfter) > 0 ? 1 : 0;
        if (all) {
            long wanted = Math.max(asynchronous.get(), flush.written());
            if (wanted > flush.flushed()) {
                flush.flush(wanted);
                work++;
            }
        }
        return work + prepareNextSegment();
    }

    /** Whether so many bytes are inserted and not yet written. */
    boolean isFilled(long bytes) {
        return insertLsn() - flush.written() >= bytes;
    }

    /**
     * This thread is unparked each time another {@link #WAKE_AFTER} bytes were filled, or never.
     */
    void wakeWhenFilled(Thread writer) {
        resting = writer;
    }

    /**
     * Ends the segment with an XLOG_SWITCH record; durable on return. Does nothing at a segment's
     * start. (PostgreSQL: RequestXLogSwitch, ReserveXLogSwitch.)
     *
     * @return end of the switch record, or where the log stands when nothing was done
     */
    public long switchSegment(WalRecordBuilder builder) {
        return insert(builder.begin(WalRecordFormat.RM_XLOG_ID, WalRecordFormat.XLOG_SWITCH, 0));
    }

    /**
     * Moves the redo point to where the next record will begin: every page that a later record
     * changes first gets an image there. (PostgreSQL: CreateCheckPoint, Insert-&gt;RedoRecPtr.)
     *
     * @return the new redo point
     */
    public long moveRedo() {
        slots.acquireAll();
        try {
            long redo = positions.startLsn(reservation.position());
            redoLsn = redo;
            if (imageLsn != NO_IMAGES) {
                imageLsn = redo;
            }
            return redo;
        } finally {
            slots.releaseAll();
        }
    }

    /** The redo point; may have moved when the caller acts on it, which {@link #insert} sees. */
    public long redoLsn() {
        return redoLsn;
    }

    /**
     * A page with this LSN or an older one needs an image in the record that changes it; no page
     * does while images are off. A hint, as {@link #redoLsn} is.
     */
    public long imageLsn() {
        return imageLsn;
    }

    /**
     * Turns images on or off; they are on at first. Off is safe only where a page is never torn by
     * a crash, and not while a backup runs. Who turns them on logs an XLOG_FPW_CHANGE record after
     * it, who turns them off before. (PostgreSQL: UpdateFullPageWrites.)
     */
    public void fullPageWrites(boolean on) {
        slots.acquireAll();
        try {
            imageLsn = on ? redoLsn : NO_IMAGES;
        } finally {
            slots.releaseAll();
        }
    }

    /** End of all records inserted. (PostgreSQL: GetXLogInsertRecPtr.) */
    public long insertLsn() {
        return positions.endLsn(reservation.position());
    }

    /** All before it is in the files. */
    public long writtenLsn() {
        return flush.written();
    }

    /** All before it is durable. */
    public long flushedLsn() {
        return flush.flushed();
    }

    /** How often the log was made durable since it was opened. */
    public long syncs() {
        return flush.syncs();
    }

    /** Start of the last record. Stops all insertions for a moment. */
    public long lastRecord() {
        slots.acquireAll();
        try {
            return reservation.lastRecord();
        } finally {
            slots.releaseAll();
        }
    }

    /** Removes and recycles segments that no recovery needs. */
    public WalSegments segments() {
        return segments;
    }

    int segmentSize() {
        return positions.segmentSize;
    }

    /** Frees the memory; the caller is the last one. What is not flushed is lost. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            try {
                flush.close();
            } finally {
                ring.free();
            }
        }
    }

    /** A record that does not fit the reservation's one word. */
    private long insertAlone(WalRecordBuilder record, int length) {
        boolean isSwitch = record.isSwitch();
        int slot = slots.acquireAll();
        long end;
        try {
            if (record.lowestWithoutImage() <= imageLsn) {
                return NEEDS_IMAGES;
            }
            long position = reservation.position();
            long start = positions.startLsn(position);
            long endPosition = position + WalRecordFormat.align(length);
            end = positions.endLsn(endPosition);
            long taken = end;
            if (isSwitch) {
                long endBefore = positions.endLsn(position);
                if (WalSegmentName.offsetIn(endBefore, positions.segmentSize) == 0) {
                    return endBefore;
                }
                taken = segmentEnd(end);
            }
            byte[] bytes = record.finish(start, reservation.lastRecord());
            reservation.reserveTo(isSwitch ? positions.of(taken) : endPosition);
            ring.copy(bytes, length, start, position, slots, slot, flush);
            ring.zero(end, taken, slots, slot, flush);
        } catch (RuntimeException e) {
            throw stopInserting(e);
        } catch (Error e) {
            flush.stop(e);
            throw e;
        } finally {
            slots.releaseAll();
        }
        if (isSwitch) {
            flush(segmentEnd(end));
        } else {
            wakeWriter();
        }
        return end;
    }

    private void wakeWriter() {
        Thread writer = resting;
        if (writer != null) {
            LockSupport.unpark(writer);
        }
    }

    /** End of the segment that an end LSN belongs to. */
    private long segmentEnd(long end) {
        return end + positions.segmentSize - 1 & -(long) positions.segmentSize;
    }

    private int prepareNextSegment() {
        long insert = insertLsn();
        int offset = WalSegmentName.offsetIn(insert, positions.segmentSize);
        long next = insert - offset + positions.segmentSize;
        if (offset < positions.segmentSize / 4 * 3 || next == prepared) {
            return 0;
        }
        try {
            output.prepare(next);
        } catch (DiskException e) {
            // Nothing is lost yet: there may be room again when the segment is needed.
            DiskException told =
                    new DiskException(
                            "the WAL segment from "
                                    + Lsn.format(next)
                                    + " on could not be made before it is needed",
                            output.path(next),
                            e.errno());
            told.addSuppressed(e);
            throw told;
        } catch (RuntimeException e) {
            throw flush.stop(e);
        }
        prepared = next;
        return 1;
    }
}
