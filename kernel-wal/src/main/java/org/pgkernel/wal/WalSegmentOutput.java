package org.pgkernel.wal;

import static org.pgkernel.wal.WalPageHeader.PAGE_SIZE;

import java.nio.ByteBuffer;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.concurrent.UnsafeBuffer;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;

/**
 * The segment file that is being written, and the way from one to the next: the full one is made
 * durable before the first byte of the next one is written.
 *
 * <p>For one thread at a time, but for {@link #prepare}, which any thread may call, and {@link
 * #creation}, which whoever gives a segment file its name holds. Failures are the caller's to
 * judge: after any of them he must not go on.
 */
class WalSegmentOutput implements AutoCloseable {
    private final Disk disk;
    private final String directory;
    private final int timeline;
    private final int segmentSize;
    private final long systemIdentifier;

    /** Held while a segment file comes into being, made or recycled. */
    final ReentrantLock creation = new ReentrantLock();

    private DiskFile file;
    private long fileSegment;
    private boolean unsynced;

    WalSegmentOutput(
            Disk disk, String directory, int timeline, int segmentSize, long systemIdentifier) {
        this.disk = disk;
        this.directory = directory;
        this.timeline = timeline;
        this.segmentSize = segmentSize;
        this.systemIdentifier = systemIdentifier;
    }

    /** Writes bytes of one segment. */
    void write(long address, int length, long lsn) {
        open(lsn);
        unsynced = true;
        file.write(address, length, WalSegmentName.offsetIn(lsn, segmentSize));
    }

    /** Zeros up to the segment's end, which is {@code to}. */
    void zeroRestOfSegment(long from, long to) {
        if (from != to) {
            open(from);
            unsynced = true;
            WalSegmentFile.zero(file, WalSegmentName.offsetIn(from, segmentSize), segmentSize);
        }
    }

    /**
     * WAL-9. The log ends with its page: what an earlier use, or an earlier attempt before a crash,
     * left on the next page must not follow.
     *
     * @param zeros address of a page of zeros
     */
    void zeroPage(long zeros, long lsn) {
        if (WalSegmentName.offsetIn(lsn, segmentSize) != 0) {
            write(zeros, PAGE_SIZE, lsn);
            return;
        }
        try (DiskFile following = disk.openIfExists(path(lsn))) {
            if (following != null) {
                following.write(zeros, PAGE_SIZE, 0);
                following.dataSync();
            }
        }
    }

    /** Makes durable what was written. */
    void sync() {
        if (unsynced) {
            file.dataSync();
            unsynced = false;
        }
    }

    /** Reads a page as the disk has it; less, or nothing, when there is none. */
    void readExisting(long address, long page) {
        try (DiskFile existing = disk.openReadOnly(path(page))) {
            if (existing != null) {
                existing.read(address, PAGE_SIZE, WalSegmentName.offsetIn(page, segmentSize));
            }
        }
    }

    /**
     * Makes the segment that holds {@code lsn} if it is not there. @return true if it was made
     * (PostgreSQL: PreallocXlogFiles.)
     */
    boolean prepare(long lsn) {
        String path = path(lsn);
        creation.lock();
        try {
            if (disk.exists(path)) {
                return false;
            }
            WalSegmentFile.create(disk, directory, path, segmentSize);
            return true;
        } finally {
            creation.unlock();
        }
    }

    @Override
    public void close() {
        if (file != null) {
            file.close();
            file = null;
        }
    }

    /**
     * Opens the segment of {@code lsn}, creating it when it is not there; the one before is made
     * durable first.
     */
    private void open(long lsn) {
        long segment = WalSegmentName.segmentOf(lsn, segmentSize);
        if (file != null && fileSegment == segment) {
            return;
        }
        if (file != null) {
            sync();
            file.close();
            file = null;
        }
        String path = path(lsn);
        file = disk.openIfExists(path);
        boolean isNew = false;
        if (file == null) {
            isNew = prepare(lsn);
            file = disk.open(path);
        }
        fileSegment = segment;
        long size = file.size();
        if (size < segmentSize) {
            WalSegmentFile.zero(file, size, segmentSize);
            file.sync();
        }
        if (isNew && WalSegmentName.offsetIn(lsn, segmentSize) != 0) {
            identifySegment(WalSegmentName.startOf(segment, segmentSize));
        }
    }

    /**
     * A segment begun in its middle still needs the long header of its first page, or nobody could
     * read it.
     */
    private void identifySegment(long first) {
        UnsafeBuffer page = new UnsafeBuffer(ByteBuffer.allocateDirect(PAGE_SIZE));
        WalPageHeader.init(page, 0, first, timeline, segmentSize, systemIdentifier);
        file.write(page.addressOffset(), PAGE_SIZE, 0);
        unsynced = true;
    }

    /** The file that holds the byte at the LSN. */
    String path(long lsn) {
        return WalSegmentFile.path(
                directory, timeline, WalSegmentName.segmentOf(lsn, segmentSize), segmentSize);
    }
}
