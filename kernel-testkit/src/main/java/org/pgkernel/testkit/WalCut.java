package org.pgkernel.testkit;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.pgkernel.base.Lsn;

/** Ends a copy's WAL at a given place, as if the primary had written no further. */
public final class WalCut {
    private static final long SEGMENT = 16 * 1024 * 1024;

    private WalCut() {}

    /**
     * Zeroes the segment that holds {@code lsn} from there to its end, and removes all later
     * segments, of every timeline.
     *
     * <p>The directory's own pages must not be newer than the cut, or the cluster is one that no
     * crash could leave.
     *
     * @param dataDirectory a copy nobody runs on; 16 MB segments
     * @param lsn a record boundary: the end of one record, the start of the next
     */
    public static void cut(Path dataDirectory, long lsn) {
        Path wal = dataDirectory.resolve("pg_wal");
        long segment = Long.divideUnsigned(lsn, SEGMENT);
        int offset = (int) Long.remainderUnsigned(lsn, SEGMENT);
        try {
            boolean found = false;
            for (Path file : segments(wal)) {
                long number = segmentNumber(file);
                if (Long.compareUnsigned(number, segment) > 0) {
                    Files.delete(file);
                } else if (number == segment) {
                    found = true;
                    zeroFrom(file, offset);
                }
            }
            // A cut at a segment's very start needs only the one before it.
            if (!found && offset != 0) {
                throw new PostgresServerException(
                        "no segment holds the cut: lsn=" + Lsn.format(lsn) + " file=" + wal);
            }
        } catch (IOException e) {
            throw new PostgresServerException(
                    "cannot cut the WAL: lsn=" + Lsn.format(lsn) + " file=" + wal, e);
        }
    }

    /** The segment files of a {@code pg_wal} directory, in the order of their names. */
    public static List<Path> segments(Path wal) throws IOException {
        try (Stream<Path> entries = Files.list(wal)) {
            return entries.filter(
                            file ->
                                    file.getFileName()
                                            .toString()
                                            .matches("[0-9A-F]{24}(\\.partial)?"))
                    .sorted()
                    .toList();
        }
    }

    /**
     * The segment number in a file's name, the timeline left aside. (PostgreSQL: XLogFromFileName,
     * xlog_internal.h.)
     */
    public static long segmentNumber(Path file) {
        String name = file.getFileName().toString();
        long high = Long.parseLong(name.substring(8, 16), 16);
        long low = Long.parseLong(name.substring(16, 24), 16);
        return high * (0x100000000L / SEGMENT) + low;
    }

    private static void zeroFrom(Path file, int offset) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            ByteBuffer zeros = ByteBuffer.allocate(1 << 16);
            for (long at = offset; at < channel.size(); at += zeros.position()) {
                zeros.clear().limit((int) Math.min(zeros.capacity(), channel.size() - at));
                channel.write(zeros, at);
            }
        }
    }
}
