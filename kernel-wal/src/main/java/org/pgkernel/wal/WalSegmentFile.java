package org.pgkernel.wal;

import java.nio.ByteBuffer;
import org.agrona.BufferUtil;
import org.pgkernel.base.Lsn;
import org.pgkernel.base.disk.Disk;
import org.pgkernel.base.disk.DiskFile;
import org.pgkernel.base.error.DamagedDataException;

/**
 * Makes segment files, always whole and durable before they have their name. (PostgreSQL:
 * XLogFileInit, XLogFileCopy, xlog.c.)
 */
final class WalSegmentFile {
    private static final int PIECE = 1 << 20;

    private WalSegmentFile() {}

    static String path(String directory, int timeline, long segment, int segmentSize) {
        return directory + "/" + WalSegmentName.fileName(timeline, segment, segmentSize);
    }

    /** A segment of zeros. The space is really allocated, so that later syncs need no metadata. */
    static void create(Disk disk, String directory, String path, int segmentSize) {
        DurableFile.install(disk, directory, path, file -> zero(file, 0, segmentSize));
    }

    /** Writes zeros over {@code [from, to)}. */
    static void zero(DiskFile file, long from, long to) {
        ByteBuffer zeros = ByteBuffer.allocateDirect((int) Math.min(PIECE, Math.max(to - from, 0)));
        for (long at = from; at < to; at += zeros.capacity()) {
            file.write(BufferUtil.address(zeros), (int) Math.min(zeros.capacity(), to - at), at);
        }
    }

    /** A copy of the first {@code length} bytes of another segment, zeros after. */
    static void copy(
            Disk disk, String directory, String source, String path, int length, int segmentSize) {
        try (DiskFile from = disk.openReadOnly(source)) {
            if (from == null) {
                throw new DamagedDataException(
                        "the WAL segment to be copied for the new timeline is not there file="
                                + source);
            }
            DurableFile.install(
                    disk,
                    directory,
                    path,
                    to -> {
                        ByteBuffer piece = ByteBuffer.allocateDirect(Math.min(PIECE, segmentSize));
                        for (int at = 0; at < length; at += piece.capacity()) {
                            int wanted = Math.min(piece.capacity(), length - at);
                            if (from.read(BufferUtil.address(piece), wanted, at) != wanted) {
                                throw new DamagedDataException(
                                        "the WAL segment to be copied for the new timeline ends before offset "
                                                + length
                                                + " file="
                                                + source);
                            }
                            to.write(BufferUtil.address(piece), wanted, at);
                        }
                        zero(to, length, segmentSize);
                    });
        }
    }

    /** As {@link WalWriter#copySegmentForNewTimeline}. */
    static void beginTimeline(
            Disk disk,
            String directory,
            int oldTimeline,
            int newTimeline,
            long switchPoint,
            int segmentSize) {
        long segment = WalSegmentName.segmentOf(switchPoint, segmentSize);
        int length = WalSegmentName.offsetIn(switchPoint, segmentSize);
        assert oldTimeline != newTimeline
                : "timeline " + oldTimeline + " at " + Lsn.format(switchPoint);
        String path = path(directory, newTimeline, segment, segmentSize);
        if (length == 0) {
            create(disk, directory, path, segmentSize);
        } else {
            copy(
                    disk,
                    directory,
                    path(directory, oldTimeline, segment, segmentSize),
                    path,
                    length,
                    segmentSize);
        }
    }
}
