package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;

import java.nio.ByteBuffer;
import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * WAL pages in memory; the page at an LSN has its place by the LSN modulo the ring's size.
 *
 * <p>Each byte has one owner: the record whose room it is. Who owns a page's first usable byte
 * writes its header, too, and nobody clears a page as a whole, so records on one page need no order
 * among themselves. What stands behind the last record is left over from an earlier round; the
 * flush writes zeros there instead. A page is entered only when the page that had its place before
 * is in the file. (PostgreSQL: CopyXLogRecordToWAL, GetXLogBuffer, AdvanceXLInsertBuffer.)
 */
class WalRing {
    /** Makes room: returns when all before the LSN is in the file. */
    interface Room {
        void awaitWritten(long lsn);
    }

    private final WalBytePositions positions;
    private final int timeline;
    private final long systemIdentifier;
    private final long missingContinuation;
    private final int size;
    private final ByteBuffer memory;
    private final UnsafeBuffer ring;

    WalRing(
            WalBytePositions positions,
            int timeline,
            long systemIdentifier,
            long missingContinuation,
            int size) {
        this.positions = positions;
        this.timeline = timeline;
        this.systemIdentifier = systemIdentifier;
        this.missingContinuation = missingContinuation;
        this.size = size;
        memory = ByteBuffer.allocateDirect(size);
        ring = new UnsafeBuffer(memory);
    }

    int size() {
        return size;
    }

    UnsafeBuffer buffer() {
        return ring;
    }

    int offset(long lsn) {
        return (int) lsn & size - 1;
    }

    /**
     * Copies a record into its room. The caller holds the slot.
     *
     * @param from the record's bytes, from the array's beginning on, and zeros up to a multiple of
     *     8
     * @param lsn where the record begins, which is at {@code position}
     * @return end of the record, aligned, as pages carry it
     */
    long copy(
            byte[] from,
            int length,
            long lsn,
            long position,
            InsertionSlots slots,
            int slot,
            Room room) {
        int padded = (int) WalRecordFormat.align(length);
        long at = lsn;
        int done = 0;
        slots.progress(slot, position);
        while (true) {
            long page = at & -PAGE_SIZE;
            if (page == at) {
                slots.progress(slot, position + done);
                at += WalPageHeader.sizeAt(page, positions.segmentSize);
            }
            room.awaitWritten(page + PAGE_SIZE - size);
            if (at == page + WalPageHeader.sizeAt(page, positions.segmentSize)) {
                beginPage(page, done == 0 ? 0 : length - done);
            }
            // Pages and what is done are multiples of 8, so a record's padding is on its last page.
            int part = (int) Math.min(padded - done, page + PAGE_SIZE - at);
            ring.putBytes(offset(at), from, done, part);
            at += part;
            done += part;
            if (done == padded) {
                return at;
            }
        }
    }

    /** Zeros without page headers, behind a segment switch. {@code from} may be inside a page. */
    void zero(long from, long to, InsertionSlots slots, int slot, Room room) {
        long lsn = from;
        while (lsn < to) {
            long page = lsn & -PAGE_SIZE;
            slots.progress(slot, positions.of(lsn));
            room.awaitWritten(page + PAGE_SIZE - size);
            int part = (int) Math.min(to - lsn, page + PAGE_SIZE - lsn);
            ring.setMemory(offset(lsn), part, (byte) 0);
            lsn += part;
        }
    }

    /**
     * WAL-7. Before anything is inserted: the part of the page before the first record as the file
     * has it; the header that its place demands when it has none.
     */
    void loadTail(WalSegmentOutput output, long page, int end) {
        int at = offset(page);
        ring.setMemory(at, PAGE_SIZE, (byte) 0);
        output.readExisting(ring.addressOffset() + at, page);
        ring.setMemory(at + end, PAGE_SIZE - end, (byte) 0);
        WalPageHeader.repair(ring, at, page, timeline, positions.segmentSize, systemIdentifier);
    }

    void free() {
        BufferUtil.free(memory);
    }

    /**
     * @param remaining bytes of a record begun on an earlier page, 0 for none
     */
    void beginPage(long page, int remaining) {
        int at = offset(page);
        WalPageHeader.init(ring, at, page, timeline, positions.segmentSize, systemIdentifier);
        if (remaining != 0) {
            WalPageHeader.setContinuation(ring, at, remaining);
        }
        if (page == missingContinuation && missingContinuation != 0) {
            WalPageHeader.addInfo(ring, at, WalPageHeader.XLP_FIRST_IS_OVERWRITE_CONTRECORD);
        }
    }
}
